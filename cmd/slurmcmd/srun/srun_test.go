package srun

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/srunopt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// TestParse: options of srun that sbatch has go on, others are taken or refused.
func TestParse(t *testing.T) {
	for _, c := range []struct{ line, options, command, err string }{
		{"hostname -s", "", "hostname -s", ""},
		{"-N2 -n 4 --mem=1G hostname", "-N2 -n 4 --mem=1G", "hostname", ""},
		{"--time 5 -- hostname -l", "--time 5", "hostname -l", ""},
		{"--mpi=none --mpi none -u -K1 -W 5 -J x cmd", "-J x", "cmd", ""},
		{"--cpu-bind cores --exact cmd", "", "cmd", ""},
		{"--exclusive cmd", "--exclusive", "cmd", ""},
		{"-l cmd", "", "", "--label outside of a job is not built yet"},
		{"--pty bash", "", "", "--pty outside of a job is not built yet"},
		{"-N1 a : -N2 b", "-N1", "a : -N2 b", ""},
		{"-N1 : -N2 b", "", "", "several components (:) outside of a job are not built yet"},
		{"-N1", "-N1", "", ""},
		{"-uN2 cmd", "-N2", "cmd", ""},
		{"--nodeli n2 --quie cmd", "--nodelist n2 --quiet", "cmd", ""},
		{"-Qv -k cmd", "-Q -v -k", "cmd", ""},
		{"--cpu_bind=cores cmd", "", "cmd", ""},
		{"--container-image x cmd", "--container-image x", "cmd", ""},
		{"--x11=all cmd", "", "", "--x11 outside of a job is not built yet"},
		{"--labe cmd", "", "", "--label outside of a job is not built yet"},
		{"-r1 cmd", "", "", "--relative option invalid for job allocation request"},
		{"--array=1-3 cmd", "", "", "unrecognized option '--array=1-3'"},
		{"--dependencies=afterok:1 cmd", "", "", "unrecognized option '--dependencies=afterok:1'"},
		{"--mem", "", "", "option '--mem' requires an argument"},
	} {
		l, err := parseLine(strings.Fields(c.line))
		text := ""
		if err != nil {
			text, l = err.Error(), &line{}
		}
		if got := strings.Join(l.options, " "); got != c.options || strings.Join(l.command, " ") != c.command || text != c.err {
			t.Errorf("%s: options %q, command %q, error %q", c.line, got, l.command, text)
		}
	}
}

// serverWith is a server at which a job prints and ends.
func serverWith(t *testing.T, end api.Job) (*slurmcmdtest.Server, *api.Submit) {
	t.Helper()
	s := slurmcmdtest.New(t)
	t.Setenv("COX_SERVER", s.Address())
	t.Setenv("TMPDIR", t.TempDir())
	sent := &api.Submit{}
	s.Answer["POST /v1/jobs"] = slurmcmdtest.Func(func(body string) any {
		if err := json.Unmarshal([]byte(body), sent); err != nil {
			t.Error(err)
		}
		return api.Submitted{ID: 7}
	})
	s.Answer["GET /v1/jobs/7/wait"] = slurmcmdtest.Func(func(string) any {
		// Two tasks write into the pipes as two processes would.
		for i, text := range []string{"one\n", "two\n"} {
			for _, stream := range []string{"output", "error"} {
				if n := slices.IndexFunc(sent.Args, func(a string) bool { return strings.HasPrefix(a, "--"+stream+"=") }); n >= 0 {
					_, name, _ := strings.Cut(sent.Args[n], "=")
					f, err := os.OpenFile(name, os.O_WRONLY, 0)
					if err != nil {
						t.Error(i, err)
						continue
					}
					_, _ = f.WriteString(text)
					f.Close()
				}
			}
		}
		return end
	})
	return s, sent
}

