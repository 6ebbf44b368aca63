package slurm_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// planReplica is a launch of a replica that serves the files of a directory.
func planReplica(dir, node string) *engine.Launch {
	return &engine.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1},
		Job: &job.Job{ID: 7, Spec: &job.Spec{
			WorkDir: dir, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, Nodes: job.Range{Min: 1, Max: 1}}}, Program: job.Program{Kind: job.Batch},
			Serve: &job.Serve{
				Ports:     []job.Port{{Name: "http"}, {Name: "side-door"}},
				Readiness: &job.Probe{HTTP: "/health", Every: 50 * time.Millisecond, Failures: 1},
			},
		}},
		Script: []byte("#!/bin/sh\necho $PORT_HTTP $PORT_SIDE_DOOR >ports\nexec python3 -m http.server $PORT >served 2>&1\n"),
		Claims: []fleet.Claim{{Node: node, Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}}},
		Env:    []string{"PATH=" + os.Getenv("PATH")}, Grace: time.Minute,
	}
}

// untilServes waits for endpoints.
func untilServes(t *testing.T, e *slurm.Engine, want func(engine.Endpoints) bool) engine.Endpoints {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var last engine.Endpoints
	enough := errors.New("enough")
	err := e.WatchEndpoints(ctx, func(s engine.Endpoints) error {
		if last = s; want(s) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("%v; the last endpoints are %+v", err, last)
	}
	return last
}

// answers reports whether a replica answers.
func answers(s engine.Endpoints) error {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	r, err := c.Get("http://" + net.JoinHostPort(s.List[0].Host, strconv.Itoa(s.List[0].Number)) + "/health")
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// runAsNode runs the script that was handed over, as slurmd does.
func runAsNode(t *testing.T, s *stage, dir string) {
	t.Helper()
	s.taken(t)
	file := filepath.Join(t.TempDir(), "slurm_script")
	s.with(func() {
		if err := os.WriteFile(file, []byte(s.script), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	c := exec.Command(file)
	c.Env, c.Dir, c.SysProcAttr = append(os.Environ(), "SLURM_JOB_ID=101"), dir, &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	s.with(func() {
		j := &s.jobs[0]
		j.State, j.Nodes, j.Started = site.Running, []string{"n1"}, time.Now()
	})
}

// TestServes has a script choose its ports and serve, and the server look at it.
func TestServes(t *testing.T) {
	dir := t.TempDir()
	s := &stage{nodes: []site.Node{{Name: "n1", Address: "127.0.0.1", CPUs: 8, Available: true}}}
	e, _ := stageWith(t, s, func(c *slurm.Config) { c.ServicePorts = [2]int{20200, 20399} })
	l := planReplica(dir, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	runAsNode(t, s, dir)
	sick := untilServes(t, e, func(s engine.Endpoints) bool { return strings.Contains(s.Failed, "status 404") })
	if n := sick.List[0].Number; len(sick.List) != 2 || n < 20200 || n > 20399 || sick.List[1].Number != n+1 || sick.List[1].Port != "side-door" {
		t.Fatalf("%+v", sick)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "ports")); err != nil || string(b) != strconv.Itoa(sick.List[0].Number)+" "+strconv.Itoa(sick.List[1].Number)+"\n" {
		t.Errorf("the task has %q, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "health"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ready := untilServes(t, e, func(s engine.Endpoints) bool { return s.Ready })
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Drain: time.Hour, Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, func(s engine.Endpoints) bool { return !s.Ready })
	until(t, e, func(r engine.Report) bool { return r.Phase == engine.Ending })
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Drain: time.Hour}); err != nil { // repeated, it does not hasten
		t.Fatal(err)
	}
	first := e.Polls().Count
	for deadline := time.Now().Add(2 * time.Minute); e.Polls().Count < first+3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.with(func() {
		if err := answers(ready); err != nil || len(s.cancelled) > 0 {
			t.Errorf("while it is drained: %v, cancelled %d", err, s.cancelled)
		}
	})
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		ended := false
		if s.with(func() { ended = len(s.cancelled) > 0 }); ended {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it was not ended")
		}
	}
}

// TestServeThatSlurmCannot is refused by name.
func TestServeThatSlurmCannot(t *testing.T) {
	many := make([]job.Port, 9)
	for name, c := range map[string]struct {
		serve *job.Serve
		nodes bool
		want  string
	}{
		"a command":         {&job.Serve{Ports: many[:1], Liveness: &job.Probe{Exec: []string{"true"}}}, false, "the liveness probe runs a command"},
		"nine ports":        {&job.Serve{Ports: many}, false, "9 ports are to be chosen, and a job in a pool of Slurm can have 8"},
		"a log":             {&job.Serve{Ports: many[:1], Log: job.LogRotation{Keep: 3}}, false, "are not rotated"},
		"locks on nodes":    {&job.Serve{Ports: many[:1]}, true, "no way to tell the server which ports were chosen"},
		"a number on nodes": {&job.Serve{Ports: []job.Port{{Name: "http", Number: 8000}}}, true, ""},
		"a port of root's":  {&job.Serve{Ports: []job.Port{{Name: "http", Number: 22}}}, true, "port 22 of a node is not for programs of users"},
		"a closed port":     {&job.Serve{Ports: []job.Port{{Name: "http", Number: 8000}}}, false, "port 8000 is outside of the ports of services in pool "},
	} {
		t.Run(name, func(t *testing.T) {
			e, root := stageWith(t, &stage{}, func(cfg *slurm.Config) {
				if c.nodes {
					cfg.Room = lockdir.OnNodes("/var/tmp")
				} else {
					cfg.ServicePorts = [2]int{20200, 20399}
				}
			})
			l := planReplica(root, "n1")
			l.Job.Spec.Serve = c.serve
			err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script})
			if c.want == "" && err != nil || c.want != "" && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
