package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	world "github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// slurmSite is a server beside a cluster of real Slurm, or with pools of other kinds alone: then it
// has no Lab.
type slurmSite struct {
	*lab.Lab

	server string
	stop   func()
	dir    string // the server's
}

func (s *slurmSite) cox(t *testing.T, args ...string) clitest.Ran {
	t.Helper()
	return coxAt(t, s.server, "", args...)
}

// ok is cox for what has to succeed for anything else to be worth trying.
func (s *slurmSite) ok(t *testing.T, want string, args ...string) string {
	t.Helper()
	r := s.cox(t, args...)
	if r.Code != 0 || !strings.Contains(r.Out, want) {
		t.Fatalf("cox %s: exit %d, want %q in\n%s%s", strings.Join(args, " "), r.Code, want, r.Out, r.Err)
	}
	return r.Out
}

// eventually waits until a command says something, for which there is no event.
func (s *slurmSite) eventually(t *testing.T, want string, args ...string) string {
	t.Helper()
	var r clitest.Ran
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r = s.cox(t, args...); regexp.MustCompile(want).MatchString(r.Out) {
			return r.Out
		}
	}
	t.Fatalf("cox %s never says %q:\n%s%s", strings.Join(args, " "), want, r.Out, r.Err)
	return ""
}

// addPool adds a pool of the lab and waits until it is up. It is gone after the test in any case, so that
// the pools of later ones find the machines free.
func (s *slurmSite) addPool(t *testing.T, pool, up string, settings ...string) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return // the test has removed it
		}
		s.cox(t, "cancel", "--now", "--quiet", "--yes", "--all")
		_, _ = s.Try(context.Background(), "scancel", "--user=root")
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if r := s.cox(t, "pool", "remove", pool); r.Code == 0 || r.Code == 3 { // 3: there is none
				return
			}
		}
		t.Logf("pool %s stays: %+v", pool, s.cox(t, "pool", "remove", pool))
	})
	s.ok(t, "pool "+pool+" added: cox submit --pool "+pool+" FILE runs a job there\n", slices.Concat([]string{"pool", "add", pool, "--engine", "slurm"}, settings)...)
	s.eventually(t, up, "pool", "list")
}

// file is a batch script that runs where the lab's nodes have its folder.
func (s *slurmSite) file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.WriteFile(name, []byte("#!/bin/sh\n#SBATCH --chdir="+s.dir+"\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// byCommands are the settings by which this machine's server reaches the lab.
func (s *slurmSite) byCommands(t *testing.T) []string {
	t.Helper()
	out := []string{"--local", "--set", "conf=" + s.Conf}
	if dir := s.Bin(t); dir != "" {
		out = append(out, "--set", "commands="+dir)
	}
	return out
}

// TestSlurm adds clusters of real Slurm to a server, and runs jobs there.
func TestSlurm(t *testing.T) {
	for version, c := range map[string]lab.Config{"22.05": {}, "24.11": {Modern: true}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			s := &slurmSite{Lab: l, dir: t.TempDir()}
			s.server, s.stop = serving(t, s.dir, &paper{worlds: map[string]*world.World{}})
			t.Run("placed", s.testLocal)
			t.Run("delegated", s.testDelegated)
			t.Run("folded", s.testFolded)
			t.Run("ways", s.testWays)
			t.Run("logs", s.testLogs)
			t.Run("interactive", s.testInteractive)
			t.Run("advised", s.testAdvised)
			if !c.Modern || os.Getenv("COX_LONG") != "" { // it waits for a comparison of pools: half a minute
				t.Run("moves", s.testMoves)
			}
		})
	}
}

// testLocal: a pool by the commands here: added, a job runs and prints, another is ended.
func (s *slurmSite) testLocal(t *testing.T) {
	s.addPool(t, "slurm-b", `slurm-b +slurm 2\S+ +up +4 `, append(s.byCommands(t), "--placed", "--set", "root=true", "--shared", filepath.Join(s.dir, "locks"))...)
	hello := s.file(t, "hello.sh", "#SBATCH -N2 --ntasks-per-node=1\nsrun -l sh -c 'echo here is $SLURM_PROCID of $SLURM_NTASKS'\n")
	s.ok(t, "submitted\n", "submit", "--pool", "slurm-b", hello)
	s.ok(t, "", "wait", "1", "--quiet")
	s.ok(t, "here is 1 of 2", "logs", "1")
	s.ok(t, "slurm-b", "show", "1")
	s.ok(t, "submitted\n", "submit", "--pool", "slurm-b", s.file(t, "sleep.sh", "sleep 600\n"))
	s.eventually(t, "RUNNING", "queue")
	s.ok(t, "2", "cancel", "2")
	s.cox(t, "wait", "2", "--quiet").Check(t, 130, "", "")
	s.verify(t, "slurm-b")
	s.ok(t, "pool slurm-b is gone", "pool", "remove", "slurm-b")
}

// testDelegated: Slurm places; what it is asked for by slurmrestd runs as a gang too.
func (s *slurmSite) testDelegated(t *testing.T) {
	s.addPool(t, "slurm-d", `slurm-d +slurm 2\S+ +up `, append(s.byCommands(t), "--set", "root=true", "--shared", filepath.Join(s.dir, "locks-d"), "--rest", s.REST(), "--set", "token_key="+filepath.Join(s.Dir, "jwt.key"), "--set", "user=root")...)
	s.verify(t, "slurm-d")
	s.ok(t, "pool slurm-d is gone", "pool", "remove", "slurm-d")
}

