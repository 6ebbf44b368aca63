package killtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/internal/smalldisk"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// diskSize holds the state of some rounds and a copy of the binary.
const diskSize = "size=64m"

// disk mounts a small file system, which only root can.
func disk(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	smalldisk.At(t, dir, size+",mode=755")
}

// fill takes all the room of a file system until it is given back.
func fill(t *testing.T, dir string) (giveBack func()) { return fillBut(t, dir, 0) }

// fillBut leaves some bytes free.
func fillBut(t *testing.T, dir string, free int64) (giveBack func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	var end int64
	for size := int64(64 << 20); size >= 4096; size /= 2 { // the last pages too
		for unix.Fallocate(int(f.Fd()), 0, end, size) == nil {
			end += size
		}
	}
	if err := f.Truncate(max(0, end-free)); err != nil {
		t.Error(err)
	}
	_ = f.Close()
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// The disk of the state directory is full for a while, amid submissions and launches:
// what is refused is refused, what was accepted runs once, and a launch for whose
// records there was no room is not the job's failure.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	disk(t, small, diskSize)
	s := newServer(t, filepath.Join(small, "state"), "--nodes", "4", "--gpus-per-node", "2")
	rounds := 4
	if long {
		rounds = 40
	}
	t.Logf("seed %d (COX_KILL_SEED)", seed)
	for i := range rounds {
		r := &round{t: t, s: s, h: newHarm(), dir: filepath.Join(dir, fmt.Sprintf("r%d", i)), number: i, full: true, rnd: rand.New(rand.NewPCG(seed, 1<<40|uint64(i)))}
		r.outrage = func(rnd *rand.Rand) {
			for range 4 {
				fullFor(r, small, ms(rnd.IntN(600)))
				time.Sleep(ms(rnd.IntN(300))) // the moment of the next time is what is tried
			}
		}
		r.run()
		if t.Failed() {
			t.FailNow()
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	got, err := sqlite.Verify(t.Context(), s.state)
	if err != nil {
		t.Errorf("the store: %v", err)
	}
	t.Logf("verified: %+v", got)
}

// There is room for what the server writes of a launch, and none for what the engine
// has to: the job waits again, also if it may not be requeued, and runs once there is.
func TestDiskFullAtLaunch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	disk(t, small, diskSize)
	s := newServer(t, filepath.Join(small, "state"), "--nodes", "4", "--gpus-per-node", "2")
	r := &round{t: t, s: s, h: newHarm(), dir: filepath.Join(dir, "r"), rnd: rand.New(rand.NewPCG(seed, 3<<40))}
	for i := range 4 {
		w := &work{name: fmt.Sprintf("r0-large%d", i), stays: i%2 == 0, held: true, args: []string{"--hold"}}
		if w.batch(5, ms(5)); i > 1 {
			w.gang(2, 1, 5, ms(5))
			w.args = append(w.args, "--hold")
		}
		w.lines = strings.Repeat(strings.Repeat("#", 1023)+"\n", 1<<10) + w.lines // more than is free
		r.works = append(r.works, w)
	}
	r.outrage = func(*rand.Rand) {
		waitFor(t, "all are submitted", func() bool {
			for _, w := range r.jobsNow() {
				if w.State != "PENDING" {
					t.Errorf("%s is %s", w.Name, w.State)
				}
			}
			return len(r.jobsNow()) == len(r.works)
		})
		giveBack := fillBut(t, small, 512<<10)
		defer giveBack()
		close(r.release)
		waitFor(t, "each was refused for want of room, or failed", func() bool {
			refused := 0
			for _, j := range r.jobsNow() {
				if j.State == "FAILED" {
					return true // which is judged
				}
				if j.State == "PENDING" && j.Attempt > 0 {
					refused++
				}
			}
			return refused == len(r.works)
		})
	}
	r.release = make(chan struct{})
	r.run()
	if r.again < len(r.works) {
		t.Errorf("%d attempts were made again, of %d jobs", r.again, len(r.works))
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// waitFor waits for what no event tells.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			t.Errorf("waited in vain until %s", what)
			return
		}
	}
}

// fullFor keeps a disk full until a submission has been refused, and somewhat longer.
func fullFor(r *round, dir string, more time.Duration) {
	giveBack := fill(r.t, dir)
	defer giveBack()
	for end := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		w := &work{name: fmt.Sprintf("probe%d", time.Now().UnixNano())}
		w.batch(1, 0)
		if w.submit(r.t.Context(), r.s, r.dir); w.err != nil && fault.KindOf(w.err) == fault.Exhausted {
			break
		}
		if time.Now().After(end) {
			r.t.Errorf("the disk is full, and a submission gets: %v", w.err)
			break
		}
	}
	time.Sleep(more)
}

// The disk on which jobs write is full: the job that writes is told, those that write
// elsewhere go on, and with room again so does everything.
func TestOutputDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	disk(t, small, "size=1m")
	s := newServer(t, filepath.Join(dir, "state"), "--nodes", "4")
	giveBack := fill(t, small)
	r := &round{t: t, s: s, h: newHarm(), dir: filepath.Join(dir, "r"), rnd: rand.New(rand.NewPCG(seed, 2<<40))}
	r.outrage = func(*rand.Rand) {}
	told := &work{name: "r0-told", exit: 1, stays: true}
	told.lines = fmt.Sprintf("echo text > %s || exit 1", filepath.Join(small, "text"))
	told.silent = true
	r.works = []*work{told}
	for i := range 4 {
		w := &work{name: fmt.Sprintf("r0-other%d", i)}
		w.batch(20, ms(5))
		r.works = append(r.works, w)
	}
	r.run()
	giveBack()
	again := &round{t: t, s: s, h: newHarm(), dir: filepath.Join(dir, "r1"), number: 1, rnd: r.rnd}
	again.outrage = r.outrage
	w := &work{name: "r1-told", stays: true, silent: true}
	w.lines = told.lines
	again.works = []*work{w}
	again.run()
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
