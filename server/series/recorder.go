package series

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
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

// How often running jobs are looked at and asked.
const (
	DefaultEach = 5 * time.Second // between two looks
	localPause  = 10 * time.Second
	otherPause  = time.Minute

	atOnce      = 8               // attempts that are asked at a time
	askWithin   = 5 * time.Second // for one answer
	mostOthers  = 5               // attempts outside of this machine that are asked in one look, but for their GPUs: each goes through an API server
	mostLocal   = 200             // attempts of this machine in one look
	writeEach   = 5 * time.Minute
	sweepEach   = time.Hour
	sweepBefore = time.Minute // the first sweep, after the start
)

// Plane is what a Recorder needs of a control plane; *control.Control is one.
type Plane interface {
	Scan(query.Filter, func(*state.View) bool)
	Job(context.Context, job.ID) (state.View, error)
}

// Config has the parts of a Recorder. Plane and Dir are needed.
type Config struct {
	Plane Plane
	Dir   string        // of the files
	Room  int64         // bytes for all files; 0: any
	Keep  time.Duration // how long a file is kept after its job has ended; 0: for ever
	Local string        // the pool of this machine

	Sampler func(pool string) engine.UsageSampler // nil, or it returns nil: what jobs use is not known there
	GPUs    func(pool string) Exporter            // nil, or it returns nil: the pool has no exporter

	Each time.Duration    // between two looks; 0: DefaultEach
	Now  func() time.Time // nil: time.Now
	Log  *slog.Logger     // nil: none
}

// Exporter says what the GPUs of a pool do.
type Exporter interface {
	// Look returns what is known of all GPUs now, or returned a few seconds ago. nodes are those of which somebody
	// wants to know.
	Look(ctx context.Context, nodes []string) ([]ExportedGPU, error)
	// Match finds the devices of an attempt among them.
	Match(all []ExportedGPU, of *Attempt) []GPUSample
}

// Attempt is a running attempt of a job.
type Attempt struct {
	Ref    engine.Ref
	Job    job.ID
	Pool   string
	Claims []fleet.Claim
}

// Recorder measures running jobs and keeps their series. It is safe for concurrent use.
type Recorder struct {
	cfg   Config
	files files

	mu   sync.Mutex
	runs map[job.ID]*run
}

// run is a job that runs. The loop alone touches what is not its series, which the lock guards.
type run struct {
	Attempt
	started time.Time
	next    time.Time // when it is asked next
	gpus    time.Time // when its GPUs are looked at next, if it holds some
	wrote   time.Time
	seen    bool // in this look
	series  *Series
	changed bool // since it was written
}

// NewRecorder makes a recorder. Run makes it measure.
func NewRecorder(cfg Config) *Recorder {
	cfg.Each = cmp.Or(cfg.Each, DefaultEach)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Recorder{cfg: cfg, files: files{dir: cfg.Dir, room: cfg.Room, keep: cfg.Keep}, runs: map[job.ID]*run{}}
}

// Read returns the series of a job, which is the caller's; fault.NotFound: there is none.
func (r *Recorder) Read(id job.ID) (*Series, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.runs[id]; x != nil && x.series != nil {
		return x.series.cloneAll(), nil
	}
	return r.files.read(id)
}

// WatchDevices adds the devices of running jobs that were measured lately to a census. A device is idle for a job
// that has not used it for at least so long. Those of this machine are not among them: control/health knows these by
// their processes.
func (r *Recorder) WatchDevices(all health.Census, least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	for _, x := range r.runs {
		if x.Pool == r.cfg.Local || x.series == nil {
			continue
		}
		for i := range x.series.Devices {
			d := &x.series.Devices[i]
			if d.isMeasured(x.series, now) {
				all.Add(health.Device{Pool: x.Pool, Node: d.Node, Index: d.Index, Instance: d.Instance}, d.isIdle(x.series, now, least))
			}
		}
	}
}

// Run measures until ctx ends, and writes what is not written yet then.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Each)
	defer tick.Stop()
	sweep := time.NewTimer(sweepBefore)
	defer sweep.Stop()
	for {
		select {
		case <-tick.C:
			r.lookAtRuns(ctx)
		case <-sweep.C:
			if err := r.files.sweepFiles(r.cfg.Now()); err != nil {
				r.cfg.Log.Warn("remove old series of jobs", "error", err)
			}
			sweep.Reset(sweepEach)
		case <-ctx.Done():
			for _, x := range r.runs {
				r.writeRun(x)
			}
			return
		}
	}
}

// lookAtRuns measures the attempts that are due, and ends the series of those that have ended.
func (r *Recorder) lookAtRuns(ctx context.Context) {
	now := r.cfg.Now()
	for _, x := range r.runs {
		x.seen = false
	}
	var fresh []*run
	r.cfg.Plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		if v.Job.State != job.Running || v.Job.Started.IsZero() || v.Ref == (engine.Ref{}) {
			return true
		}
		if x := r.runs[v.Job.ID]; x != nil && x.Ref == v.Ref {
			x.seen = true
			return true
		}
		fresh = append(fresh, &run{Attempt: Attempt{Ref: v.Ref, Job: v.Job.ID, Pool: v.Pool, Claims: slices.Clone(v.Claims)}, started: v.Job.Started, seen: true})
		return true
	})
	for id, x := range r.runs {
		if !x.seen {
			r.endRun(ctx, x)
			r.mu.Lock()
			delete(r.runs, id)
			r.mu.Unlock()
		}
	}
	for _, x := range fresh {
		r.beginRun(x)
	}
	r.measureAll(ctx, now)
	for _, x := range r.runs {
		if x.changed && now.Sub(x.wrote) >= writeEach {
			r.writeRun(x)
		}
	}
}

