package srun

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/step/node"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// TestNothingRunsUnlessAllAreHeld starts a step of which one node cannot hold its
// task: no other task may have run its program.
func TestNothingRunsUnlessAllAreHeld(t *testing.T) {
	c := launch(t, steptest.Uniform(3, 1, 1, 0))
	if err := c.nodes[2].Close(); err != nil {
		t.Fatal(err)
	}
	got := c.run(`srun sh -c 'touch ran.$SLURM_PROCID'; code=$?; ls; exit $code`)
	if got.code != 1 || got.out != "" || !strings.Contains(got.err, "srun: error: v3: its supervisor does not answer") {
		t.Errorf("exit %d, files %q, said %s", got.code, got.out, got.err)
	}
	for _, n := range c.nodes[:2] {
		for _, s := range n.Tasks() {
			if s.Running || !s.Started.IsZero() {
				t.Errorf("a task was started: %+v", s)
			}
		}
	}
	if got := c.run(`srun -n2 -N2 echo next`); got.out != "next\nnext\n" {
		t.Errorf("the resources were not given back: %q %q", got.out, got.err)
	}
}

func TestClosingANodeEndsItsTasks(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 1, 1, 0))
	cmd := c.command(`srun sh -c 'touch up.$SLURM_PROCID; exec sleep 600' 2>said; echo $? > code`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"up.0", "up.1"} {
		waitFor(t, f, exists(filepath.Join(c.dir, f)))
	}
	if err := c.nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	if tasks := c.nodes[1].Tasks(); len(tasks) != 1 || tasks[0].Running || tasks[0].Exit.Signal != 15 {
		t.Errorf("tasks after Close: %+v", tasks)
	}
	if err := c.nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if code, _ := os.ReadFile(filepath.Join(c.dir, "code")); string(code) != "143\n" {
		said, _ := os.ReadFile(filepath.Join(c.dir, "said"))
		t.Errorf("srun ended with %s, said %s", code, said)
	}
}

// TestClosingAtAnyMoment closes the nodes while steps come and go: every task ends,
// and Close returns.
func TestClosingAtAnyMoment(t *testing.T) {
	for i := range 6 {
		c := launch(t, steptest.Uniform(2, 2, 4, 0))
		cmd := c.command(`for i in 1 2 3 4; do srun -Q -n4 --overlap sleep 600 & done; wait`)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "some tasks", func() bool { return stepsOf(c.nodes[1]) > i%4 })
		for _, n := range c.nodes {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
			for _, s := range n.Tasks() {
				if s.Running || syscall.Kill(s.PID, 0) == nil && !s.Started.IsZero() {
					t.Errorf("task lives after Close: %+v", s)
				}
			}
		}
		_ = cmd.Wait()
	}
}

// stepsOf counts the steps that have tasks on a node which have not ended.
func stepsOf(n *node.Node) int {
	steps := make(map[int]bool)
	for _, s := range n.Tasks() {
		if s.Ended.IsZero() {
			steps[s.Step] = true
		}
	}
	return len(steps)
}

func TestReportsAndRankLogs(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 1, 1, 0))
	got := c.run(`srun -l sh -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2; printf last; exit $SLURM_PROCID'`)
	if got.code != 1 {
		t.Errorf("exit %d", got.code)
	}
	for rank, node := range c.nodes {
		tasks := node.Tasks()
		if len(tasks) != 1 {
			t.Fatalf("tasks: %+v", tasks)
		}
		s := tasks[0]
		if s.Rank != rank || s.Running || s.Exit.Status != rank || s.PID == 0 || s.Started.IsZero() || s.Ended.Before(s.Started) {
			t.Errorf("state %+v", s)
		}
		text, err := os.ReadFile(s.Log)
		if err != nil || len(text) != len("out 0\nerr 0\nlast") || !strings.Contains(string(text), fmt.Sprintf("err %d\n", rank)) {
			t.Errorf("log %q, %v", text, err)
		}
		c.mu.Lock()
		seen := c.reports[reportKey{0, rank}]
		c.mu.Unlock()
		if len(seen) < 2 || !seen[0].Running && seen[0].Ended.IsZero() || seen[len(seen)-1].Ended.IsZero() {
			t.Errorf("reports %+v", seen)
		}
	}
}

