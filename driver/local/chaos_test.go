package local_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// Engines that come and go at any moment, and supervisors that are killed: every
// attempt ends, its exit code is its own or the loss is said, and nothing lives.
func TestChaos(t *testing.T) {
	const seed = 1 // the moments are the machine's all the same
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root})
	nodes := e.Room()
	killed := map[engine.Ref]bool{}
	const attempts = 12
	for i := range attempts {
		l := plan(t, e, 1+rnd.IntN(4), "srun sleep 0.0"+string(rune('0'+rnd.IntN(10))), "exit 3")
		l.Ref.Allocation = uint64(i + 1)
		l.Grace = 200 * time.Millisecond
		launch(t, e, l)
		time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond) // any moment will do
		if rnd.IntN(3) == 0 {
			r, err := e.Inspect(t.Context(), l.Ref)
			if err != nil {
				t.Fatal(err)
			}
			if n := r.Nodes[rnd.IntN(len(r.Nodes))]; n.PID != 0 && !r.Gone {
				killed[l.Ref] = unix.Kill(n.PID, unix.SIGKILL) == nil
			}
		}
		if rnd.IntN(2) == 0 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = newEngine(t, local.Config{Root: root, Nodes: nodes})
		}
	}
	for i := range attempts {
		ref := engine.Ref{Allocation: uint64(i + 1), Attempt: 1}
		r := until(t, e, ref, gone)
		fine := r.Cause == engine.Exited && r.Exit.Status == 3
		if lost := r.Cause == engine.NodeLost || r.Cause == engine.LaunchFailed || r.Cause == engine.Unready; !fine && !(lost && killed[ref] && !r.Exit.OK()) {
			t.Errorf("%s: %s, %s, %q, killed %t", ref, r.Cause, r.Exit, r.Message, killed[ref])
		}
		if n := living(t, e, root, ref); n != 0 {
			t.Errorf("%s: %d processes live", ref, n)
		}
	}
}
