package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// serveIn names the folder of the server that this process is to be; unset in the
// process that tests.
const serveIn = "COX_LOAD_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveIn); dir != "" {
		if err := serve(dir, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "the server of test/load:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The store's bounds: what is older goes, many times in a day.
var (
	keepMemory  = 10 * time.Minute
	keepJournal = 3 * time.Hour // of more than lag events
	keepHistory = 4 * time.Hour / part
)

// morning is when the day begins.
var morning = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// order is a line that the test writes to the server's process; its end ends it.
type order struct {
	Grant   time.Duration `json:"grant,omitempty"` // let the clock go on to here
	Measure bool          `json:"measure,omitempty"`
	Profile string        `json:"profile,omitempty"` // "goroutine" or "heap", into a file
	File    string        `json:"file,omitempty"`
}

// state is the answer to Measure, after a collection; the first line that the process
// writes has the address alone.
type state struct {
	TCP        string        `json:"tcp,omitempty"`
	At         time.Duration `json:"at"`
	Heap       uint64        `json:"heap"`
	Goroutines int           `json:"goroutines"`
	Logs       int64         `json:"logs"` // of jobs, open
}

// serve is the server's process.
func serve(dir string, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cl := &clock{now: morning, granted: morning}
	world := fake.NewWorld(fake.Config{Now: cl.Now, Nodes: machines(), Script: outcome})
	db, err := sqlite.Open(dir)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := world.Open()
	plane, err := control.Open(ctx, control.Config{
		Store: db, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "fake", Engine: "fake"}, Engine: e}}, Clock: cl, Log: log, Who: "test/load",
		Keep: keepMemory, JournalKeep: keepJournal, HistoryKeep: keepHistory, Project: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	var logs paper
	srv := server.New(server.Config{
		Plane: plane, Users: &user.Users{Lookup: lookup}, Log: log, Output: &logs, Now: cl.Now, Name: "load",
	})
	socket, err := transport.ListenSocket(filepath.Join(dir, "api"))
	if err != nil {
		return err
	}
	tcp, err := transport.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, []net.Listener{socket, tcp}...) }()
	go cl.run(ctx, world.Advance)
	err = obey(in, out, cl, &logs, tcp.Addr().String())
	stop()
	return errors.Join(err, <-served, plane.Close(), e.Close(), db.Close())
}

// obey does what the test says until it says no more.
func obey(in io.Reader, out io.Writer, cl *clock, logs *paper, tcp string) error {
	answer := json.NewEncoder(out)
	if err := answer.Encode(state{TCP: tcp}); err != nil {
		return err
	}
	for lines := json.NewDecoder(bufio.NewReader(in)); ; {
		var o order
		switch err := lines.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch {
		case o.Measure:
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what finalizers and pools let go of in the first
			runtime.ReadMemStats(&m)
			s := state{At: cl.Now().Sub(morning), Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine(), Logs: logs.open.Load()}
			if err := answer.Encode(s); err != nil {
				return err
			}
		case o.Profile != "":
			if err := profile(o.Profile, o.File); err != nil {
				return err
			}
		default:
			cl.grant(morning.Add(o.Grant))
		}
	}
}

func profile(name, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	text := 0
	if name == "goroutine" {
		text = 1
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, text), f.Close())
}

// The fleet.
const (
	nodeCount  = 24
	gpusEach   = 8
	cpusEach   = 64
	memoryEach = 512 << 30
)

func machines() []fleet.Node {
	var out []fleet.Node
	for i := range nodeCount {
		n := fleet.Node{
			Name: fmt.Sprintf("n%02d", i+1), State: fleet.Up, Path: []string{"spine", fmt.Sprintf("leaf%d", i/8+1)},
			Capacity: resource.Vector{CPU: resource.CPUs(cpusEach), Memory: memoryEach},
		}
		for g := range gpusEach {
			n.Devices = append(n.Devices, fleet.Device{Index: g, Minor: g, Kind: "gpu", Type: "h100", NUMA: g / 4, Memory: 80 << 30})
		}
		out = append(out, n)
	}
	return out
}

// The users of the trace; whoever runs the test is known by his number.
const (
	userCount = 12
	firstUID  = 20000
)

func userName(i int) string { return fmt.Sprintf("user%02d", i) }

func lookup(key string, id bool) (user.User, error) {
	for i := range userCount {
		u := user.User{Name: userName(i), UID: uint32(firstUID + i), GID: firstUID, Home: "/home/" + userName(i), Known: true}
		if id && key == fmt.Sprint(u.UID) || !id && key == u.Name {
			return u, nil
		}
	}
	return user.User{}, fault.New(fault.NotFound, "there is no user %s", key)
}

// outcome reads out of a job's script what becomes of it: "#fate RUN READY EXIT".
func outcome(l *engine.Launch) fake.Outcome {
	var run, ready, exit int
	_, fate, _ := strings.Cut(string(l.Script), "\n#fate ")
	if _, err := fmt.Sscan(fate, &run, &ready, &exit); err != nil {
		panic(fmt.Sprintf("the script of job %s: %v", l.Job.ID, err)) // all come from the trace
	}
	o := fake.Outcome{Ready: time.Duration(ready) * time.Second, Run: time.Duration(run) * time.Second}
	switch {
	case exit == exitOOM:
		o.Exit = fake.Exit{OOM: true, Code: job.ExitCode{Signal: 9}}
	case exit == exitLaunch && l.Ref.Attempt == 1:
		o.FailNode = l.Claims[0].Node
	case exit == exitLost && l.Ref.Attempt == 1:
		o.LoseNode, o.After = l.Claims[0].Node, o.Run/2
	case exit == exitResists:
		o.Resists = true
	case exit < exitOOM:
		o.Exit.Code.Status = exit
	}
	return o
}

// How attempts end, beside exit codes.
const (
	exitOOM     = 1000 + iota // at the memory limit
	exitLaunch                // the first attempt cannot start
	exitLost                  // the first attempt loses a node
	exitResists               // SIGTERM does not end it
)

// paper is what jobs print: the same text each. It counts who reads.
type paper struct{ open atomic.Int64 }

var printed = strings.Repeat("step 17: loss 2.4131, 4096 tokens in 0.21 s\n", 200)

type sheet struct {
	*strings.Reader
	logs *paper
}

func (s sheet) Close() error {
	s.logs.open.Add(-1)
	return nil
}

// OpenLog implements jobs.Output.
func (p *paper) OpenLog(context.Context, job.Owner, string) (io.ReadCloser, error) {
	p.open.Add(1)
	return sheet{strings.NewReader(printed), p}, nil
}
