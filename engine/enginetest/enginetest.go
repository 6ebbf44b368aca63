// Package enginetest is the conformance suite of engine.Engine: what every driver
// must do, one file per topic. A driver's own tests call Run with a Harness.
//
// Beside what a test asks for, every event of every test is checked against the
// rules that hold always (rules.go). Tests wait for events, never for time; where
// a driver has a fake clock, the harness moves it.
package enginetest

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Program is how the script of a job behaves.
type Program struct {
	Run     time.Duration // before it ends by itself; Forever: it does not
	Exit    int           // exit status
	Signal  int           // it ends itself by this signal, not by an exit
	Resists bool          // it and a child of it ignore SIGTERM
	Leaves  bool          // a child of it, in a session of its own, goes on when it ends
}

// Forever as Program.Run means until it is ended.
const Forever time.Duration = -1

// Harness is how the suite uses a driver. Nil functions skip what needs them.
type Harness struct {
	// New returns a driver with at least four nodes and no attempts. What it
	// started is ended, and it is closed, by t.Cleanup.
	New func(t *testing.T) engine.Engine
	// Script returns a batch script that behaves like the program. It writes the
	// line "ready" to its standard output once it does.
	Script func(p Program) []byte
	// Reopen closes the driver, calls a function, and opens another driver on what
	// the first one left.
	Reopen func(t *testing.T, e engine.Engine, closed func()) engine.Engine
	// Delegated says that the engine's own scheduler chooses the nodes: claims are on the pool
	// as a whole.
	Delegated bool
	// Waiting returns a driver as New does, whose own scheduler begins nothing; WaitingDelegated is Delegated for
	// it. The driver is an engine.Withdrawer.
	Waiting          func(t *testing.T) engine.Engine
	WaitingDelegated bool
	// Break makes a node fail every later launch on it, until the test ends.
	Break func(t *testing.T, e engine.Engine, node string)
	// Avoid keeps the engine's own scheduler off a node until the test ends, where that chooses.
	Avoid func(t *testing.T, e engine.Engine, node string)
	// Kill ends what watches over an attempt on a node, with no chance to act.
	Kill func(t *testing.T, e engine.Engine, ref engine.Ref, node string)
	// Living counts the processes of an attempt by other means than the driver's.
	Living func(t *testing.T, e engine.Engine, ref engine.Ref) int
	// Keeps says that the engine's Logger reads what the engine keeps itself, not files of the
	// owner's: Purge removes it, and while an attempt lives nothing else can read it.
	Keeps bool
	// Topics are those to be tested, by name; nil: all.
	Topics []string
	// Beside is how many tests may be under way at once, each with a driver of its own, where
	// drivers do not disturb each other; 0: one. A test that breaks a node is alone.
	Beside int
	// Shared says that other tests have the driver's nodes at the same time: none is closed.
	Shared bool
	// Outside acts on nodes past the driver.
	Outside Outside
	// Tick lets a little time pass and Now tells the time; nil: it passes by itself.
	Tick func(e engine.Engine)
	Now  func() time.Time

	turns chan struct{} // has one for every test that is under way
}

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// Run tests a driver. With Beside the tests go on when the caller has returned, as parallel
// subtests do.
func Run(t *testing.T, h Harness) {
	h.turns = make(chan struct{}, max(1, h.Beside))
	for _, topic := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Info", testInfo},
		{"Launch", testLaunch},
		{"Avoid", testAvoid},
		{"Gang", testGang},
		{"Exit", testExit},
		{"End", testEnd},
		{"Signal", testSignal},
		{"Limit", testLimit},
		{"Restart", testRestart},
		{"Lost", testLost},
		{"Unknown", testUnknown},
		{"Events", testEvents},
		{"Context", testContext},
		{"Forget", testForget},
		{"Fence", testFence},
		{"NodeFence", testNodeFence},
		{"Optional", testOptional},
		{"Withdraw", testWithdraw},
	} {
		if h.Topics != nil && !slices.Contains(h.Topics, topic.name) {
			continue
		}
		t.Run(topic.name, func(t *testing.T) {
			if h.Beside > 1 && topic.name != "Gang" && topic.name != "NodeFence" { // which break and close nodes
				t.Parallel()
			}
			topic.test(t, h)
		})
	}
}

// run runs a test of a topic, beside others where that may be.
func (h Harness) run(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if h.Beside > 1 {
			t.Parallel()
		}
		test(t)
	})
}

// bench is one test's driver with a watcher on it.
type bench struct {
	*testing.T
	Harness
	e     engine.Engine
	seen  *watcher
	plans map[engine.Ref]*engine.Launch
}

func startBench(t *testing.T, h Harness) *bench {
	t.Helper()
	asked := time.Now()
	h.turns <- struct{}{}
	t.Cleanup(func() { <-h.turns })
	if waited := time.Since(asked); waited > time.Second { // it counts as the test's in what go test says
		t.Logf("its turn came after %s", waited.Round(time.Second))
	}
	b := &bench{T: t, Harness: h, e: h.New(t), plans: map[engine.Ref]*engine.Launch{}}
	if b.Now == nil {
		b.Now = time.Now
	}
	b.seen = startWatch(t, b.e)
	return b
}

// reopenEngine puts another driver in the place of the present one; closed runs while
// there is none.
func (b *bench) reopenEngine(closed func()) {
	b.Helper()
	b.seen.stop()
	before := b.seen
	b.e = b.Reopen(b.T, b.e, closed)
	b.seen = startWatch(b.T, b.e)
	b.seen.continueFrom(before)
}

