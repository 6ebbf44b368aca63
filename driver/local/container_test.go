package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
	b, err := os.ReadFile(outputFile(l))
	if err != nil {
		t.Log(err)
	}
	return r, string(b)
}

// outputFile is where the output of a job is.
func outputFile(l *engine.Launch) string {
	return filepath.Join(l.Job.Spec.WorkDir, fmt.Sprintf("slurm-%s.out", l.Job.ID))
}

// containers are jobs of one engine with one podman, whose image they share.
type containers struct {
	lab    *podmanlab.Lab
	root   string
	engine *local.Engine
	jobs   atomic.Uint64
}

// podmanJobs are jobs of a test that are planned, of which nothing may be left in the end.
type podmanJobs struct {
	*containers
	t    *testing.T
	mine []string // how the names of their containers begin
}

// TestContainers: jobs and steps run inside of an image, by a real podman, and nothing of them is
// left. Under the race detector only those are run in which most of the engine works.
func TestContainers(t *testing.T) {
	lab, root := podmanlab.Start(t), t.TempDir()
	c := &containers{lab: lab, root: root, engine: newEngine(t, local.Config{
		Root: root, Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: lab.Podman},
	})}
	t.Cleanup(func() {
		if left := lab.Containers(t); len(left) > 0 {
			t.Errorf("containers are left: %s", left)
		}
	})
	t.Run("killed", func(t *testing.T) { testKilledContainers(c.planFor(t)) }) // alone: it looks for processes by what they are
	for name, test := range map[string]func(*podmanJobs){
		"script and steps":                testScriptInImage,
		"as pyxis has it":                 testPyxisOptions,
		"steps with images of their own":  testStepImages,
		"ends":                            testContainerEnds,
		"directories of steps":            testStepDirectories,
		"the job's container by its name": testNamedContainer,
		"two jobs on a node":              testTwoJobsInContainers,
		"MPI":                             testContainerMPI,
		"private registry":                testPrivateImage,
		"another user":                    testOtherUsersImage,
		"half a gang":                     testHalfGang,
		"refused":                         testRefusedImages,
		"serving":                         testServingInContainer,
		"serving, own networks":           testServingInOwnNetwork,
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains([]string{"ends", "half a gang"}, name) {
				inUnit(t)
			}
			t.Parallel()
			test(c.planFor(t))
		})
	}
}

// planFor lets a test plan jobs.
func (c *containers) planFor(t *testing.T) *podmanJobs { return &podmanJobs{containers: c, t: t} }

// next plans a script on n nodes inside of the image, with a number and a folder of its own.
func (j *podmanJobs) next(n int, script ...string) *engine.Launch {
	j.t.Helper()
	l := inImage(j.t, j.engine, n, script...)
	l.Job.Spec.WorkDir = j.t.TempDir()
	j.number(l)
	return l
}

// number gives a job its number.
func (j *podmanJobs) number(l *engine.Launch) {
	id := j.jobs.Add(1)
	l.Ref.Allocation, l.Job.ID = id, job.ID(id)
	j.mine = append(j.mine, fmt.Sprintf("cox-%d-", id))
}

// nothingLeft fails if a container of one of these jobs is there.
func (j *podmanJobs) nothingLeft() {
	j.t.Helper()
	for _, name := range j.lab.Containers(j.t) {
		if !slices.ContainsFunc(j.mine, func(m string) bool { return strings.HasPrefix(name, m) }) {
			continue
		}
		j.t.Errorf("container %s is left: %s", name, j.lab.Call(j.t, "ps", "--all", "--format={{.Names}} {{.Status}}"))
		files, _ := filepath.Glob(filepath.Join(j.root, "s", "*", "log"))
		for _, f := range files {
			j.t.Logf("%s: %s", f, read(j.t, f))
		}
		return
	}
}

func testScriptInImage(j *podmanJobs) {
	l := j.next(2, "cat /etc/image; pwd", "srun -l sh -c 'echo $SLURM_PROCID $(cat /etc/image)'")
	r, out := outputOf(j.t, j.engine, l)
	for _, want := range []string{"0: 0 made of busybox\n", "1: 1 made of busybox\n"} {
		if !strings.Contains(out, want) {
			j.t.Errorf("no %q in the output", want)
		}
	}
	if !strings.HasPrefix(out, "made of busybox\n"+l.Job.Spec.WorkDir+"\n") || !r.Exit.OK() {
		j.t.Errorf("%+v: %s", r, out)
	}
	j.nothingLeft()
}

