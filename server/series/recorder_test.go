package series

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// world is a control plane, an engine and an exporter with a clock of its own. What a job used grows by 2 CPUs.
type world struct {
	mu    sync.Mutex
	now   time.Time
	views []state.View
	asked map[uint64]int // by allocation
	away  bool           // the exporter
	busy  float64        // of its GPU
	every bool           // the exporter knows the GPUs of every job, not of the first alone
}

func (w *world) Scan(_ query.Filter, f func(*state.View) bool) {
	for i := range w.views {
		if !f(&w.views[i]) {
			return
		}
	}
}

func (w *world) Job(_ context.Context, id job.ID) (state.View, error) {
	for i := range w.views {
		if w.views[i].Job.ID == id {
			return w.views[i], nil
		}
	}
	return state.View{}, fault.New(fault.NotFound, "no job %s", id)
}

func (w *world) Usage(_ context.Context, ref engine.Ref) (*rusage.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[ref.Allocation]++
	r := used(2*w.now.Sub(began), 1<<30)
	r.At = w.now
	return r, nil
}

func (w *world) Look(context.Context, []string) ([]ExportedGPU, error) {
	if w.away {
		return nil, errors.New("away")
	}
	return []ExportedGPU{{UUID: "GPU-1", Busy: w.busy}}, nil
}

func (w *world) Match(all []ExportedGPU, of *Attempt) []GPUSample {
	if len(all) == 0 || of.Job != 1 && !w.every {
		return nil
	}
	return []GPUSample{{Node: "v1", Index: of.Claims[0].Devices[0].Index, Busy: all[0].Busy}}
}

func (w *world) begin(id job.ID, pool string) {
	w.views = append(w.views, state.View{
		Job: job.Job{ID: id, State: job.Running, Started: began}, Ref: engine.Ref{Allocation: uint64(id), Attempt: 1}, Pool: pool,
		Claims: []fleet.Claim{{Node: "v1", Devices: []fleet.DeviceClaim{{Index: int(id)}}}},
	})
}

// use is what a recorder says of the devices of k8s.
func use(r *Recorder) health.DeviceUse {
	all := health.Census{}
	r.WatchDevices(all, 10*time.Minute)
	return all.ByPool()["k8s"]
}

func (w *world) recorder(dir string) *Recorder {
	return NewRecorder(Config{
		Plane: w, Dir: dir, Local: "local", Keep: time.Hour, Now: func() time.Time { return w.now },
		Sampler: func(string) engine.UsageSampler { return w },
		GPUs:    func(pool string) Exporter { return w },
	})
}

