package srun

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// TestParse: options go to the server, to the step or to both, or are refused.
func TestParse(t *testing.T) {
	for _, c := range []struct{ line, environ, options, step, command, err string }{
		{"hostname -s", "", "", "", "hostname -s", ""},
		{"-N2 -n 4 --mem=1G hostname", "", "-N2 -n 4 --mem=1G", "", "hostname", ""},
		{"--time 5 -- hostname -l", "", "--time 5", "", "hostname -l", ""},
		{"--mpi=none -u -K1 -W 5 -J x cmd", "", "-J x", "--mpi=none -u -K1 -W 5 -J x", "cmd", ""},
		{"--cpu-bind cores --exact cmd", "", "", "--cpu-bind cores --exact", "cmd", ""},
		{"--exclusive -c2 cmd", "", "--exclusive -c2", "-c2", "cmd", ""},
		{"-l -o f.%t -i1 --multi-prog f", "", "", "-l -o f.%t -i1 --multi-prog", "f", ""},
		{"--pty bash", "", "", "--pty", "bash", ""},
		{"-N1 a : -N2 b", "", "", "", "", "several components (:) outside of a job are not built yet"},
		{"-N1", "", "-N1", "", "", ""},
		{"-uN2 cmd", "", "-N2", "-u", "cmd", ""},
		{"--nodeli n2 --quie cmd", "", "--nodelist n2 --quiet", "--quiet", "cmd", ""},
		{"-Qv -k cmd", "", "-Q -v -k", "-Q -v", "cmd", ""},
		{"--cpu_bind=cores cmd", "", "", "--cpu_bind=cores", "cmd", ""},
		{"--container-image x cmd", "", "--container-image x", "", "cmd", ""},
		{"--x11=all cmd", "", "", "", "", "--x11 outside of a job is not built yet"},
		{"-r1 cmd", "", "", "", "", "--relative option invalid for job allocation request"},
		{"--array=1-3 cmd", "", "", "", "", "unrecognized option '--array=1-3'"},
		{"--dependencies=afterok:1 cmd", "", "", "", "", "unrecognized option '--dependencies=afterok:1'"},
		{"--mem", "", "", "", "", "option '--mem' requires an argument"},
		{"-Ix cmd", "", "", "", "", "Invalid numeric value \"x\" for --immediate."},
		{"-n2 cmd", "SLURM_NTASKS=4 SLURM_PARTITION=p SLURM_LABELIO=1 SLURM_WAIT=3", "-n2 --partition=p", "--label --wait=3", "cmd", ""},
		{"cmd", "SLURM_LABELIO=0 SLURM_NNODES=2 SLURM_JOB_NUM_NODES=3 SLURM_DISTRIBUTION=plane SLURM_DIST_PLANESIZE=2", "--distribution=plane=2 --nodes=2", "--distribution=plane=2", "cmd", ""},
		{"--mem-per-cpu=1 cmd", "SLURM_MEM_PER_NODE=5", "--mem-per-cpu=1", "", "cmd", ""},
		{"cmd", "SLURM_REQ_SWITCH=2 SLURM_WAIT4SWITCH=10", "--switches=2@10", "", "cmd", ""},
	} {
		l, err := parseLine(strings.Fields(c.line), strings.Fields(c.environ))
		text := ""
		if err != nil {
			text, l = err.Error(), &line{}
		}
		if got, step := strings.Join(l.options, " "), strings.Join(l.step, " "); got != c.options || step != c.step || strings.Join(l.command, " ") != c.command || text != c.err {
			t.Errorf("%s: options %q, step %q, command %q, error %q", c.line, got, step, l.command, text)
		}
	}
}

// TestJob: --jobid and its variable name the job of the step.
func TestJob(t *testing.T) {
	for _, c := range []struct{ line, environ, want string }{
		{"--jobid=7 -r1 cmd", "", "7"}, {"--jobi 7_1 cmd", "SLURM_JOB_ID=8", "7_1"}, {"cmd --jobid=7", "SLURM_JOB_ID=8", "8"}, {"cmd", "SLURM_JOB_ID=", ""},
	} {
		if l, err := parseLine(strings.Fields(c.line), strings.Fields(c.environ)); err != nil || l.job != c.want {
			t.Errorf("%s: %+v, %v", c.line, l, err)
		}
	}
}

// serverWith is a server at which a job runs its step itself, prints and ends.
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
	s.Answer["GET /v1/jobs/7/wait"] = end
	return s, sent
}

// TestSubmission: what the server gets.
func TestSubmission(t *testing.T) {
	s, sent := serverWith(t, api.Job{State: "FAILED", Exit: job.ExitCode{Status: 3}})
	if r := s.Run(Main, "", "-N2", "-l", "-K", "hostname", "-s"); r != (slurmcmdtest.Result{Code: 3}) {
		t.Errorf("got %+v", r)
	}
	switch {
	case sent.Form != api.FormCommand, !slices.Equal(sent.Command, []string{"hostname", "-s"}), !slices.Equal(sent.Args, []string{"--job-name=hostname", "-N2"}),
		!slices.Equal(sent.Step, []string{"-l", "-K"}), sent.KillBad == nil || !*sent.KillBad, filepath.Base(sent.Client) != "client":
		t.Errorf("asked for %+v", sent)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
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
		r := s.Run(Main, "", "true")
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
		case !o.GoesToServer() || i < 0 && plugin:
		case i < 0:
			t.Errorf("sbatch has no --%s", o.Long)
		case sbatch.Table()[i].Arg != o.Arg || sbatch.Table()[i].Short != o.Short:
			t.Errorf("--%s is %+v, sbatch's %+v", o.Long, o, sbatch.Table()[i])
		}
	}
}
