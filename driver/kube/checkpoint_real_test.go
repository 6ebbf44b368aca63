package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testCheckpoints: what a job saves on a volume of the pool's is there for its next attempt, on
// another node, which is told what was reported last; the report comes while the job runs, once
// it has been signaled.
func testCheckpoints(t *testing.T, b *bench) {
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nobody goes through it
			t.Fatal(err)
		}
	}
	volume := nobody(t, filepath.Join(top, "volume"))
	if dir := filepath.Join(volume, "checkpoints"); os.Mkdir(dir, 0o700) != nil || os.Chmod(dir, 0o777|os.ModeSticky) != nil {
		t.Fatal(dir)
	}
	v, err := settings.ParseVolume("hostPath:" + volume)
	if err != nil {
		t.Fatal(err)
	}
	c := b.config(t, t.TempDir())
	c.Terms.Paths, c.Terms.Checkpoints = []settings.Path{{Prefix: "/scratch", Volume: v}}, "/scratch/checkpoints"
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	l := launch(1, `#!/bin/sh
if [ -n "$COX_RESTORE_FROM" ]; then echo "from $(cat $COX_RESTORE_FROM)"; exit 0; fi
trap 'echo saved >$COX_CHECKPOINT_DIR/step-7; echo step-7 >$COX_CHECKPOINT_DIR/new; mv $COX_CHECKPOINT_DIR/new $COX_CHECKPOINT_DIR/done' USR1
echo ready
while :; do sleep 0.2; done
`, "n1")
	l.Job.Spec.Owner, l.Job.Spec.WorkDir = job.Owner{User: "nobody", UID: 65534, GID: 65534}, "/tmp"
	b.l.Prints(t, "default", begin(t, e, l).Native+"-0", "ready\n")
	all, err := filepath.Glob(filepath.Join(volume, "checkpoints", "uid-65534", "cox-*-101"))
	if err != nil || len(all) != 1 {
		t.Fatalf("the job's directory: %v %v", all, err)
	}
	here := all[0]
	if err := e.Signal(t.Context(), l.Ref, int(syscall.SIGUSR1), engine.ToBatch); err != nil {
		t.Fatal(err)
	}
	saved := await(t, e, l.Ref, "saved", func(r engine.Report) bool { return r.Saved != nil }).Saved
	if saved.As != "step-7" {
		t.Errorf("%+v", saved)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped || r.Saved == nil || r.Saved.As != "step-7" {
		t.Errorf("%+v", r)
	}
	if st, err := os.Stat(here); err != nil || st.Mode().Perm() != 0o700 || st.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("%v %v", st, err)
	}

	again := launch(1, string(l.Script), "n2")
	again.Ref.Attempt, again.Job.Attempt, again.Job.Spec, again.Saved = 2, 2, l.Job.Spec, *saved
	if err := e.Launch(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, again.Ref); !r.Exit.OK() || r.Cause != engine.Exited {
		t.Errorf("%+v", r)
	}
	if log := printed(t, e, again); !strings.Contains(log, "from saved\n") {
		t.Errorf("the second attempt says %q", log)
	}
}
