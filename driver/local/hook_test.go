package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// hook writes an executable script.
func hook(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(passable(t), "hook")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestHooks(t *testing.T) {
	log := filepath.Join(passable(t), "log")
	say := `echo "%s $(id -u) $SLURM_JOB_ID $SLURM_JOB_USER $SLURM_JOB_UID $SLURMD_NODENAME $SLURM_JOB_EXIT_CODE2" >> ` + log
	e := userEngine(t, local.Config{Prolog: hook(t, strings.Replace(say, "%s", "prolog", 1)), Epilog: hook(t, strings.Replace(say, "%s", "epilog", 1))})
	l := planFor(t, e, anna, 2, "echo script $(wc -l < "+log+") > out", "srun true", "exit 3")
	r := run(t, e, l)
	if r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("%s, %s: %s", r.Cause, r.Exit, r.Message)
	}
	if got := read(t, filepath.Join(l.Job.Spec.WorkDir, "out")); got != "script 2\n" {
		t.Errorf("the script began after %q", got)
	}
	got := read(t, log)
	for _, c := range l.Claims {
		if !strings.Contains(got, "prolog 0 7 anna 61001 "+c.Node+" \n") || !strings.Contains(got, "epilog 0 7 anna 61001 "+c.Node) {
			t.Errorf("%s:\n%s", c.Node, got)
		}
	}
	if !strings.Contains(got, l.Claims[0].Node+" 3:0\n") || strings.Count(got, "\n") != 4 {
		t.Errorf("%s", got)
	}
}

func TestHooksThatFail(t *testing.T) {
	pid := filepath.Join(passable(t), "pid")
	for name, c := range map[string]struct {
		cfg    local.Config
		cause  engine.Cause
		says   []string
		epilog bool
	}{
		"prolog":           {local.Config{Prolog: hook(t, "echo no scratch disk >&2; exit 4")}, engine.LaunchFailed, []string{"prolog", "exit code 4", "no scratch disk"}, true},
		"prolog too slow":  {local.Config{Prolog: hook(t, "sleep 600"), HookTimeout: 100 * time.Millisecond}, engine.LaunchFailed, []string{"prolog", "100ms"}, true},
		"no prolog":        {local.Config{Prolog: "/no/such/prolog"}, engine.LaunchFailed, []string{"/no/such/prolog"}, false},
		"epilog":           {local.Config{Epilog: hook(t, "echo cannot clean; exit 1")}, engine.Exited, []string{"epilog", "exit code 1", "cannot clean"}, false},
		"epilog too slow":  {local.Config{Epilog: hook(t, "sleep 600"), HookTimeout: 100 * time.Millisecond}, engine.Exited, []string{"epilog", "100ms"}, false},
		"epilog leaves":    {local.Config{Epilog: hook(t, "setsid sleep 600 & echo $! > "+pid)}, engine.Exited, nil, false},
		"prolog that ends": {local.Config{Prolog: hook(t, "kill -9 $$")}, engine.LaunchFailed, []string{"prolog", "signal 9"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ran := filepath.Join(passable(t), "epilog")
			if c.cfg.Epilog == "" {
				c.cfg.Epilog = hook(t, "echo >> "+ran)
			}
			e := newEngine(t, c.cfg)
			l := plan(t, e, 2, "touch ran")
			r := run(t, e, l)
			if r.Cause != c.cause {
				t.Errorf("%s: %s", r.Cause, r.Message)
			}
			_, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ran"))
			if began := err == nil; began != (c.cause == engine.Exited) {
				t.Errorf("the script began: %t", began)
			}
			for _, s := range c.says {
				if !strings.Contains(r.Message, s) {
					t.Errorf("message %q does not say %q", r.Message, s)
				}
			}
			if _, err := os.Stat(ran); (err == nil) != c.epilog {
				t.Errorf("the epilog ran: %v", err)
			}
		})
	}
	if b, err := os.ReadFile(pid); err == nil {
		n := 0
		for _, c := range strings.TrimSpace(string(b)) {
			n = n*10 + int(c-'0')
		}
		if st, err := proc.Read(n); err == nil && !st.Dead() {
			t.Errorf("what the epilog left lives: %+v", st)
		}
	} else {
		t.Error(err)
	}
}

// A job that is stopped while its prolog runs never begins.
func TestStopDuringProlog(t *testing.T) {
	e := newEngine(t, local.Config{Prolog: hook(t, "echo > /dev/null; sleep 600")})
	l := plan(t, e, 2, "touch ran")
	launch(t, e, l)
	until(t, e, l.Ref, func(r engine.Report) bool { return r.Nodes[0].PID != 0 })
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, gone)
	if r.Cause != engine.Stopped || !r.Started.IsZero() {
		t.Errorf("%s: %s", r.Cause, r.Message)
	}
}

// TestHooksAreTheSites: what the job's user asks for does not bind root's programs.
func TestHooksAreTheSites(t *testing.T) {
	log := filepath.Join(passable(t), "log")
	e := userEngine(t, local.Config{Prolog: hook(t, "umask > "+log), Epilog: hook(t, "umask >> "+log)})
	l := planFor(t, e, anna, 1, "umask > out")
	l.Env = append(l.Env, "SLURM_UMASK=0000")
	if r := run(t, e, l); r.Cause != engine.Exited || !r.Exit.OK() {
		t.Fatalf("%s, %s: %s", r.Cause, r.Exit, r.Message)
	}
	if got := read(t, filepath.Join(l.Job.Spec.WorkDir, "out")); got != "0000\n" {
		t.Errorf("the job's mask is %q", got)
	}
	for line := range strings.Lines(read(t, log)) {
		if !strings.HasSuffix(line, "22\n") && !strings.HasSuffix(line, "77\n") {
			t.Errorf("a hook's mask is %q", line)
		}
	}
}
