package local_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestTheOutputSaysWhyAJobEnded: people and programs look in a job's output for Slurm's line.
// A step's line comes before it; a job that ends by itself has none.
//
// Seen to fail with: a file that is closed when the script starts, a stop without its cause.
func TestTheOutputSaysWhyAJobEnded(t *testing.T) {
	const lostNode = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
	for _, x := range []struct {
		name  string
		stop  engine.Stop
		limit time.Duration
		due   string
	}{
		{name: "cancelled", stop: engine.Stop{Grace: patience}},
		{name: "cancelled at once", stop: engine.Stop{}},
		{name: "preempted", stop: engine.Stop{Grace: patience, Why: engine.ForPreemption}, due: " DUE TO PREEMPTION"},
		{name: "requeued", stop: engine.Stop{Grace: patience, Why: engine.ForRequeue}, due: " DUE TO JOB REQUEUE"},
		{name: "time limit", limit: 5 * time.Second, due: " DUE TO TIME LIMIT"},
		{name: "node lost", due: lostNode},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, local.Config{})
			l := plan(t, e, 2, "echo start >&2", "srun sleep 600", "exec sleep 600")
			l.Job.Spec.Output.Stderr = "said"
			l.Job.Spec.TimeLimit = x.limit
			launch(t, e, l)
			r := until(t, e, l.Ref, func(r engine.Report) bool { ts := tasks(r, 0); return len(ts) == 2 && ts[0].Running && ts[1].Running })
			switch {
			case x.due == lostNode:
				if err := unix.Kill(r.Nodes[1].PID, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			case x.limit == 0:
				if err := e.Stop(t.Context(), l.Ref, x.stop); err != nil {
					t.Fatal(err)
				}
			}
			until(t, e, l.Ref, gone)
			said := read(t, filepath.Join(l.Job.Spec.WorkDir, "said"))
			node := regexp.QuoteMeta(l.Claims[0].Node)
			notice := func(of string) *regexp.Regexp {
				return regexp.MustCompile(fmt.Sprintf(`(?m)^slurmstepd: error: \*\*\* %s ON %s CANCELLED AT \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d%s \*\*\*$`, of, node, x.due))
			}
			if !strings.HasPrefix(said, "start\n") || len(notice("JOB 7").FindAllString(said, -1)) != 1 {
				t.Errorf("the job: %q", said)
			}
			// srun is killed too where there is no grace, and says on its own that it lost a node.
			if x.stop.Grace > 0 || x.limit > 0 {
				if len(notice(`STEP 7\.0`).FindAllString(said, -1)) != 1 {
					t.Errorf("its step: %q", said)
				}
			}
			if out := read(t, r.Files[0]); out != "" {
				t.Errorf("standard output: %q", out)
			}
		})
	}
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "exit 3")
	r := run(t, e, l)
	if out := read(t, r.Files[0]); out != "" {
		t.Errorf("one that ended by itself: %q", out)
	}
	l = plan(t, e, 1)
	l.Ref.Allocation, l.Job.Spec.TimeLimit, l.Script = 2, time.Second, nil
	l.Job.Spec.Program = job.Program{Kind: job.Direct, Args: []string{"sleep", "600"}}
	r = run(t, e, l)
	if out := read(t, r.Files[0]); !strings.Contains(out, "*** STEP 7.0 ON ") || strings.Contains(out, "*** JOB") {
		t.Errorf("a program without a script: %q", out)
	}
}