// planLaunch returns a launch of a job of one task per node on the first n nodes.
func (b *bench) planLaunch(allocation uint64, n int, p Program) *engine.Launch {
	b.Helper()
	var nodes []fleet.Node
	var err error
	b.pollUntil("the engine says its nodes", func() bool { // what it asks may be slow to answer
		nodes, err = b.e.Nodes(b.Context())
		return fault.KindOf(err) != fault.Unavailable
	})
	if err != nil || len(nodes) < 4 {
		b.Fatalf("%d nodes, %v; the suite needs 4", len(nodes), err)
	}
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: allocation, Attempt: 1},
		Job: &job.Job{ID: job.ID(100 + allocation), Attempt: 1, State: job.Running, Spec: &job.Spec{
			Name: "test", WorkDir: b.TempDir(),
			Groups:  []job.TaskGroup{{Nodes: job.Range{Min: n, Max: n}, Tasks: job.Count{Want: n}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "test.sh"},
		}},
		Script: b.Script(p),
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "NAME=value with spaces"},
		Grace:  5 * time.Second,
	}
	for _, node := range nodes[:n] {
		if !b.Delegated {
			l.Claims = append(l.Claims, fleet.Claim{Node: node.Name, Tasks: 1})
		}
	}
	if b.Delegated {
		l.Claims = []fleet.Claim{{Node: "@all", Tasks: n}}
	}
	b.plans[l.Ref] = l
	return l
}

// nodeOf is the k-th node of an attempt that runs.
func (b *bench) nodeOf(ref engine.Ref, k int) string {
	b.Helper()
	if !b.Delegated {
		return b.plans[ref].Claims[k].Node
	}
	return b.awaitRunning(ref).Nodes[k].Node
}

// mustLaunch launches and fails the test if that fails.
func (b *bench) mustLaunch(l *engine.Launch) engine.Ref {
	b.Helper()
	if err := b.e.Launch(b.Context(), l); err != nil {
		b.Fatalf("launch: %v", err)
	}
	return l.Ref
}

// launchProgram launches a program on n nodes.
func (b *bench) launchProgram(n int, p Program) engine.Ref {
	b.Helper()
	return b.mustLaunch(b.planLaunch(1, n, p))
}

// mustStop stops and fails the test if that fails.
func (b *bench) mustStop(ref engine.Ref, s engine.Stop) {
	b.Helper()
	if err := b.e.Stop(b.Context(), ref, s); err != nil {
		b.Fatalf("stop: %v", err)
	}
}

// awaitReport waits for an event of an attempt.
func (b *bench) awaitReport(ref engine.Ref, what string, want func(engine.Report) bool) engine.Report {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	for {
		r, ok, more := b.seen.findReport(ref, want)
		if ok {
			return r
		}
		if b.Tick != nil {
			b.Tick(b.e)
			time.Sleep(time.Millisecond) // the watcher's turn
			if ctx.Err() == nil {
				continue
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			b.Fatalf("attempt %s: no report that it is %s; the last one is %s", ref, what, b.seen.lastReport(ref))
		}
	}
}

func (b *bench) awaitRunning(ref engine.Ref) engine.Report {
	b.Helper()
	return b.awaitReport(ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
}

// awaitReady waits until the script of an attempt says that it behaves as it should.
// Nothing tells of that but its output.
func (b *bench) awaitReady(ref engine.Ref) {
	b.Helper()
	r := b.awaitReport(ref, "running its script", func(r engine.Report) bool { return len(r.Tasks) > 0 })
	if r.Tasks[0].Log == "" {
		return
	}
	b.pollUntil("its script is ready", func() bool {
		out, err := b.readOutput(r.Tasks[0].Log)
		return err == nil && strings.Contains(string(out), "ready\n")
	})
}

// readOutput reads what an attempt has printed so far.
func (b *bench) readOutput(name string) ([]byte, error) {
	if !b.Keeps {
		return os.ReadFile(name)
	}
	f, err := b.e.(engine.Logger).OpenLog(b.Context(), job.Owner{}, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// pollUntil waits for what no event tells.
func (b *bench) pollUntil(what string, is func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s", what)
		}
		if b.Tick != nil {
			b.Tick(b.e)
		}
	}
}

// awaitGone waits for the proved end, and checks the proof by other means.
func (b *bench) awaitGone(ref engine.Ref) engine.Report {
	b.Helper()
	r := b.awaitReport(ref, "gone", func(r engine.Report) bool { return r.Gone })
	if b.Living != nil {
		if n := b.Living(b.T, b.e, ref); n != 0 {
			b.Errorf("attempt %s is said to be gone, and %d of its processes live", ref, n)
		}
	}
	return r
}

// checkKind fails the test unless an error is of a kind.
func checkKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("error %v of kind %s, want one of kind %s", err, fault.KindOf(err), want)
	}
}

// checkEnded fails the test unless an attempt ended so.
func checkEnded(t *testing.T, r engine.Report, cause engine.Cause, code job.ExitCode) {
	t.Helper()
	if r.Phase != engine.Ended || r.Cause != cause || r.Exit != code {
		t.Errorf("%s, want ended, %s, %s", describeReport(r), cause, code)
	}
}

func describeReport(r engine.Report) string {
	return fmt.Sprintf("attempt %s version %d: %s, cause %q, %s, gone %t, uncertain %t, %q", r.Ref, r.Version, r.Phase, r.Cause, r.Exit, r.Gone, r.Uncertain, r.Message)
}
