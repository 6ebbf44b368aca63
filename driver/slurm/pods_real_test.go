package slurm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/podscript/podscripttest"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
	"github.com/coxswain-sched/coxswain/test/testcluster/samejob"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestPodsOnSlurm: the pods of a manifest run on real Slurm, by podman under slurmd, as they do on this
// machine: they find each other, have their files, and are ended when the master has ended.
func TestPodsOnSlurm(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, clusters["22.05"])
	podman := podmanlab.StartPodman(t)
	dir := shared(t)
	locks, err := openHere(filepath.Join(dir, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	way := &command.Here{Env: l.Env, Before: l.Inside}
	e, err := slurm.New(slurm.Config{
		Root: filepath.Join(dir, "state"), Pool: "slurm", Site: command.New(way), Room: locks, Secrets: command.NewSecretDir(way, false, ""),
		Placed: true, Settle: 3 * time.Second, Containers: sbatchargs.Podman,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	results, same := t.TempDir(), t.TempDir()
	w, secrets, err := samejob.Read(podmanlab.Image, same)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct {
		set   *podspec.Set
		check func(t *testing.T, r engine.Report, out string)
	}{
		{podscripttest.Train(podmanlab.Image, results), func(t *testing.T, r engine.Report, out string) {
			if problem := podscripttest.CheckTrain(results); !r.Exit.OK() || problem != "" {
				t.Errorf("%+v: %s\n%s", r, problem, out)
			}
		}},
		{w.Set, func(t *testing.T, r engine.Report, out string) {
			if problem := samejob.CheckFiles(same); !r.Exit.OK() || problem != "" {
				t.Errorf("%+v: %s\n%s", r, problem, out)
			}
		}},
		{podscripttest.Failing(podmanlab.Image, t.TempDir()), func(t *testing.T, r engine.Report, out string) {
			if r.Exit.Status != 7 || !strings.Contains(out, "pods: train-worker-1 on ") || !strings.Contains(out, "train-master-0 told to end") {
				t.Errorf("%+v: %s", r, out)
			}
		}},
	} {
		work := t.TempDir()
		text, err := json.Marshal(c.set)
		if err != nil {
			t.Fatal(err)
		}
		launch := planReplica(work, l.Nodes[0])
		launch.Ref.Allocation, launch.Job.ID = uint64(n+1), job.ID(n+1)
		launch.Script = text
		launch.Env = []string{"PATH=" + filepath.Dir(podman.Podman) + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
		s := launch.Job.Spec
		s.Serve, s.Program, s.Output.Stdout = nil, job.Program{Kind: job.Pods}, "out"
		s.Secrets = []job.Secret{{Name: "login.token", File: "login.token"}}
		launch.Secrets = []engine.Secret{{Secret: s.Secrets[0], Value: []byte(podscripttest.Token)}}
		if c.set == w.Set {
			s.Secrets, launch.Secrets = w.Job.Secrets, secrets
		}
		s.Groups = []job.TaskGroup{{Tasks: job.Count{Want: 1}}, {Tasks: job.Count{Want: 2}}}
		launch.Claims = []fleet.Claim{
			{Node: l.Nodes[0], Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}},
			{Node: l.Nodes[1], Group: 1, Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}},
			{Node: l.Nodes[2], Group: 1, Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}},
		}
		if err := e.Launch(t.Context(), launch); err != nil {
			t.Fatal(err)
		}
		r := until(t, e, func(r engine.Report) bool { return r.Ref == launch.Ref && gone(r) })
		out, err := os.ReadFile(filepath.Join(work, "out"))
		if err != nil {
			t.Error(err)
		}
		c.check(t, r, string(out))
		for _, node := range l.Nodes {
			if left, _ := filepath.Glob("/tmp/cox-pods-*/" + node); len(left) > 0 {
				t.Errorf("left: %s", left)
			}
		}
	}
}