// TestRecorder follows a job of this machine whose server begins anew, whose exporter goes away, and that ends.
//
// Seen to fail with a file that is not read again, and without the last answer at the end.
func TestRecorder(t *testing.T) {
	w := &world{now: began, asked: map[uint64]int{}, busy: 40}
	w.begin(1, "local")
	dir := t.TempDir()
	r := w.recorder(dir)
	step := func(each time.Duration) { w.now = w.now.Add(each); r.lookAtRuns(t.Context()) }
	for range 6 { // each 5 s, so that every other look asks
		step(5 * time.Second)
	}
	if n := w.asked[1]; n != 3 {
		t.Errorf("asked %d times in 30 s", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	r.Run(ended) // it writes what it has

	w.away, r = true, w.recorder(dir)
	step(30 * time.Second)
	w.views[0].Job.State, w.views[0].Job.Ended = job.Completed, w.now.Add(10*time.Second)
	w.views[0].Report = engine.Report{Ref: w.views[0].Ref, Used: used(2*w.now.Sub(began), 1<<30)} // it did nothing any more
	step(30 * time.Second)

	s, err := r.Read(1)
	if err != nil {
		t.Fatal(err)
	}
	sameLine(t, "CPUs", s.Total.CPUs, Line{2, 2, 2, 2, 2, 2, 0})
	if len(s.Devices) != 1 || s.Devices[0].Source != DCGM {
		t.Fatalf("the devices are %+v", s.Devices)
	}
	sameLine(t, "GPU", s.Devices[0].Busy, Line{40, 40, 40})
	if _, err := r.Read(2); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of a job without a series: %v", err)
	}
	w.views[0].Ref.Attempt, w.views[0].Job.State, w.views[0].Job.Started = 2, job.Running, w.now // it is requeued
	step(5 * time.Second)
	if s, err := r.Read(1); err != nil || s.Ref.Attempt != 2 || len(s.Total.CPUs) != 1 {
		t.Errorf("the series of the next attempt is %+v, %v", s, err)
	}
}

// TestOthersAreAskedInTurn: of many jobs elsewhere few are asked in one look, and each has its turn.
//
// Seen to fail with jobs in the order of their numbers.
func TestOthersAreAskedInTurn(t *testing.T) {
	w := &world{now: began, asked: map[uint64]int{}}
	for id := range job.ID(4 * mostOthers) {
		w.begin(id+1, "k8s")
	}
	r := w.recorder(t.TempDir())
	r.cfg.Sampler = func(string) engine.UsageSampler { return nil } // due without an answer
	for range 4 {
		w.now = w.now.Add(5 * time.Second)
		r.lookAtRuns(t.Context())
	}
	for id, x := range r.runs {
		if x.next.IsZero() {
			t.Errorf("job %s was never asked", id)
		}
	}
	if due := r.dueRuns(w.now); len(due) != 0 {
		t.Errorf("%d are asked again within a minute", len(due))
	}
}

// TestSweep: files that are too old go, and then the oldest until there is room.
func TestSweep(t *testing.T) {
	f := files{dir: t.TempDir(), room: 2 * 4096, keep: time.Hour}
	now := time.Now()
	for id, age := range map[job.ID]time.Duration{1: 2 * time.Hour, 1001: 30 * time.Minute, 3: 20 * time.Minute, 4: 10 * time.Minute} {
		s := New(engine.Ref{}, began, time.Second)
		s.Total.Memory = Line{1, math.NaN()}
		if err := f.write(id, s); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.nameOf(id), now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.sweepFiles(now); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(f.dir, "*/*"))
	if err != nil || !slices.Equal(left, []string{f.nameOf(3), f.nameOf(4)}) {
		t.Errorf("left are %q, %v", left, err)
	}
}

// TestIdleDevices: a device is idle if it was measured, and never busy, for long enough.
//
// Seen to fail with a device that nobody measured any more.
func TestIdleDevices(t *testing.T) {
	w := &world{now: began, asked: map[uint64]int{}}
	w.begin(1, "k8s")
	r := w.recorder(t.TempDir())
	w.busy = 40
	for range 5 {
		w.now = w.now.Add(time.Minute)
		r.lookAtRuns(t.Context())
	}
	w.busy = 0
	var counts []int
	for range 12 {
		w.now = w.now.Add(time.Minute)
		r.lookAtRuns(t.Context())
		counts = append(counts, use(r).Idle)
	}
	if !slices.Equal(counts, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}) {
		t.Errorf("minute by minute since it was busy, idle were %v", counts)
	}
	w.now = w.now.Add(5 * time.Minute)
	if u := use(r); u != (health.DeviceUse{}) {
		t.Errorf("of a device of which nobody knows anything for 5 minutes: %+v", u)
	}
}

// TestIdleDevicesOfManyJobs: more jobs than are asked in one look are all measured by one answer of their exporter.
//
// Seen to fail with GPUs of the attempts alone that are asked.
func TestIdleDevicesOfManyJobs(t *testing.T) {
	w := &world{now: began, asked: map[uint64]int{}, every: true}
	for id := range job.ID(4 * mostOthers) {
		w.begin(id+1, "k8s")
	}
	r := w.recorder(t.TempDir())
	for range 12 {
		w.now = w.now.Add(time.Minute)
		r.lookAtRuns(t.Context())
	}
	if u := use(r); u != (health.DeviceUse{Measured: 4 * mostOthers, Idle: 4 * mostOthers}) {
		t.Errorf("of %d devices: %+v", 4*mostOthers, u)
	}
}

// TestSharedDevice: a device that two jobs share counts once, and is idle once it is for both.
//
// Seen to fail with a device that counts for each job, and with one that is idle as soon as it is for one job.
func TestSharedDevice(t *testing.T) {
	w := &world{now: began, asked: map[uint64]int{}, every: true}
	w.begin(1, "k8s")
	r := w.recorder(t.TempDir())
	look := func(minutes int) health.DeviceUse {
		for range minutes {
			w.now = w.now.Add(time.Minute)
			r.lookAtRuns(t.Context())
		}
		return use(r)
	}
	alone := look(12)
	w.begin(2, "k8s")
	w.views[1].Claims, w.views[1].Job.Started = w.views[0].Claims, w.now
	shared, later := look(5), look(8)
	if got, want := []health.DeviceUse{alone, shared, later}, []health.DeviceUse{{Measured: 1, Idle: 1}, {Measured: 1}, {Measured: 1, Idle: 1}}; !slices.Equal(got, want) {
		t.Errorf("one job, with one that has just begun, later: %+v, want %+v", got, want)
	}
}
