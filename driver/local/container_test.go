package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// inImage plans a script on n nodes inside of the lab's image.
func inImage(t *testing.T, e *local.Engine, n int, script ...string) *engine.Launch {
	t.Helper()
	l := plan(t, e, n, script...)
	l.Job.Spec.Image = podmanlab.Image
	return l
}

// outputOf runs a job to its end and returns its output.
func outputOf(t *testing.T, e *local.Engine, l *engine.Launch) (engine.Report, string) {
	t.Helper()
	launch(t, e, l)
	r := until(t, e, l.Ref, gone)
	b, err := os.ReadFile(filepath.Join(l.Job.Spec.WorkDir, "slurm-7.out"))
	if err != nil {
		t.Log(err)
	}
	return r, string(b)
}

// TestContainers: jobs and steps run inside of an image, by a real podman, and nothing of them is
// left.
func TestContainers(t *testing.T) {
	lab := podmanlab.Start(t)
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root, Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: lab.Podman}})
	nothingLeft := func(t *testing.T) {
		t.Helper()
		if left := lab.Containers(t); len(left) > 0 {
			files, _ := filepath.Glob(filepath.Join(root, "s", "*", "log"))
			for _, f := range files {
				t.Logf("%s: %s", f, read(t, f))
			}
			t.Errorf("containers are left: %s", lab.Call(t, "ps", "--all", "--format={{.Names}} {{.Status}}"))
		}
	}
	ref := uint64(0)
	next := func(n int, script ...string) *engine.Launch {
		l := inImage(t, e, n, script...)
		ref++
		l.Ref.Allocation = ref
		l.Job.Spec.WorkDir = t.TempDir()
		return l
	}
	t.Run("script and steps", func(t *testing.T) {
		l := next(2, "cat /etc/image; pwd", "srun -l sh -c 'echo $SLURM_PROCID $(cat /etc/image)'")
		r, out := outputOf(t, e, l)
		for _, want := range []string{"0: 0 made of busybox\n", "1: 1 made of busybox\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in the output", want)
			}
		}
		if !strings.HasPrefix(out, "made of busybox\n"+l.Job.Spec.WorkDir+"\n") || !r.Exit.OK() {
			t.Errorf("%+v: %s", r, out)
		}
		nothingLeft(t)
	})
	t.Run("as pyxis has it", func(t *testing.T) {
		l := next(1, "pwd; id -u; echo $FLAVOUR $SHARED $KEPT $LANG; ls /mnt; touch /mnt/x 2>/dev/null || echo read-only; test -d /scratch && echo scratch; echo $ENTERED")
		l.Job.Spec.Source.Form = "sbatch"
		l.Env = append(l.Env, "SHARED=job", "KEPT=job", "LANG=de_DE")
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "here"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l.Job.Spec.Container = &job.Container{Env: []string{"LANG"}, Entrypoint: new(true), Mounts: []job.Mount{
			{Source: dir, Target: "/mnt", Flags: []string{"ro"}}, {Source: "tmpfs", Target: "/scratch"},
		}}
		r, out := outputOf(t, e, l)
		if want := "/srv\n0\nimage image job de_DE\nhere\nread-only\nscratch\nyes\n"; out != want || !r.Exit.OK() {
			t.Errorf("%+v: %q, want %q", r, out, want)
		}
		nothingLeft(t)
	})
	t.Run("steps with images of their own", func(t *testing.T) {
		const in = "srun --container-image=" + podmanlab.Image
		l := next(2, "test -e /etc/image && echo inside", in+" -l sh -c 'echo $SLURM_PROCID $(cat /etc/image) $(pwd)'",
			in+" -N1 -n1 --container-name=kept sh -c 'echo word >/srv/word'", "srun -N1 -n1 --container-name=kept cat /srv/word",
			"srun -N1 -n1 --container-name=other true", "srun -N1 -n1 --container-mounts=/tmp true", "srun -N1 -n1 sh -c 'test -e /etc/image || echo outside'")
		l.Job.Spec.Image = ""
		_, out := outputOf(t, e, l)
		for _, want := range []string{
			"0: 0 made of busybox /srv\n", "1: 1 made of busybox /srv\n", "\nword\n", "\noutside\n",
			`this job has no container "other" on`, "options of a container need --container-image",
		} {
			if !strings.Contains("\n"+out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		nothingLeft(t)
	})
	t.Run("ends", func(t *testing.T) {
		defer nothingLeft(t) // after the others
		for script, want := range map[string]job.ExitCode{"exit 7": {Status: 7}, "kill -9 $$": {Signal: 9}, "exec no-such-program": {Status: 127}} {
			one := next(1, script)
			one.Job.ID = job.ID(one.Ref.Allocation)
			launch(t, e, one) // all at a time
			defer func() {
				if r := until(t, e, one.Ref, gone); r.Exit != want {
					t.Errorf("%s: %s, want %s; %s", script, r.Exit, want, read(t, filepath.Join(one.Job.Spec.WorkDir, fmt.Sprintf("slurm-%d.out", one.Job.ID))))
				}
			}()
		}
		l := next(2, "trap 'echo told; exit 3' TERM", `srun sh -c 'trap "echo task told; exit 4" TERM; touch ready$SLURM_PROCID; sleep 600 & wait; wait' &`, "wait; wait; sleep 600")
		launch(t, e, l)
		for _, name := range []string{"ready0", "ready1"} {
			eventually(t, name, func() bool { _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, name)); return err == nil })
		}
		if err := e.Stop(t.Context(), l.Ref, engine.Stop{Signal: 15, Grace: patience}); err != nil {
			t.Fatal(err)
		}
		r := until(t, e, l.Ref, gone)
		if out := read(t, filepath.Join(l.Job.Spec.WorkDir, "slurm-7.out")); r.Exit != (job.ExitCode{Status: 3}) || !strings.Contains("\n"+out, "\ntold\n") || tasks(r, 0)[0].Exit.Status != 4 || tasks(r, 0)[1].Exit.Status != 4 {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("directories of steps", func(t *testing.T) {
		const in = " --container-image=" + podmanlab.Image
		l := next(1, "srun pwd", "cd /etc; srun pwd", "srun --chdir=/tmp pwd", "srun"+in+" pwd", "srun --chdir=/tmp"+in+" pwd")
		if _, out := outputOf(t, e, l); out != l.Job.Spec.WorkDir+"\n/etc\n/tmp\n/srv\n/tmp\n" {
			t.Errorf("%q", out)
		}
		nothingLeft(t)
	})
	t.Run("the job's container by its name", func(t *testing.T) {
		const in = "srun --container-name=w "
		l := next(1, "echo word >/srv/word", in+"cat /srv/word", in+"--container-workdir=/etc pwd", in+"--container-mounts=/tmp:/mnt true")
		l.Job.Spec.Container = &job.Container{Name: "w"}
		_, out := outputOf(t, e, l)
		if !strings.HasPrefix(out, "word\n/etc\n") || !strings.Contains(out, `container-mounts: the container "w" was made otherwise`) {
			t.Errorf("%q", out)
		}
		nothingLeft(t)
	})
	t.Run("killed", func(t *testing.T) {
		for what, kill := range map[string]func(l *engine.Launch) int{
			"the runtime": func(l *engine.Launch) int {
				return processWith(t, "run\x00--rm", fmt.Sprintf("cox-7-%d-", l.Ref.Attempt))
			},
			"the supervisor": func(l *engine.Launch) int { return identity(t, root, l.Ref, l.Claims[0].Node).PID },
			"the init":       func(l *engine.Launch) int { return processWith(t, "bin/cox\x00"+container.InitCommand+"\x00") },
		} {
			l := next(1, "sleep 600")
			launch(t, e, l)
			until(t, e, l.Ref, running)
			if err := unix.Kill(kill(l), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if what == "the runtime" { // the job does not need it
				if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
					t.Fatal(err)
				}
			}
			r := until(t, e, l.Ref, gone)
			if r.Exit.OK() && r.Cause == engine.Exited {
				t.Errorf("%s was killed, and the job %+v", what, r)
			}
			nothingLeft(t)
		}
	})
	t.Run("two jobs on a node", func(t *testing.T) {
		const wait = "srun --container-image=" + podmanlab.Image + " --container-name=same --container-mounts=$PWD:/mnt sh -c 'touch /mnt/ready; until [ -e /mnt/go ]; do sleep 0.05; done; echo went on'"
		var jobs []*engine.Launch
		for _, id := range []job.ID{8, 9} {
			l := next(1, wait)
			l.Job.ID, l.Job.Spec.Image = id, ""
			l.Job.Spec.Container = nil
			launch(t, e, l)
			jobs = append(jobs, l)
		}
		for _, l := range jobs {
			eventually(t, "the step", func() bool { _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ready")); return err == nil })
		}
		for _, l := range jobs { // the end of the first leaves the second alone
			if err := os.WriteFile(filepath.Join(l.Job.Spec.WorkDir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := until(t, e, l.Ref, gone)
			if out := read(t, filepath.Join(l.Job.Spec.WorkDir, fmt.Sprintf("slurm-%d.out", l.Job.ID))); !r.Exit.OK() || out != "went on\n" {
				t.Errorf("%+v: %s", r, out)
			}
		}
		nothingLeft(t)
	})
	t.Run("MPI", func(t *testing.T) {
		testContainerMPI(t, e, lab, next)
		nothingLeft(t)
	})
	t.Run("private registry", func(t *testing.T) {
		testPrivateImage(t, e, lab, next)
		nothingLeft(t)
	})
	t.Run("another user", func(t *testing.T) { testOtherUsersImage(t, lab) })
	t.Run("half a gang", func(t *testing.T) { testHalfGang(t, lab) })
	t.Run("refused", func(t *testing.T) {
		defer nothingLeft(t) // after the others
		absent := next(2, "true")
		absent.Job.Spec.Image = "127.0.0.1:1/no/such:1"
		mount := next(2, "true")
		mount.Job.Spec.Container = &job.Container{Mounts: []job.Mount{{Source: "/no/such/dir", Target: "/mnt"}}}
		shell := next(1, "true")
		shell.Script = []byte("#!/bin/bash\ntrue\n")
		for want, l := range map[string]*engine.Launch{
			"image 127.0.0.1:1/no/such:1 cannot be pulled on":   absent,
			"container-mounts: /no/such/dir on":                 mount,
			"image " + podmanlab.Image + " has no /bin/bash or": shell,
		} {
			l.Job.ID = job.ID(l.Ref.Allocation)
			launch(t, e, l) // all at a time
			defer func() {
				if r := until(t, e, l.Ref, gone); !strings.Contains(r.Message, want) || r.Exit.OK() && r.Cause == engine.Exited {
					t.Errorf("%+v, want %q", r, want)
				}
			}()
		}
	})
}

// processWith is a process whose command line has all of some words.
func processWith(t *testing.T, words ...string) int {
	t.Helper()
	all, err := proc.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err == nil && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(line), w) }) {
			return p.PID
		}
	}
	t.Fatalf("no process has %q", words)
	return 0
}
