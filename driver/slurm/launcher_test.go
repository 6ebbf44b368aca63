package slurm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// launcher runs jobs, as they were written, on a cluster whose slurmctld places them.
type launcher struct {
	*lab.Lab

	e    *slurm.Engine
	last uint64
}

// env is what jobs are submitted with. The nodes of a lab reach each other by the loopback
// device alone, which Open MPI would leave out.
func (l *launcher) env(more ...string) []string {
	return append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root", "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}, more...)
}

// launch begins a job.
func (l *launcher) launch(t *testing.T, s *job.Spec, script []byte, array *job.ArrayTask, env ...string) engine.Ref {
	t.Helper()
	l.last++
	ref := engine.Ref{Allocation: l.last, Attempt: 1}
	s.Owner = job.Owner{User: "root"}
	err := l.e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: job.ID(1000 + l.last), Attempt: 1, Spec: s, Array: array}, Script: script, Env: l.env(env...), Grace: time.Second,
		Claims: []fleet.Claim{{Node: "slurm", Tasks: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// over is the last report of an attempt.
func (l *launcher) over(t *testing.T, ref engine.Ref) engine.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var last engine.Report
	_ = l.e.Watch(ctx, "", func(ev engine.Event) error {
		if ev.Report.Ref == ref {
			if last = ev.Report; last.Gone {
				return context.Canceled
			}
		}
		return nil
	})
	if !last.Gone {
		t.Fatalf("%+v", last)
	}
	return last
}

// output is what a job has printed, read as the server reads it.
func (l *launcher) output(t *testing.T, r engine.Report) string {
	t.Helper()
	name, err := engine.LogFile(r, "stdout", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.e.OpenLog(t.Context(), job.Owner{}, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// script is a job as sbatch has it.
func (l *launcher) script(t *testing.T, dir, text string) *job.Spec {
	t.Helper()
	s, _, err := sbatch.Parse(spec.Source{Name: filepath.Join(dir, "job.sh"), Data: []byte(text)}, sbatch.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPrograms: what jobs are made of, on both versions: ranks that find each other, MPI by
// PMIx, names of files, variables, and the last line of what is printed.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newBench(nil, openHere)
			l := &launcher{Lab: lab.Start(t, c)}
			b.site, b.delegated = func() site.Site { return l.Command() }, true
			l.e = b.open(t, t.TempDir())
			t.Run("rendezvous", l.testRendezvous)
			t.Run("pmix", l.testPMIx)
			if os.Getenv("COX_LONG") != "" && !c.Modern {
				t.Run("torchrun", l.testTorchrun)
				t.Run("launcher: torchrun", l.testLauncherTorchrun)
			}
			t.Run("last line", l.testLastLine)
			t.Run("names", l.testNames)
			t.Run("environment", l.testEnvironment)
			t.Run("fewer directives", l.testChanged)
		})
	}
}

// testRendezvous runs examples/train.yaml as it is: two nodes, two ranks each, which find each
// other by MASTER_ADDR and train a network together. examples/native_test.go runs the same
// file on this machine.
func (l *launcher) testRendezvous(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.py", "train.yaml"} {
		b, err := os.ReadFile(filepath.Join("../../examples", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "train.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, script, _, err := native.Parse(spec.Source{Name: filepath.Join(dir, "train.yaml"), Data: text}, native.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := l.over(t, l.launch(t, s, script, nil, "TRAIN_EPOCHS=4", fmt.Sprintf("MASTER_PORT=%d", l.Port(0))))
	out := l.output(t, r)
	if !r.Exit.OK() || !strings.Contains(out, "weights identical on 4 ranks") {
		t.Fatalf("%+v\n%s", r, out)
	}
	for rank := range 4 {
		if want := fmt.Sprintf("rank %d of 4 on %s", rank, r.Nodes[rank/2].Node); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// sumProgram is a rank that adds the numbers of all ranks.
const sumProgram = `import os, torch, torch.distributed as d
d.init_process_group("gloo")
x = torch.tensor([float(d.get_rank())])
d.all_reduce(x)
print("rank %d of %d on %s: sum %d\n" % (d.get_rank(), d.get_world_size(), os.environ["SLURMD_NODENAME"], int(x)), end="", flush=True)
d.destroy_process_group()
`

// testTorchrun: torchrun's agents meet by c10d on the first node, and their ranks are a process
// group of gloo's. PyTorch is Debian's own, 1.13, which under Python 3.11 takes no other values of
// -r and -t than 1 and 2.
func (l *launcher) testTorchrun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sum.py"), []byte(sumProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "nodes: 2\ntasks_per_node: 1\nenv: {GLOO_SOCKET_IFNAME: lo, OMP_NUM_THREADS: \"1\"}\ncommand: |\n" +
		"  exec /usr/bin/python3 -m torch.distributed.run -r 1 -t 1 --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d --rdzv_id $SLURM_JOB_ID" +
		fmt.Sprintf(" --rdzv_endpoint $(scontrol show hostnames | head -n 1):%d sum.py\n", l.Port(1))
	s, script, _, err := native.Parse(spec.Source{Name: filepath.Join(dir, "sum.yaml"), Data: []byte(text)}, native.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := l.over(t, l.launch(t, s, script, nil))
	out := l.output(t, r)
	if !r.Exit.OK() || strings.Count(out, "of 4 on ") != 4 || strings.Count(out, ": sum 6\n") != 4 {
		t.Errorf("%+v\n%s", r, out)
	}
	for _, n := range r.Nodes {
		if strings.Count(out, n.Node+": sum") != 2 {
			t.Errorf("not two ranks on %s\n%s", n.Node, out)
		}
	}
}

// testLauncherTorchrun: launcher: torchrun of the native form makes the rendezvous and the ranks from
// what Slurm says of the job.
func (l *launcher) testLauncherTorchrun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sum.py"), []byte(sumProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "nodes: 2\ntasks_per_node: 2\nlauncher: torchrun\ncommand: python3 sum.py\n" +
		"env: {GLOO_SOCKET_IFNAME: lo, OMP_NUM_THREADS: \"1\", PET_REDIRECTS: \"1\", PET_TEE: \"1\", PATH: \"/usr/bin:/bin\"}\n"
	s, script, _, err := native.Parse(spec.Source{Name: filepath.Join(dir, "sum.yaml"), Data: []byte(text)}, native.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := l.over(t, l.launch(t, s, script, nil))
	out := l.output(t, r)
	if !r.Exit.OK() || strings.Count(out, "of 4 on ") != 4 || strings.Count(out, ": sum 6\n") != 4 {
		t.Errorf("%+v\n%s", r, out)
	}
}

const ring = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
	int rank, size, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d on %s: sum %d\n", rank, size, getenv("SLURMD_NODENAME"), sum);
	MPI_Finalize();
	return 0;
}
`

// crashesOfItself is where Open MPI 5.0.7 crashes on a busy machine, when a message comes before
// MPI_Init has come to whom it is for.
const crashesOfItself = "mca_pml_ob1_recv_frag_callback_match"

// testPMIx runs a script for MPI as it was written for Slurm, with Debian's Open MPI.
func (l *launcher) testPMIx(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ring.c"), []byte(ring), 0o644); err != nil {
		t.Fatal(err)
	}
	cc := exec.CommandContext(t.Context(), "mpicc", "-o", filepath.Join(dir, "ring"), filepath.Join(dir, "ring.c"))
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("mpicc: %v\n%s", err, out)
	}
	text := "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\n#SBATCH -o ring-%j.out\nset -e\nsrun --mpi=pmix ./ring\n"
	r := l.over(t, l.launch(t, l.script(t, dir, text), []byte(text), nil))
	out := l.output(t, r)
	for i := 0; i < 2 && strings.Contains(out, crashesOfItself); i++ {
		t.Log("Open MPI crashed in MPI_Init; once more")
		r = l.over(t, l.launch(t, l.script(t, dir, text), []byte(text), nil))
		out = l.output(t, r)
	}
	if !r.Exit.OK() || strings.Count(out, " of 4 on ") != 4 || strings.Count(out, ": sum 6\n") != 4 {
		t.Errorf("%+v\n%s", r, out)
	}
}

// testLastLine: what a job prints last before it ends is there when its end is known.
func (l *launcher) testLastLine(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\n#SBATCH -o last-%j\necho first\nprintf 'the last word of %s' \"$COX_JOB_ID\"\n"
	refs := make([]engine.Ref, 50)
	for i := range refs {
		refs[i] = l.launch(t, l.script(t, dir, text), []byte(text), nil)
	}
	for _, ref := range refs {
		r := l.over(t, ref)
		if out := l.output(t, r); !strings.HasSuffix(out, fmt.Sprintf("the last word of %d", r.Job)) {
			t.Errorf("%s: %q", ref, out)
		}
	}
}

// testNames: %j is Slurm's number, as SLURM_JOB_ID is; %A and %a are the array's, as
// SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID are.
func (l *launcher) testNames(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\n#SBATCH --output=%x-%5j-%A_%a-%N-%%-%u.out --error=err-%j\n#SBATCH --job-name=named\necho $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_MAX\necho oops >&2\n"
	s := l.script(t, dir, text)
	r := l.over(t, l.launch(t, s, []byte(text), &job.ArrayTask{Job: 5, Index: 3, Count: 4, Min: 0, Max: 7, Step: 1}))
	f := strings.Fields(l.output(t, r))
	if len(f) != 4 || !slices.Equal(f[1:], []string{"5", "3", "7"}) || len(r.Files) != 2 {
		t.Fatalf("%q %+v", f, r)
	}
	id, _ := strconv.Atoi(f[0])
	if want := fmt.Sprintf("%s/named-%05d-5_3-%s-%%-root.out", dir, id, r.Nodes[0].Node); r.Files[0] != want {
		t.Errorf("%s, want %s", r.Files[0], want)
	}
	if b, err := os.ReadFile(r.Files[1]); r.Files[1] != fmt.Sprintf("%s/err-%d", dir, id) || string(b) != "oops\n" || err != nil {
		t.Errorf("%s: %q %v", r.Files[1], b, err)
	}
	alone := "#!/bin/sh\n#SBATCH -o %A\ntrue\n"
	r = l.over(t, l.launch(t, l.script(t, dir, alone), []byte(alone), nil))
	if _, err := os.Stat(r.Files[0]); err != nil {
		t.Error(err)
	}
}

// testEnvironment: what of the submission's variables arrives, and what else.
func (l *launcher) testEnvironment(t *testing.T) {
	dir := t.TempDir()
	wants := map[string]string{"ALL": "a= 1 b= home=/root", "NONE": "a= b= home=/root", "A,B=2": "a= 1 b= 2 home=/root", "ALL,B=2": "a= 1 b= 2 home=/root"}
	refs := map[string]engine.Ref{}
	for export := range wants {
		text := "#!/bin/sh\n#SBATCH --export=" + export + "\necho a= $A b= $B home=$HOME job=$COX_JOB_ID\nsrun -n1 /bin/sh -c 'echo step $COX_JOB_ID'\n"
		refs[export] = l.launch(t, l.script(t, dir, text), []byte(text), nil, "A=1", "SBATCH_ARRAY_INX=1-3", "SLURM_PROCID=7")
	}
	for export, want := range wants {
		r := l.over(t, refs[export])
		out := l.output(t, r)
		if !r.Exit.OK() || !strings.Contains(out, want+" job="+r.Job.String()+"\n") || export == "ALL" && !strings.Contains(out, "step "+r.Job.String()) {
			t.Errorf("--export=%s: %+v\n%s", export, r, out)
		}
	}
}

// testChanged: what a job asks for by now counts, not what its script says.
func (l *launcher) testChanged(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\n#SBATCH -N2 --array=1-2 -t 1\n#SBATCH --constraint=none\n#SBATCH --nice=3 -A other\necho $SLURM_JOB_NUM_NODES\nscontrol show job $SLURM_JOB_ID\ncat <<E\n#SBATCH --array=7\nE\n"
	s := l.script(t, dir, text)
	s.Array, s.TimeLimit, s.Nice, s.Account = nil, time.Hour, 0, ""
	s.Groups[0].Nodes, s.Groups[0].Constraint = job.Range{Min: 3, Max: 3}, job.Constraint{}
	r := l.over(t, l.launch(t, s, []byte(text), nil))
	out := l.output(t, r)
	for _, want := range []string{`^3\n`, ` NumNodes=3 `, `TimeLimit=01:00:00`, `Features=\(null\)`, ` Nice=0 `, `\n#SBATCH --array=7\n`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
