package sbatchargs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs/sbatchargstest"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// fakeSrun runs the command of its line twice, as two tasks.
const fakeSrun = `#!/bin/sh
case "$*" in *--ntasks-per-node=1*) tasks=0 ;; *) tasks="0 1" ;; esac
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
for SLURM_PROCID in $tasks; do
	export SLURM_PROCID
	"$@" || code=$?
done
exit $code
`

// boxedJob is a native job in the lab's image, with a command or a script.
func boxedJob(t *testing.T, script bool) *job.Spec {
	s := sbatchargstest.Job()
	s.Source.Form, s.Image, s.WorkDir = "native", podmanlab.Image, t.TempDir()
	if script {
		s.Program = job.Program{Kind: job.Batch, Args: []string{"an argument"}}
	}
	return s
}

func build(c Settings, s *job.Spec, script string) (*Job, error) {
	return c.Build(&job.Job{ID: 7, Spec: s}, engine.Ref{Allocation: 3, Attempt: 1}, nil, []byte(script))
}

// TestImagesByPodman runs what is handed over for jobs with an image, with a real podman and an srun
// that starts two tasks.
func TestImagesByPodman(t *testing.T) {
	lab := podmanlab.StartPodman(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "srun"), []byte(fakeSrun), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(s *job.Spec, script string) (string, int) {
		t.Helper()
		w, err := build(Settings{Containers: Podman}, s, script)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(name, w.Script, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(name, w.Args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+filepath.Dir(lab.Podman)+":"+os.Getenv("PATH"), "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_ID=5", "SHARED=job", "KEPT=job", "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):]); len(left) > 0 {
			t.Errorf("left in TMPDIR: %v", left)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	s := boxedJob(t, false)
	s.Program.Args = []string{"sh", "-c", `echo "$SLURM_PROCID $(cat /etc/image) $SHARED $KEPT $(pwd)"; exit "$SLURM_PROCID"`}
	if out, code := run(s, ""); code != 1 || out != "0 made of busybox image job "+s.WorkDir+"\n1 made of busybox image job "+s.WorkDir+"\n" {
		t.Errorf("exit %d: %s", code, out)
	}
	s = boxedJob(t, true)
	s.Container = &job.Container{Env: []string{"SHARED"}, Entrypoint: new(true), Mounts: []job.Mount{{Source: ".", Target: "/mnt", Flags: []string{"ro"}}, {Source: "tmpfs", Target: "/scratch"}}}
	if out, code := run(s, "#!/bin/sh\necho \"$1\" $(cat /etc/image) $SHARED $ENTERED it\\'s\ntouch /mnt/x 2>/dev/null || echo read-only\ntest -d /scratch && exit 3"); code != 3 ||
		!strings.HasSuffix(out, "an argument made of busybox job yes it's\nread-only\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	s = boxedJob(t, false)
	s.Image = "127.0.0.1:1/no/such:1"
	if out, code := run(s, ""); code == 0 || !strings.Contains(out, "127.0.0.1:1/no/such:1") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestImagesByOtherRuntimes: what is handed over, or why it is refused.
func TestImagesByOtherRuntimes(t *testing.T) {
	named := &job.Container{Name: "n"}
	for name, c := range map[string]struct {
		runtime ContainerRuntime
		script  bool
		change  func(*job.Spec)
		want    string // of the script and the options
		refused string
	}{
		"pyxis, a command":  {runtime: Pyxis, want: "exec srun --container-image=" + podmanlab.Image},
		"pyxis, a script":   {script: true, want: "--container-image=" + podmanlab.Image},
		"apptainer":         {runtime: Apptainer, want: "exec apptainer exec --no-mount=cwd --no-home --writable-tmpfs"},
		"apptainer, a file": {runtime: Apptainer, change: func(s *job.Spec) { s.Image = "/i.sif" }, want: " $more /i.sif "},
		"enroot":            {runtime: Enroot, want: `enroot start --rc "$rc" --rw`},
		"enroot, tidied":    {runtime: Enroot, script: true, want: "enroot remove --force"},
		"none":              {runtime: NoContainers, refused: "container_runtime: none"},
		"a name":            {runtime: Podman, change: func(s *job.Spec) { s.Container = named }, refused: "name needs pyxis"},
		"a batch script":    {runtime: Podman, script: true, change: func(s *job.Spec) { s.Source.Form = Form }, refused: "needs pyxis"},
		"apptainer and noexec": {runtime: Apptainer, change: func(s *job.Spec) {
			s.Container = &job.Container{Mounts: []job.Mount{{Source: "/a", Target: "/b", Flags: []string{"noexec"}}}}
		}, refused: "noexec"},
	} {
		s := boxedJob(t, c.script)
		if c.change != nil {
			c.change(s)
		}
		w, err := build(Settings{Containers: c.runtime}, s, "#!/bin/sh\ntrue\n")
		switch {
		case c.refused != "":
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.refused) || fault.Remedy(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !strings.Contains(string(w.Script)+strings.Join(w.Options, "\n"), c.want):
			t.Errorf("%s: no %q in %s%q", name, c.want, w.Script, w.Options)
		default:
			cmd := exec.Command("sh", "-n")
			cmd.Stdin = strings.NewReader(string(w.Script))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", name, err, out, w.Script)
			}
		}
	}
}
