package sbatch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbatch"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

const script = "#!/bin/sh\n#SBATCH -N2\ntrue\n"

// in makes an empty folder the working directory and puts the script there.
func in(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.WriteFile("job.sh", []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("hosts", []byte("n1 n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRequest: what is sent.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		line string
		want api.Submit
	}{
		{"job.sh a -b", api.Submit{File: "job.sh", Text: script, ScriptArgs: []string{"a", "-b"}}},
		{"-n 4 --mem=1G job.sh -n 5", api.Submit{File: "job.sh", Text: script, Args: []string{"-n", "4", "--mem=1G"}, ScriptArgs: []string{"-n", "5"}}},
		{"-J x", api.Submit{File: "-", Text: "#!/bin/sh\nfrom stdin\n", Args: []string{"-J", "x"}}},
		{"--wrap=true", api.Submit{File: "wrap", Args: []string{"--wrap=true"}}},
		{"-F hosts job.sh", api.Submit{File: "job.sh", Text: script, Args: []string{"-F", "hosts"}, Files: map[string]string{"hosts": "n1 n2\n"}}},
		{"--nodes=2 job.sh", api.Submit{File: "job.sh", Text: script, Args: []string{"--nodes=2"}}},
		{"--test-only job.sh", api.Submit{File: "job.sh", Text: script, Args: []string{"--test-only"}, TestOnly: true}},
	} {
		t.Run(c.line, func(t *testing.T) {
			dir := in(t)
			s := slurmcmdtest.New(t)
			s.Answer["POST /v1/jobs"] = api.Submitted{ID: 7, Estimate: &api.Estimate{Start: slurmcmdtest.Now}}
			r := s.Run(sbatch.Main, "#!/bin/sh\nfrom stdin\n", strings.Fields(c.line)...)
			if r.Code != 0 {
				t.Fatalf("exit %d: %s", r.Code, r.Err)
			}
			var got api.Submit
			if err := json.Unmarshal([]byte(s.Body()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Umask == nil || got.Host == "" {
				t.Errorf("umask %v, host %q", got.Umask, got.Host)
			}
			if c.want.File == "wrap" {
				if !strings.HasPrefix(got.Text, "#!/bin/sh\n") || !strings.HasSuffix(got.Text, "\ntrue\n") {
					t.Errorf("script %q", got.Text)
				}
				got.Text = ""
			}
			c.want.Form, c.want.Dir, c.want.Environ = api.FormSbatch, dir, []string{"USER=anna", "HOME=/home/anna"}
			if len(got.Limits) != len(rlimit.Kinds) {
				t.Errorf("limits %q", got.Limits)
			}
			got.Umask, got.Host, got.Limits = nil, "", nil
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAnswers: what is printed of an answer, and the exit code.
func TestAnswers(t *testing.T) {
	warned := []api.Warning{{File: "job.sh", Line: 3, Option: "--ear", Message: "has no effect"}}
	start := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		line   string
		answer any
		out    string
		err    string
		code   int
	}{
		{"job.sh", api.Submitted{ID: 7}, "Submitted batch job 7\n", "", 0},
		{"--parsable job.sh", api.Submitted{ID: 7}, "7\n", "", 0},
		{"job.sh", api.Submitted{ID: 7, Parsable: true}, "7\n", "", 0},
		{"-Q job.sh", api.Submitted{ID: 7, Warnings: warned}, "", "", 0},
		{"job.sh", api.Submitted{ID: 7, Warnings: warned}, "Submitted batch job 7\n", "sbatch: warning: job.sh:3: --ear has no effect\n", 0},
		{
			"--test-only job.sh",
			api.Submitted{TestOnly: true, Estimate: &api.Estimate{Start: start, CPUs: 2, Nodes: []string{"n1", "n2"}}},
			"", "sbatch: Job 0 to start at 2026-11-21T13:00:00 using 2 processors on nodes n[1-2]\n", 0,
		},
		{
			"job.sh",
			api.Submitted{TestOnly: true, Estimate: &api.Estimate{Reasons: []reason.Reason{{Code: reason.NodeCount, Need: 9, Free: 4}}}},
			"", "allocation failure: Requested node configuration is not available\n  needs 9 nodes, only 4 qualify\n", 1,
		},
		{
			"job.sh", &api.Error{
				Status: 422, Title: "invalid request", Detail: "x",
				Errors: []api.Located{{File: "job.sh", Line: 2, Message: "--time=x is not a time", Remedy: "1:00"}, {File: "job.sh", Line: 4, Message: "second"}},
			},
			"", "sbatch: error: job.sh:2: --time=x is not a time\nsbatch:   1:00\nsbatch: error: job.sh:4: second\n", 1,
		},
		{
			"-t x job.sh", &api.Error{Status: 422, Title: "invalid request", Errors: []api.Located{{File: "command line", Message: "--time=x is not a time"}}},
			"", "sbatch: error: command line: --time=x is not a time\n", 255,
		},
		{ // read, and too large: no fault of the command line
			"-N9 job.sh", &api.Error{
				Status: 400, Title: "invalid request", Detail: "needs 9 nodes, only 4 qualify", Reasons: []reason.Reason{{Code: reason.NodeCount, Need: 9, Free: 4}},
				Errors: []api.Located{{File: "command line", Message: "--nodes=9: needs 9 nodes, only 4 qualify", Remedy: "cox nodes"}},
			},
			"", "sbatch: error: Batch job submission failed: Node count specification invalid: command line: --nodes=9: needs 9 nodes, only 4 qualify\nsbatch:   cox nodes\n", 1,
		},
		{
			"-p x job.sh", &api.Error{Status: 404, Title: "not found", Detail: "there is no partition x", Remedy: "partitions here: a"},
			"", "sbatch: error: Batch job submission failed: there is no partition x\nsbatch:   partitions here: a\n", 1,
		},
		{
			"-p x job.sh", &api.Error{Status: 400, Title: "invalid request", Detail: "--partition=x: there is no such partition", Remedy: "partitions here: a"},
			"", "sbatch: error: Batch job submission failed: Invalid partition name specified: --partition=x: there is no such partition\nsbatch:   partitions here: a\n", 1,
		},
		{
			"-L x job.sh", &api.Error{Status: 400, Title: "invalid request", Detail: "--licenses=x: this site counts no licences"},
			"", "sbatch: error: Batch job submission failed: Invalid license specification: --licenses=x: this site counts no licences\n", 1,
		},
		{"none.sh", nil, "", "sbatch: error: Unable to open file none.sh\n", 1},
		{"empty.sh", nil, "", "sbatch: error: Batch script is empty!\n", 1},
		{
			"text.sh", nil, "",
			"sbatch: error: This does not look like a batch script.  The first\n" +
				"sbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n", 1,
		},
		{
			"dos.sh", nil, "",
			"sbatch: error: Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).\n", 1,
		},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Setenv("TZ", "UTC")
			in(t)
			for name, text := range map[string]string{"empty.sh": "", "text.sh": "echo\n", "dos.sh": "#!/bin/sh\r\n"} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := slurmcmdtest.New(t)
			if c.answer != nil {
				s.Answer["POST /v1/jobs"] = c.answer
			}
			r := s.Run(sbatch.Main, "", strings.Fields(c.line)...)
			if want := (slurmcmdtest.Result{Out: c.out, Err: c.err, Code: c.code}); r != want {
				t.Errorf("got %+v, want %+v", r, want)
			}
			if c.answer == nil && len(s.Asked()) > 0 {
				t.Errorf("the server was asked: %s", s.Asked())
			}
		})
	}
}

// TestWait: --wait ends with the job's exit code.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		ended api.Job
		code  int
	}{
		{api.Job{State: "COMPLETED"}, 0},
		{api.Job{State: "FAILED", Exit: job.ExitCode{Status: 7}}, 7},
		{api.Job{State: "CANCELLED", Exit: job.ExitCode{Signal: 15}}, 143},
		{api.Job{State: "CANCELLED"}, 1},
	} {
		in(t)
		s := slurmcmdtest.New(t)
		s.Answer["POST /v1/jobs"] = api.Submitted{ID: 7, Wait: true}
		s.Answer["GET /v1/jobs/7/wait"] = c.ended
		if r := s.Run(sbatch.Main, "", "job.sh"); r.Code != c.code || r.Out != "Submitted batch job 7\n" {
			t.Errorf("%s %v: got %+v, want exit %d", c.ended.State, c.ended.Exit, r, c.code)
		}
	}
}
