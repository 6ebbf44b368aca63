package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// launchFault is a place at which the launch of a step fails, with a script that meets it.
type launchFault struct {
	name   string
	step   string // exits 0 if the fault was not met
	say    string // in the job's output
	nofile string // limit of the supervisor's descriptors
}

var launchFaults = []launchFault{
	{name: "no process", step: "srun -O -n 40 sleep 600", say: "(jobs.processes of the server's configuration)"},
	{name: "no descriptor", step: "srun -O -n 40 sleep 600", say: "too many open files; run fewer tasks on it", nofile: "80"},
	{
		name: "too long", say: "rgument list too long",
		step: "ulimit -s unlimited; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do export BIG$i=$(head -c 100000 /dev/zero | tr '\\0' a); done; srun /bin/true",
	},
	{name: "no executable", step: `cp -L "$COX_BIN/srun" srun && rm "$COX_BIN/cox" && ./srun true`, say: "no such file or directory"},
	{name: "a supervisor that hangs", step: `kill -STOP $PPID; false`},
}

// TestAJobCanAlwaysBeEnded: whatever fails while a step is launched, the step ends with a
// reason, and the job by itself, by a stop with a grace, by one without and by its time limit.
//
// Seen to fail with: a task that waits for output that nobody copies (it did, in each but the
// last), a limit that only the supervisor enforces (the last).
func TestAJobCanAlwaysBeEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("the threads of the race detector alone are more than the limit of processes")
	}
	ends := map[string]engine.Cause{"itself": engine.Exited, "stop": engine.Stopped, "stop now": engine.Stopped, "limit": engine.TimedOut}
	for _, f := range launchFaults {
		for how, cause := range ends {
			if how == "itself" && f.say == "" {
				continue
			}
			t.Run(f.name+" "+how, func(t *testing.T) {
				t.Parallel()
				cfg := local.Config{Deaf: time.Second, Overdue: 100 * time.Millisecond}
				if f.name == "no process" {
					cfg.Processes = 30
				}
				e := newEngine(t, cfg)
				then := "exit 3"
				if how != "itself" {
					then = "sleep 600"
				}
				met := filepath.Join(t.TempDir(), "met")
				l := plan(t, e, 1, f.step+" && exit 0", ": >"+met, then)
				l.Env = append(l.Env, "COX_BIN="+filepath.Join(e.Root(), "bin"))
				l.Grace = 200 * time.Millisecond
				if f.nofile != "" {
					if err := os.WriteFile(filepath.Join(e.Root(), "nofile."+l.Claims[0].Node), []byte(f.nofile), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if how == "limit" {
					l.Job.Spec.TimeLimit = 300 * time.Millisecond
				}
				launch(t, e, l)
				if strings.HasPrefix(how, "stop") {
					eventually(t, "the fault was met", func() bool { _, err := os.Stat(met); return err == nil })
					s := engine.Stop{Grace: l.Grace}
					if how == "stop now" {
						s = engine.Stop{Signal: 9}
					}
					if err := e.Stop(t.Context(), l.Ref, s); err != nil {
						t.Fatal(err)
					}
				}
				r := until(t, e, l.Ref, gone)
				out := read(t, filepath.Join(l.Job.Spec.WorkDir, "slurm-7.out"))
				if r.Cause != cause || r.Exit.OK() || how != "limit" && !strings.Contains(out, f.say) {
					t.Errorf("%s, %s: %q\n%s", r.Cause, r.Exit, r.Message, out)
				}
			})
		}
	}
}
