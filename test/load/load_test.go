package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// step is the time that is granted at once.
const step = 30 * time.Second

// lag is how many events the clients let a watcher fall behind: fewer than the journal
// keeps.
const lag = 11000

// profiles is a folder for a profile of the heap at the end of each shift; empty: none.
// go tool pprof -base heap.2 heap.3 says what has grown.
var profiles = os.Getenv("COX_PROFILES")

func TestDay(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("COX_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("COX_SEED: %v", err)
		}
	}
	t.Logf("seed %d (COX_SEED)", seed)
	srv := start(t)
	srv.order(order{Grant: step})
	socket := filepath.Join(srv.dir, "api")
	c := enlist(t, socket, srv.tcp)
	c.watch = follow(t, socket, c.admin, seed)
	d := &day{t: t, srv: srv, crew: c, trace: drawTrace(seed), began: time.Now()}
	var all []figures
	for range shifts {
		all = append(all, d.shift())
	}
	t.Logf("%d jobs, %d events, each seen once; a watch was cut off %d times, %d of them for longer than the window; %s",
		len(c.accepted), c.watch.seen, c.watch.cuts, c.watch.late, time.Since(d.began).Round(time.Second))
	judgeShifts(t, all)
	printLatency(t, c.took)
	c.watch.end()
	c.watch.verify(c.accepted)
	if c.watch.late == 0 {
		t.Error("no watch came back after the window: the journal was never read for one")
	}
	srv.stop()
	verifyStore(t, srv.dir, len(c.accepted), c.watch.seen)
}

// verifyStore reads what the server left: whole, and without what is old.
func verifyStore(t *testing.T, dir string, jobs int, events uint64) {
	got, err := sqlite.Verify(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the store: %+v", got)
	if got.Last < events {
		t.Errorf("the journal ends with %d, events went up to %d", got.Last, events)
	}
	if got.First <= got.Last/2 || got.Jobs >= jobs/2 || got.Jobs == 0 {
		t.Errorf("records from %d on of %d and %d of %d jobs are still there: it was not purged, or too much", got.First, got.Last, got.Jobs, jobs)
	}
}

// day drives the clients through the trace.
type day struct {
	t     *testing.T
	srv   *process
	crew  *crew
	trace []op
	at    time.Duration
	began time.Time
	slow  time.Duration // how much later than planned we are
}

// shift runs one shift and measures it.
func (d *day) shift() figures {
	var f figures
	end := (d.at/shift + 1) * shift
	for ; d.at < end-shift+quiet; d.at += step {
		d.step()
		if d.at%(10*time.Minute) == 0 {
			f.sample(d.t, d.srv.cmd.Process.Pid, d.srv.dir)
		}
	}
	d.crew.watch.settle(true)
	d.crew.guests.Wait()
	info, err := d.crew.admin.Info(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.crew.watch.atLeast(info.Change, 0, 0)
	d.nothingLives()
	d.crew.leave()
	s := d.srv.calm()
	f.heap, f.goroutines, f.endFDs, f.files = int64(s.Heap), int64(s.Goroutines), descriptors(d.t, d.srv.cmd.Process.Pid), s.Logs
	if profiles != "" {
		d.srv.order(order{Profile: "heap", File: filepath.Join(profiles, fmt.Sprintf("heap.%d", d.at/shift+1))})
	}
	if f.files != 0 {
		d.t.Errorf("%d logs of jobs are still open", f.files)
	}
	if d.t.Failed() {
		d.t.FailNow()
	}
	d.crew.watch.settle(false)
	for ; d.at < end; d.at += step {
		d.step()
	}
	return f
}

// step lets the clock go on and does what is due, in the time that the rate leaves for
// it, or longer.
func (d *day) step() {
	d.srv.order(order{Grant: d.at + step})
	if late := time.Since(d.began) - d.slow - d.at/rate; late > 0 {
		d.slow += late
	} else {
		time.Sleep(-late) // the clock's pace, not a wait for anything
	}
	var busy sync.WaitGroup
	crowd := make(chan struct{}, 16)
	for len(d.trace) > 0 && d.trace[0].at < d.at+step {
		o := &d.trace[0]
		d.trace = d.trace[1:]
		crowd <- struct{}{}
		busy.Go(func() { d.crew.do(o); <-crowd })
	}
	busy.Wait()
	var info *api.ServerInfo
	if err := d.crew.timed("info", func(ctx context.Context) (err error) {
		info, err = d.crew.admin.Info(ctx)
		return err
	}); err != nil {
		d.t.FailNow()
	}
	d.crew.watch.atLeast(info.Change, lag, lag)
}

// nothingLives makes sure that the shift left no job.
func (d *day) nothingLives() {
	page, err := d.crew.admin.JobsPage(d.t.Context(), client.Query{Select: api.Select{States: []string{"all"}}, Limit: 3})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, j := range page.Jobs {
		d.t.Errorf("job %s is still there at the end of the shift: %s since %s", j.Name, j.State, j.Ended)
	}
}

// leave closes the connections that no request uses.
func (c *crew) leave() {
	c.admin.Close()
	for _, u := range c.users {
		u.Close()
	}
	c.watch.raw.CloseIdleConnections()
}

// process is the server's.
type process struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	orders io.WriteCloser
	out    *json.Encoder
	in     *json.Decoder
	tcp    string
	said   *strings.Builder // on standard error
	once   sync.Once
}

func start(t *testing.T) *process {
	dir, err := os.MkdirTemp("", "cox-load.") // short, for the socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, cmd: exec.Command(self), said: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), serveIn+"="+dir)
	if profiles != "" {
		p.cmd.Env = append(p.cmd.Env, "GODEBUG=memprofilerate=1024")
	}
	p.cmd.Stderr = p.said
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	answers, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	p.out, p.in = json.NewEncoder(p.orders), json.NewDecoder(answers)
	p.tcp = p.answer().TCP
	return p
}

func (p *process) order(o order) {
	if err := p.out.Encode(o); err != nil {
		p.t.Fatalf("the server's process: %v", err)
	}
}

func (p *process) answer() state {
	var s state
	if err := p.in.Decode(&s); err != nil {
		p.t.Fatalf("the server's process: %v", err)
	}
	return s
}

// calm measures until two measurements agree: connections that were closed take a
// moment to go.
func (p *process) calm() state {
	p.order(order{Measure: true})
	last := p.answer()
	fds := descriptors(p.t, p.cmd.Process.Pid)
	for until := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		p.order(order{Measure: true})
		s := p.answer()
		n := descriptors(p.t, p.cmd.Process.Pid)
		if s.Goroutines == last.Goroutines && n == fds {
			return s
		}
		if last, fds = s, n; time.Now().After(until) {
			p.t.Fatalf("goroutines and descriptors of an idle server change all the time: %+v", s)
		}
	}
}

// stop ends the process; what it logged belongs to the test.
func (p *process) stop() {
	p.once.Do(func() {
		if p.t.Failed() && p.cmd.ProcessState == nil {
			p.order(order{Profile: "goroutine", File: filepath.Join(p.dir, "stacks")})
		}
		err := errors.Join(p.orders.Close(), p.cmd.Wait())
		if err != nil {
			p.t.Errorf("the server's process: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(p.dir, "stacks")); err == nil {
			p.t.Logf("its goroutines:\n%s", b)
		}
		if said := p.said.String(); said != "" {
			p.t.Logf("it said:\n%s", said)
			if strings.Contains(said, "level=ERROR") {
				p.t.Error("the server logged errors")
			}
		}
	})
}