func testPyxisOptions(j *podmanJobs) {
	l := j.next(1, "pwd; id -u; echo $FLAVOUR $SHARED $KEPT $LANG; ls /mnt; touch /mnt/x 2>/dev/null || echo read-only; test -d /scratch && echo scratch; echo $ENTERED")
	l.Job.Spec.Source.Form = "sbatch"
	l.Env = append(l.Env, "SHARED=job", "KEPT=job", "LANG=de_DE")
	dir := j.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here"), nil, 0o600); err != nil {
		j.t.Fatal(err)
	}
	l.Job.Spec.Container = &job.Container{Env: []string{"LANG"}, Entrypoint: new(true), Mounts: []job.Mount{
		{Source: dir, Target: "/mnt", Flags: []string{"ro"}}, {Source: "tmpfs", Target: "/scratch"},
	}}
	r, out := outputOf(j.t, j.engine, l)
	if want := "/srv\n0\nimage image job de_DE\nhere\nread-only\nscratch\nyes\n"; out != want || !r.Exit.OK() {
		j.t.Errorf("%+v: %q, want %q", r, out, want)
	}
	j.nothingLeft()
}

func testStepImages(j *podmanJobs) {
	const in = "srun --container-image=" + podmanlab.Image
	l := j.next(2, "test -e /etc/image && echo inside", in+" -l sh -c 'echo $SLURM_PROCID $(cat /etc/image) $(pwd)'",
		in+" -N1 -n1 --container-name=kept sh -c 'echo word >/srv/word'", "srun -N1 -n1 --container-name=kept cat /srv/word",
		"srun -N1 -n1 --container-name=other true", "srun -N1 -n1 --container-mounts=/tmp true", "srun -N1 -n1 sh -c 'test -e /etc/image || echo outside'")
	l.Job.Spec.Image = ""
	_, out := outputOf(j.t, j.engine, l)
	for _, want := range []string{
		"0: 0 made of busybox /srv\n", "1: 1 made of busybox /srv\n", "\nword\n", "\noutside\n",
		`this job has no container "other" on`, "options of a container need --container-image",
	} {
		if !strings.Contains("\n"+out, want) {
			j.t.Errorf("no %q in %s", want, out)
		}
	}
	j.nothingLeft()
}

func testContainerEnds(j *podmanJobs) {
	t := j.t
	defer j.nothingLeft() // after the others
	for script, want := range map[string]job.ExitCode{"exit 7": {Status: 7}, "kill -9 $$": {Signal: 9}, "exec no-such-program": {Status: 127}} {
		one := j.next(1, script)
		launch(t, j.engine, one) // all at a time
		defer func() {
			if r := until(t, j.engine, one.Ref, gone); r.Exit != want {
				t.Errorf("%s: %s, want %s; %s", script, r.Exit, want, read(t, outputFile(one)))
			}
		}()
	}
	l := j.next(2, "trap 'echo told; exit 3' TERM", `srun sh -c 'trap "echo task told; exit 4" TERM; touch ready$SLURM_PROCID; sleep 600 & wait; wait' &`, "wait; wait; sleep 600")
	launch(t, j.engine, l)
	for _, name := range []string{"ready0", "ready1"} {
		eventually(t, name, func() bool { _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, name)); return err == nil })
	}
	if err := j.engine.Stop(t.Context(), l.Ref, engine.Stop{Signal: 15, Grace: patience}); err != nil {
		t.Fatal(err)
	}
	r := until(t, j.engine, l.Ref, gone)
	if out := read(t, outputFile(l)); r.Exit != (job.ExitCode{Status: 3}) || !strings.Contains("\n"+out, "\ntold\n") || tasks(r, 0)[0].Exit.Status != 4 || tasks(r, 0)[1].Exit.Status != 4 {
		t.Errorf("%+v: %s", r, out)
	}
}

func testStepDirectories(j *podmanJobs) {
	const in = " --container-image=" + podmanlab.Image
	l := j.next(1, "srun pwd", "cd /etc; srun pwd", "srun --chdir=/tmp pwd", "srun"+in+" pwd", "srun --chdir=/tmp"+in+" pwd")
	if _, out := outputOf(j.t, j.engine, l); out != l.Job.Spec.WorkDir+"\n/etc\n/tmp\n/srv\n/tmp\n" {
		j.t.Errorf("%q", out)
	}
	j.nothingLeft()
}