// TestOutputStandsInTheLogFirst checks, while a task waits, that what srun printed
// is already in the log.
func TestOutputStandsInTheLogFirst(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 1, 0))
	got := c.run(`mkfifo go; srun sh -c 'echo one; read x < go' | { read line; cat ` + c.logs + `/0.0.log; echo > go; cat; }`)
	if got.out != "one\n" {
		t.Errorf("the log held %q when the line was printed", got.out)
	}
}

func TestMuchInputAndOutput(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 2, 2, 0))
	got := c.run(`head -c 3000000 /dev/zero | tr '\0' x | fold -w 99 > in; srun -n4 -N2 md5sum < in | sort -u | wc -l; srun -n4 -N2 cat < in | wc -c; wc -c < in`)
	f := strings.Fields(got.out)
	if len(f) != 3 || f[0] != "1" {
		t.Fatalf("printed %q, said %s", got.out, got.err)
	}
	var out, in int
	fmt.Sscan(f[1], &out)
	fmt.Sscan(f[2], &in)
	if in == 0 || out != 4*in {
		t.Errorf("4 × %d bytes went in, %d came out", in, out)
	}
}

// TestReaderOfOutputGoesAway lets the reader of srun's output end first: the tasks
// are not disturbed.
func TestReaderOfOutputGoesAway(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 2, 2, 0))
	got := c.run(`set -o pipefail; srun sh -c 'echo a; sleep 0.1; echo b; touch done.$SLURM_PROCID' | head -n 1; echo ${PIPESTATUS[0]}; ls done.*`)
	if got.out != "a\n0\ndone.0\ndone.1\ndone.2\ndone.3\n" {
		t.Errorf("printed %q, said %q", got.out, got.err)
	}
}

func TestInputNobodyReads(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 1, 1, 0))
	got := c.run(`yes | srun sh -c 'if [ $SLURM_PROCID = 0 ]; then exec sleep 0.2; else head -n 100000 | wc -l; fi'`)
	if strings.TrimSpace(got.out) != "100000" || got.code != 0 {
		t.Errorf("exit %d, printed %q, said %q", got.code, got.out, got.err)
	}
}

func TestStrangersAndOtherVersionsAreRefused(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 1, 0))
	conn, err := net.DialTimeout("unix", c.alloc.Nodes[0].Socket, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l := wire.NewLink(conn)
	defer l.Close()
	if err := l.SendJSON(wire.MsgHello, wire.Hello{Version: wire.Protocol + 1}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err != nil || f.Kind != wire.MsgRefused || !strings.Contains(string(f.Body), "version") {
		t.Errorf("answer %+v, %v", f, err)
	}
}

func TestGarbageDoesNotHurtANode(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 1, 0))
	rapid.Check(t, func(r *rapid.T) {
		conn, err := net.Dial("unix", c.alloc.Nodes[0].Socket)
		if err != nil {
			r.Fatal(err)
		}
		l := wire.NewLink(conn)
		if rapid.Bool().Draw(r, "hello") {
			_ = l.SendJSON(wire.MsgHello, wire.Hello{Version: wire.Protocol})
		}
		for range rapid.IntRange(0, 3).Draw(r, "frames") {
			_ = l.Send(wire.Frame{
				Kind: wire.Kind(rapid.Byte().Draw(r, "kind")), Rank: rapid.IntRange(-2, 2).Draw(r, "rank"), Number: rapid.IntRange(0, 2).Draw(r, "number"),
				Body: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(r, "body"),
			})
		}
		_, _ = conn.Write(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(r, "bytes"))
		l.Close()
	})
	if got := c.run(`srun echo alive`); got.out != "alive\n" {
		t.Errorf("printed %q, said %q", got.out, got.err)
	}
}

func TestRankText(t *testing.T) {
	for want, ranks := range map[string][]int{"task 3": {3}, "tasks 0-2,5": {5, 0, 2, 1}, "tasks 1,3": {3, 1}} {
		if got := rankText(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
}

func TestHelpNamesTheOptions(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 1, 0))
	got := c.run(`srun --help; srun --version; srun --mpi=list`)
	for _, want := range []string{`-n, --ntasks=VALUE`, `--kill-on-bad-exit\[=VALUE\]`, `as slurm`, `pmi1`} {
		if !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
}