// testMoves: a job that waits in Slurm behind somebody else's, so that Slurm starts it in two hours, moves to a
// pool that is free sooner: it is taken back, moves once and runs once, and Slurm has given it no node.
//
// Seen to fail with: a pool that does not say when its jobs start.
func (s *slurmSite) testMoves(t *testing.T) {
	other, err := s.Try(t.Context(), "sbatch", "--parsable", "--nodes=4", "--exclusive", "--time=120", "--output=/dev/null", "--chdir=/", "--wrap=sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = s.Try(context.Background(), "scancel", strings.TrimSpace(other)) }()
	s.addPool(t, "slurm-m", `slurm-m +slurm 2\S+ +up `, append(s.byCommands(t), "--set", "root=true", "--shared", filepath.Join(s.dir, "locks-m"))...)
	submit := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(s.ok(t, "", append([]string{"submit", "--parsable"}, args...)...))
	}
	full := submit("--pool", "local", "-N2", "--exclusive", "-t", "4:00:00", s.file(t, "full.sh", "sleep 600\n"))
	s.eventually(t, "RUNNING", "show", full)
	ran := filepath.Join(s.dir, "ran")
	id := submit("--pool", "slurm-m,local", "-N1", "-t", "60", s.file(t, "moves.sh", "echo ran >>"+ran+"\n"))
	s.eventually(t, "and Slurm expects to start it at ", "why", id)
	s.ok(t, full, "cancel", full)
	out := s.eventually(t, "COMPLETED", "show", id)
	if !strings.Contains(out, "moved from slurm-m, where it was expected to start in about ") || !regexp.MustCompile(`moved once, at .+ from slurm-m to local\n`).MatchString(out) {
		t.Errorf("it is shown as\n%s", out)
	}
	if b, err := os.ReadFile(ran); string(b) != "ran\n" {
		t.Errorf("it left %q, %v", b, err)
	}
	if out, err := s.Try(t.Context(), "squeue", "-h", "-t", "all", "-n", "moves.sh", "-o", "%T:%N"); strings.TrimSpace(out) != "CANCELLED:" {
		t.Errorf("Slurm has %q, %v", out, err)
	}
	s.ok(t, "pool slurm-m is gone", "pool", "remove", "slurm-m")
}

// verify tries a pool of the lab with a gang of two.
func (s *slurmSite) verify(t *testing.T, pool string) {
	t.Helper()
	out := s.ok(t, "pool "+pool+" runs gangs as it should\n", "verify", pool, "--dir", s.dir, "--gpus-per-node", "1", "--fabric")
	for _, want := range []string{
		"ok       joined      every rank said where it is", "bus bandwidth over TCP, of the slowest rank: 1 MB ", "ok       links       the slowest: rank ",
		" 2/2 ", "all ranks are of job ", "all met before any went on", "ok       devices     1 on each", "1, the fewest: spine/leaf",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// testWays: each way in is looked at, and says what it found of the cluster.
func (s *slurmSite) testWays(t *testing.T) {
	ssh, rest := s.bySSH(t), s.byREST(t)
	all := []string{"found    version     Slurm ", ", which is supported", "found    gres        32 × gpu:h100 on 4 of 4 nodes", "found    clock       slurmctld's is ours", "files are created there, and exclusively"}
	full := append(slices.Clone(all), "found    partitions  main; jobs that name none go to main", "found    topology    2 leaves", "found    MinJobAge   slurmctld knows jobs for 5m0s", "AccountingStoreFlags=job_comment in slurm.conf")
	for _, tt := range []struct {
		name string
		way  []string
		code int
		want []string
	}{
		{"local", s.byCommands(t), 0, append(slices.Clone(full), "jobs run as their owners (owner)", "root may change and suspend everybody's jobs")},
		{"ssh", ssh, 4, append(slices.Clone(full), "Slurm's commands over SSH as root@127.0.0.1", "missing  identity    jobs would run as root on the cluster")},
		{"rest and commands", slices.Concat(rest, s.byCommands(t)), 0, append(slices.Clone(full), "found    way in      slurmrestd v0.0.", "found    token       from key", "jobs run as their owners (token)")},
		{"rest alone", rest, 0, append(slices.Clone(all), "slurmrestd alone cannot tell or do: suspending jobs, where nodes lie", "found    token       from key")},
		{"no such partition", append(s.byCommands(t), "--partition", "nix"), 4, []string{"missing  partitions  there is no nix", "name one of main"}},
		{"nobody there", []string{"--rest", "http://127.0.0.1:1", "--set", "token_key=" + filepath.Join(s.Dir, "jwt.key")}, 4, []string{"missing  engine ", "connection refused"}},
	} {
		add := slices.Concat([]string{"pool", "add", "look", "--engine", "slurm", "--dry-run", "--shared", filepath.Join(s.dir, "look")}, tt.way)
		r := s.cox(t, add...)
		for _, w := range tt.want {
			if r.Code != tt.code || !strings.Contains(r.Out, w) {
				t.Errorf("%s: exit %d, and %q is not in\n%s%s", tt.name, r.Code, w, r.Out, r.Err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "look", "*")); len(left) > 0 {
		t.Errorf("looks have left %q", left)
	}
}