func testNamedContainer(j *podmanJobs) {
	const in = "srun --container-name=w "
	l := j.next(1, "echo word >/srv/word", in+"cat /srv/word", in+"--container-workdir=/etc pwd", in+"--container-mounts=/tmp:/mnt true")
	l.Job.Spec.Container = &job.Container{Name: "w"}
	_, out := outputOf(j.t, j.engine, l)
	if !strings.HasPrefix(out, "word\n/etc\n") || !strings.Contains(out, `container-mounts: the container "w" was made otherwise`) {
		j.t.Errorf("%q", out)
	}
	j.nothingLeft()
}

// testKilledContainers kills the runtime, the supervisor and the container's first process.
func testKilledContainers(j *podmanJobs) {
	t := j.t
	for what, kill := range map[string]func(l *engine.Launch) int{
		"the runtime": func(l *engine.Launch) int {
			return processWith(t, "run\x00--rm", fmt.Sprintf("cox-%d-%d-", l.Job.ID, l.Ref.Attempt))
		},
		"the supervisor": func(l *engine.Launch) int { return identity(t, j.root, l.Ref, l.Claims[0].Node).PID },
		"the init":       func(*engine.Launch) int { return processWith(t, "bin/cox\x00"+container.InitCommand+"\x00") },
	} {
		l := j.next(1, "sleep 600")
		launch(t, j.engine, l)
		until(t, j.engine, l.Ref, running)
		if err := unix.Kill(kill(l), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if what == "the runtime" { // the job does not need it
			if err := j.engine.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
				t.Fatal(err)
			}
		}
		r := until(t, j.engine, l.Ref, gone)
		if r.Exit.OK() && r.Cause == engine.Exited {
			t.Errorf("%s was killed, and the job %+v", what, r)
		}
		j.nothingLeft()
	}
}

// testTwoJobsInContainers: two jobs on a node have containers of the same name, each its own.
func testTwoJobsInContainers(j *podmanJobs) {
	const wait = "srun --container-image=" + podmanlab.Image + " --container-name=same --container-mounts=$PWD:/mnt sh -c 'touch /mnt/ready; until [ -e /mnt/go ]; do sleep 0.05; done; echo went on'"
	var jobs []*engine.Launch
	for range 2 {
		l := j.next(1, wait)
		l.Job.Spec.Image, l.Job.Spec.Container = "", nil
		launch(j.t, j.engine, l)
		jobs = append(jobs, l)
	}
	for _, l := range jobs {
		eventually(j.t, "the step", func() bool { _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ready")); return err == nil })
	}
	for _, l := range jobs { // the end of the first leaves the second alone
		if err := os.WriteFile(filepath.Join(l.Job.Spec.WorkDir, "go"), nil, 0o600); err != nil {
			j.t.Fatal(err)
		}
		r := until(j.t, j.engine, l.Ref, gone)
		if out := read(j.t, outputFile(l)); !r.Exit.OK() || out != "went on\n" {
			j.t.Errorf("%+v: %s", r, out)
		}
	}
	j.nothingLeft()
}

func testRefusedImages(j *podmanJobs) {
	defer j.nothingLeft() // after the others
	absent := j.next(2, "true")
	absent.Job.Spec.Image = "127.0.0.1:1/no/such:1"
	mount := j.next(2, "true")
	mount.Job.Spec.Container = &job.Container{Mounts: []job.Mount{{Source: "/no/such/dir", Target: "/mnt"}}}
	shell := j.next(1, "true")
	shell.Script = []byte("#!/bin/bash\ntrue\n")
	for want, l := range map[string]*engine.Launch{
		"image 127.0.0.1:1/no/such:1 cannot be pulled on":   absent,
		"container-mounts: /no/such/dir on":                 mount,
		"image " + podmanlab.Image + " has no /bin/bash or": shell,
	} {
		launch(j.t, j.engine, l) // all at a time
		defer func() {
			if r := until(j.t, j.engine, l.Ref, gone); !strings.Contains(r.Message, want) || r.Exit.OK() && r.Cause == engine.Exited {
				j.t.Errorf("%+v, want %q", r, want)
			}
		}()
	}
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
