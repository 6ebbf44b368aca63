package srun

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
)

// launchFault makes a spawner fail from its second process of the first step on.
type launchFault struct {
	name string
	err  error    // of Spawn; nil: args are started in place of the task
	args []string // the program that runs in the task's place; nil: one that hangs
	say  string   // what srun says
}

var launchFaults = []launchFault{
	{"no process", syscall.EAGAIN, nil, "task 1 cannot be started: no more processes can be made on this node: resource temporarily unavailable"},
	{"no descriptor", syscall.EMFILE, nil, "task 1 cannot be started: no file descriptor is left on this node: too many open files; run fewer tasks on it"},
	{"too long", syscall.E2BIG, nil, "task 1 cannot be started: argument list too long: its arguments have"},
	{"no memory", syscall.ENOMEM, nil, "task 1 cannot be started: no memory is left on this node for a process: cannot allocate memory"},
	{"no executable", syscall.ENOENT, nil, "task 1 cannot be started: no such file or directory"},
	{"ends before its barrier", nil, []string{"/bin/false"}, "task 1: it ended before it was ready"},
	{"hangs before its barrier", nil, nil, ""},
}

// failFrom returns a spawner's hook that fails from its nth process on.
func (f launchFault) failFrom(n int) func(*barrier.Cmd) error {
	var seen atomic.Int32
	return func(c *barrier.Cmd) error {
		if int(seen.Add(1)) < n || c.Step > 0 {
			return nil
		}
		if f.err == nil {
			c.Path, c.Args = f.args[0], f.args
		}
		return f.err
	}
}

// TestEveryFaultOfALaunchEndsTheStep: a step of which a task cannot be started ends with a
// reason, nothing of it runs, and its resources are given back. One that hangs ends when
// its srun does.
//
// Seen to fail with: a task that waits for output that nobody copies (it did), an srun that
// is answered after the end of its tasks, a held task that is only asked to end.
func TestEveryFaultOfALaunchEndsTheStep(t *testing.T) {
	for _, f := range launchFaults {
		streamOptions := []string{""}
		if f.err == syscall.EAGAIN {
			streamOptions = append(streamOptions, "-i none -o none", "-o out.%t -e err.%t")
		}
		for _, streams := range streamOptions {
			t.Run(f.name+" "+streams, func(t *testing.T) {
				c := launch(t, steptest.Uniform(1, 3, 3, 0))
				end := "; code=$?"
				if f.say == "" { // it ends once a task hangs
					f.args = []string{"/bin/sh", "-c", "touch " + c.dir + "/hangs; exec sleep 1000"}
					end = "& until [ -e hangs ]; do sleep 0.02; done; kill $!; wait $!; code=$?"
				}
				c.spawn.InjectFault(f.failFrom(2))
				got := c.run("srun -n3 " + streams + ` sh -c 'touch ran.$SLURM_PROCID' </dev/null ` + end + "; ls ran.* 2>/dev/null; exit $code")
				if got.code == 0 || got.out != "" || !strings.Contains(got.err, f.say) {
					t.Errorf("exit %d, files %q, said %q", got.code, got.out, got.err)
				}
				if got := c.run("srun -n3 echo next"); got.out != "next\nnext\nnext\n" {
					t.Errorf("the resources were not given back: %q %q", got.out, got.err)
				}
			})
		}
	}
}

// TestAHungLaunchEndsWithItsNode: Close ends a task that never comes to its barrier.
func TestAHungLaunchEndsWithItsNode(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 1, 0))
	c.spawn.InjectFault(launchFault{args: []string{"/bin/sh", "-c", "trap '' TERM; touch " + c.dir + "/hangs; sleep 1000"}}.failFrom(1))
	cmd := c.command("srun true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a task hangs", func() bool { _, err := os.Stat(c.dir + "/hangs"); return err == nil })
	if err := c.nodes[0].Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("srun reports a success")
	}
}
