// Package hardcase holds failures that broke other systems in production, each as a
// story on the embedded engine: arrange, the failure, what must hold. The numbers are
// those of docs/explanation/hard-cases.md, where each has its reference and its test; a few without a
// number stand there too. Jobs are real
// processes under the server as it is shipped; where one machine cannot do what the
// case needs, the fake engine does, and the test says so.
package hardcase

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == replicaArg {
		os.Exit(replicaMain(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 2 && os.Args[1] == pythonArg {
		os.Exit(pythonMain(os.Args[2:]))
	}
	if len(os.Args) == 5 && os.Args[1] == submitArg {
		os.Exit(submitMain(os.Args[2], os.Args[3], os.Args[4]))
	}
	plane.Main(m, map[string]plane.Fault{
		"dies after a launch": func(o *daemon.Options) { o.Engine = func(e engine.Engine) engine.Engine { return diesAfterLaunch{e} } },
		"dies before a start is written": func(o *daemon.Options) {
			o.Store = func(s store.Store) store.Store {
				return diesBefore{s, "attempt-started", filepath.Join(filepath.Dir(o.Config.State.Dir), "diary")}
			}
		},
		"dies before an end is written": func(o *daemon.Options) {
			o.Store = func(s store.Store) store.Store { return diesBefore{s, "attempt-ended", ""} }
		},
	})
}

// die is kill -9 at this very place.
func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

type diesAfterLaunch struct{ engine.Engine }

func (e diesAfterLaunch) Launch(ctx context.Context, l *engine.Launch) error {
	if err := e.Engine.Launch(ctx, l); err != nil {
		return err
	}
	die()
	return nil
}

// diesBefore dies before it writes a kind of record, and not before something stands in
// a file of the jobs.
type diesBefore struct {
	store.Store
	kind, file string
}

func (s diesBefore) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	for _, r := range recs {
		if r.Kind == s.kind {
			for st, err := os.Stat(s.file); s.file != "" && (err != nil || st.Size() == 0); st, err = os.Stat(s.file) {
				time.Sleep(5 * time.Millisecond) // another process writes it
			}
			die()
		}
	}
	return s.Store.Append(ctx, epoch, recs)
}

// nodes is a room of n virtual nodes with g declared GPUs each.
func nodes(n, g int) func(*config.Config) {
	return func(c *config.Config) { c.Room.Nodes, c.Room.GPUsPerNode = n, g }
}

// alone makes a job that takes a node for itself.
const alone = "--exclusive"

// identity is a line of a diary that says which attempt of which job writes, and where.
const identity = "$SLURM_JOB_ID attempt $((SLURM_RESTART_COUNT+1)) on $SLURMD_NODENAME"

// pid makes a number of a line of a diary.
func pid(t *testing.T, line string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%q is no process", line)
	}
	return n
}