// pauseOf is how often attempts of a pool are asked at most.
func (r *Recorder) pauseOf(pool string) time.Duration {
	if pool == r.cfg.Local {
		return min(localPause, 2*r.cfg.Each)
	}
	return max(otherPause, r.cfg.Each)
}

// beginRun goes on with the series of an attempt, or begins one.
func (r *Recorder) beginRun(x *run) {
	s, err := r.files.read(x.Job)
	if err != nil || s.Ref != x.Ref {
		s = New(x.Ref, x.started, r.pauseOf(x.Pool))
	}
	x.series, x.wrote = s, r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[x.Job] = x
}

// dueRuns are the attempts that are measured now, those first that wait longest.
func (r *Recorder) dueRuns(now time.Time) []*run {
	var due []*run
	for _, x := range r.runs {
		if !now.Before(x.next) {
			due = append(due, x)
		}
	}
	slices.SortFunc(due, func(a, b *run) int { return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.Job, b.Job)) })
	local, others := 0, 0
	return slices.DeleteFunc(due, func(x *run) bool {
		n, most := &others, mostOthers
		if x.Pool == r.cfg.Local {
			n, most = &local, mostLocal
		}
		*n++
		return *n > most
	})
}

// measureAll asks for what is due, several attempts at a time.
func (r *Recorder) measureAll(ctx context.Context, now time.Time) {
	r.measureGPUs(ctx, now)
	due := r.dueRuns(now)
	var asking sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, x := range due {
		if ctx.Err() != nil {
			break
		}
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			r.measureRun(ctx, x)
		})
	}
	asking.Wait()
}

func (r *Recorder) measureRun(ctx context.Context, x *run) {
	pause := max(r.pauseOf(x.Pool), x.series.Step)
	used := r.askEngine(ctx, x)
	now := r.cfg.Now()
	x.next = now.Add(pause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if used != nil {
		at := used.At
		if at.IsZero() {
			at = now // of an older agent
		}
		x.series.AddUsed(at, used, r.sourceOf(x.Pool), pause)
		x.changed = true
	}
}

// sourceOf is who measures what jobs of a pool use.
func (r *Recorder) sourceOf(pool string) string {
	if pool == r.cfg.Local {
		return Supervisor
	}
	if r.cfg.Sampler != nil {
		if x, ok := r.cfg.Sampler(pool).(engine.UsageOrigin); ok {
			return x.MeasuredBy()
		}
	}
	return Pod
}

// askEngine asks what an attempt has used so far; nil: nobody knows.
func (r *Recorder) askEngine(ctx context.Context, x *run) *rusage.Record {
	if r.cfg.Sampler == nil {
		return nil
	}
	e := r.cfg.Sampler(x.Pool)
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	used, err := e.Usage(ctx, x.Ref)
	if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound { // else it has just ended
		r.cfg.Log.Debug("ask what an attempt uses", "job", x.Job, "pool", x.Pool, "error", err)
	}
	if err != nil {
		return nil
	}
	return used
}

// endRun adds what its attempt used at the end, and writes the series.
func (r *Recorder) endRun(ctx context.Context, x *run) {
	v, err := r.cfg.Plane.Job(ctx, x.Job)
	if err == nil && !v.Job.Ended.IsZero() && v.Report.Used != nil && v.Report.Ref == x.Ref {
		r.mu.Lock()
		x.series.AddUsed(v.Job.Ended, v.Report.Used, r.sourceOf(x.Pool), r.pauseOf(x.Pool))
		r.mu.Unlock()
		x.changed = true
	}
	r.writeRun(x)
}

// writeRun writes a series that has changed.
func (r *Recorder) writeRun(x *run) {
	if !x.changed || x.series.Points() == 0 {
		return
	}
	if err := r.files.write(x.Job, x.series); err != nil {
		r.cfg.Log.Warn("write the series of a job", "job", x.Job, "error", err)
	}
	x.changed, x.wrote = false, r.cfg.Now()
}

// measureGPUs reads the exporters of pools that are due, and adds what they say to all attempts of these pools: one
// answer is enough for any number of them.
func (r *Recorder) measureGPUs(ctx context.Context, now time.Time) {
	if r.cfg.GPUs == nil {
		return
	}
	due, of := map[string]bool{}, map[string][]*run{}
	for _, x := range r.runs {
		if slices.ContainsFunc(x.Claims, func(c fleet.Claim) bool { return len(c.Devices) > 0 }) {
			of[x.Pool] = append(of[x.Pool], x)
			due[x.Pool] = due[x.Pool] || !now.Before(x.gpus)
		}
	}
	for pool, runs := range of {
		if due[pool] && ctx.Err() == nil {
			r.measurePoolGPUs(ctx, pool, runs)
		}
	}
}

// measurePoolGPUs reads the exporter of a pool for the attempts there that hold devices.
func (r *Recorder) measurePoolGPUs(ctx context.Context, pool string, runs []*run) {
	by := r.cfg.GPUs(pool)
	if by == nil {
		return
	}
	var nodes []string
	for _, x := range runs {
		for i := range x.Claims {
			if len(x.Claims[i].Devices) > 0 {
				nodes = append(nodes, x.Claims[i].Node)
			}
		}
	}
	slices.Sort(nodes)
	all, err := by.Look(ctx, slices.Compact(nodes))
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("read the exporter of GPUs", "pool", pool, "error", err)
	}
	now, pause := r.cfg.Now(), r.pauseOf(pool)
	for _, x := range runs {
		x.gpus = now.Add(pause)
		if len(all) == 0 {
			continue
		}
		if samples := by.Match(all, &x.Attempt); len(samples) > 0 {
			r.mu.Lock()
			x.series.AddGPUs(now, samples, max(pause, x.series.Step))
			r.mu.Unlock()
			x.changed = true
		}
	}
}