// TestSession: the tasks' output is shown and the job's exit code passed on.
func TestSession(t *testing.T) {
	s, sent := serverWith(t, api.Job{State: "FAILED", Exit: job.ExitCode{Status: 3}})
	r := s.Run(Main, "", "-N2", "hostname", "-s")
	if want := (slurmcmdtest.Result{Out: "one\ntwo\n", Err: "one\ntwo\n", Code: 3}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	if sent.Form != api.FormCommand || !slices.Equal(sent.Command, []string{"hostname", "-s"}) || !slices.Contains(sent.Args, "-N2") || !slices.Contains(sent.Args, "--job-name=hostname") {
		t.Errorf("asked for %+v", sent)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSingle: one task runs as the batch script, its words as they were given.
func TestSingle(t *testing.T) {
	s, sent := serverWith(t, api.Job{State: "FAILED", Exit: job.ExitCode{Status: 3}, Claims: []api.Claim{{Node: "n1"}}})
	r := s.Run(Main, "", "-t", "5", "sh", "-c", "it's; $HOME")
	if r.Code != 3 || r.Err != "one\ntwo\nsrun: error: n1: task 0: Exited with exit code 3\n" {
		t.Errorf("got %+v", r)
	}
	if sent.Form != api.FormSbatch || sent.Text != "#!/bin/sh\nexec 'sh' '-c' 'it'\\''s; $HOME'\n" || !strings.HasSuffix(sent.File, "/sh") {
		t.Errorf("asked for %+v", sent)
	}
	for line, single := range map[string]bool{
		"-t 5 -c 4 --mem=1G -p x --gpus=1 a": true, "-N2 a": false, "-n1 a": false, "--ntasks 4 a": false, "--gpus-per-task=1 a": false, "-w n1 a": false,
	} {
		if l, err := parseLine(strings.Fields(line)); err != nil || l.isSingleTask() != single {
			t.Errorf("%s: single is %v, %v", line, l.isSingleTask(), err)
		}
	}
}

// TestOwnOutput: with --output nothing is read here.
func TestOwnOutput(t *testing.T) {
	s, sent := serverWith(t, api.Job{State: "COMPLETED"})
	name := t.TempDir() + "/out"
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Run(Main, "", "-o", name, "true"); r != (slurmcmdtest.Result{}) {
		t.Errorf("got %+v", r)
	}
	if slices.ContainsFunc(sent.Args, func(a string) bool { return strings.Contains(a, "cox-srun") }) {
		t.Errorf("asked for %q", sent.Args)
	}
}

// TestEnds: what is said of a job that did not end by its program.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		end  api.Job
		text string
		code int
	}{
		{api.Job{State: "CANCELLED"}, "srun: error: job 7: CANCELLED\n", 1},
		{api.Job{State: "TIMEOUT", Exit: job.ExitCode{Signal: 15}}, "srun: error: job 7: TIMEOUT\n", 143},
		{api.Job{State: "FAILED", Message: "no such file", Exit: job.ExitCode{Status: 2}}, "srun: error: job 7 FAILED: no such file\n", 2},
	} {
		s, _ := serverWith(t, c.end)
		r := s.Run(Main, "", "-o", "/dev/null", "-e", "/dev/null", "true")
		if r.Err != c.text || r.Code != c.code {
			t.Errorf("%s: got %+v, want exit %d and %q", c.end.State, r, c.code, c.text)
		}
	}
}

// TestInterrupt: an interrupt cancels the job.
func TestInterrupt(t *testing.T) {
	s, _ := serverWith(t, api.Job{State: "CANCELLED"})
	cancelled := make(chan string, 1)
	s.Answer["POST /v1/jobs/change"] = slurmcmdtest.Func(func(body string) any {
		cancelled <- body
		return api.Changed{Matched: 1}
	})
	s.Answer["GET /v1/jobs/7/wait"] = slurmcmdtest.Func(func(string) any {
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // srun waits, so it listens
		if body := <-cancelled; body != `{"select":{"ids":["7"]},"verb":"cancel"}` {
			t.Errorf("asked for %s", body)
		}
		return api.Job{State: "CANCELLED"}
	})
	if r := s.Run(Main, "", "sleep", "1000"); r.Code != 1 || !strings.Contains(r.Err, "CANCELLED") {
		t.Errorf("got %+v", r)
	}
}

// TestTestOnly: nothing runs, of one task or several; the server is asked when they could.
func TestTestOnly(t *testing.T) {
	for _, tasks := range []string{"-n1", "-n2"} {
		s, sent := serverWith(t, api.Job{})
		s.Answer["POST /v1/jobs"] = slurmcmdtest.Func(func(body string) any {
			if err := json.Unmarshal([]byte(body), sent); err != nil {
				t.Error(err)
			}
			return api.Submitted{TestOnly: true, Estimate: &api.Estimate{Reasons: []reason.Reason{{Code: reason.HeldUser}}}}
		})
		delete(s.Answer, "GET /v1/jobs/7/wait")
		r := s.Run(Main, "", "--test-only", tasks, "hostname")
		if want := "allocation failure: Requested node configuration is not available\n  held by its owner (release it to let it run)\n"; !sent.TestOnly || r.Err != want || r.Code != 1 {
			t.Errorf("%s: asked for %+v, got %+v", tasks, sent, r)
		}
	}
}

// TestNothing: a command is needed.
func TestNothing(t *testing.T) {
	s := slurmcmdtest.New(t)
	if r := s.Run(Main, ""); r.Code != 1 || r.Err != "srun: error: No command given to execute.\n" {
		t.Errorf("got %+v", r)
	}
}

// TestSubmittedOptionsAreKnown: what goes to the server with a job is one of sbatch's
// options, with the same argument, or one of a plugin that the server knows.
func TestSubmittedOptionsAreKnown(t *testing.T) {
	for _, o := range srunopt.All() {
		i := slices.IndexFunc(sbatch.Table(), func(s sbatch.Option) bool { return s.Name == o.Long })
		plugin := strings.Contains(o.Long, "container-") || o.Long == "power"
		switch {
		case o.Job != srunopt.Submitted || i < 0 && plugin:
		case i < 0:
			t.Errorf("sbatch has no --%s", o.Long)
		case sbatch.Table()[i].Arg != o.Arg || sbatch.Table()[i].Short != o.Short:
			t.Errorf("--%s is %+v, sbatch's %+v", o.Long, o, sbatch.Table()[i])
		}
	}
}
