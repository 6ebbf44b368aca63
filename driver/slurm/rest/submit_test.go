package rest_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func listen(t *testing.T, path string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	return s
}

// sent submits and returns what the server got.
func sent(t *testing.T, version string, sub *site.Submission) (body []byte, user string, err error) {
	t.Helper()
	r := record(t, version, map[string]string{"POST /job/submit": "submit"})
	_, err = r.site(t).Submit(t.Context(), sub)
	if len(r.sent) == 0 {
		return nil, "", err
	}
	return r.sent[0], r.users[0], err
}

// What goes out is the script to the byte, with its directives as fields, those of the
// options in their place.
func TestSubmission(t *testing.T) {
	script := "#!/bin/bash\n#SBATCH -N 2 --time=5 -J \"in script\"\n#SBATCH --mem-per-cpu=1G --exclusive --no-requeue\necho \"\xe9 <&>\" \\\\\t\x01 \u2028\n"
	sub := &site.Submission{
		Script: []byte(script), Args: []string{"a b", "it's"}, Env: []string{"A=1", "B=x=y\nz", "L=\xe9"}, User: "alice", Dir: "/work dir",
		Options: []string{"--job-name=of options", "--mem=512M", "--nodelist=n[1-2]", "--gres=gpu:h100:2", "--gpus-per-task=1", "--signal=B:USR1@60", "--comment=tag of | \"mine\""},
	}
	want := map[string]map[string]any{
		"v0.0.42": {
			"name": "of options", "memory_per_node": map[string]any{"set": true, "number": 512.0}, "nodes": "2-2", "required_nodes": []any{"n1", "n2"},
			"time_limit": map[string]any{"set": true, "number": 5.0}, "shared": []any{"none"}, "requeue": false, "tres_per_node": "gres/gpu:h100:2",
			"tres_per_task": "gres/gpu=1", "tres_bind": "gres/gpu:per_task:1", "comment": "tag of | \"mine\"", "current_working_directory": "/work dir",
			"kill_warning_signal": "10", "kill_warning_delay": map[string]any{"set": true, "number": 60.0}, "kill_warning_flags": []any{"BATCH_JOB"},
			"argv": []any{"sbatch", "a b", "it's"},
		},
		"v0.0.38": {
			"name": "of options", "memory_per_node": "512M", "nodes": "2-2", "nodelist": "n[1-2]", "time_limit": "5", "exclusive": "exclusive", "no_requeue": true,
			"gres": "gpu:h100:2", "gpus_per_task": "1", "comment": "tag of | \"mine\"", "current_working_directory": "/work dir",
		},
	}
	for version, fields := range want {
		t.Run(version, func(t *testing.T) {
			sub := *sub
			if version == "v0.0.38" {
				sub.Options = append([]string{}, sub.Options...)
				sub.Options[5] = "--comment=tag"
			}
			body, user, err := sent(t, version, &sub)
			if err != nil {
				t.Fatal(err)
			}
			if user != "alice token" {
				t.Errorf("sent as %q", user)
			}
			// A byte that is not UTF-8 goes out as it is, and is replaced by this decoder alone.
			if !strings.Contains(string(body), "\xe9 <&>") || !strings.Contains(string(body), "L=\xe9") && !strings.Contains(string(body), "\"L\":\"\xe9\"") {
				t.Errorf("sent %q", body)
			}
			var got struct {
				Script string         `json:"script"`
				Job    map[string]any `json:"job"`
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			text := strings.ToValidUTF8(script, "\ufffd")
			if version == "v0.0.38" {
				text = strings.Replace(text, "echo", "set -- 'a b' 'it'\\''s'\necho", 1)
			}
			if got.Script != text {
				t.Errorf("the script: %q", got.Script)
			}
			env := got.Job["environment"]
			delete(got.Job, "environment")
			if !reflect.DeepEqual(got.Job, fields) {
				t.Errorf("fields %v\nwant   %v", got.Job, fields)
			}
			switch env := env.(type) {
			case []any:
				if version == "v0.0.38" || env[0] != "A=1" || env[1] != "B=x=y\nz" {
					t.Errorf("environment %v", env)
				}
			case map[string]any:
				if version != "v0.0.38" || env["A"] != "1" || env["B"] != "x=y\nz" || env["SLURM_SUBMIT_DIR"] != "/work dir" {
					t.Errorf("environment %v", env)
				}
			}
		})
	}
}

// What cannot be said is refused before anything is sent, and named.
func TestWhatCannotBeSaid(t *testing.T) {
	for name, c := range map[string]struct {
		version, script string
		options         []string
		kind            fault.Kind
		says            string
	}{
		"an option that slurmrestd has no field for": {"v0.0.42", "#!/bin/sh\n#SBATCH --bb=x\n", nil, fault.Unsupported, "--bb"},
		"one of an older version":                    {"v0.0.38", "#!/bin/sh\n#SBATCH --contiguous\n", nil, fault.Unsupported, "--contiguous"},
		"a signal for the script alone":              {"v0.0.38", "#!/bin/sh\n", []string{"--signal=B:10"}, fault.Invalid, "script alone"},
		"no option at all":                           {"v0.0.42", "#!/bin/sh\n", []string{"-p"}, fault.Invalid, "-p"},
		"a value that is none":                       {"v0.0.42", "#!/bin/sh\n", []string{"--ntasks=x"}, fault.Invalid, "--ntasks=x"},
		"a directive that is none":                   {"v0.0.42", "#!/bin/sh\n#SBATCH --nix\n", nil, fault.Invalid, "line 2"},
		"components that are not submitted":          {"v0.0.42", "#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n", nil, fault.Invalid, "2 components"},
		"no script":                                  {"v0.0.42", "echo\n", nil, fault.Invalid, "batch script"},
		"a NUL in the comment":                       {"v0.0.42", "#!/bin/sh\n", []string{"--comment=a\x00b"}, fault.Invalid, "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			body, _, err := sent(t, c.version, &site.Submission{Script: []byte(c.script), Options: c.options})
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || body != nil {
				t.Errorf("%v, sent %q", err, body)
			}
		})
	}
	body, _, err := sent(t, "v0.0.38", &site.Submission{Script: []byte("#!/usr/bin/python3\n"), Args: []string{"x"}})
	if fault.KindOf(err) != fault.Unsupported || body != nil { // it crashes of arguments
		t.Errorf("%v, sent %q", err, body)
	}
}

// v0.0.38 cannot choose who gets a signal, and kill at once; nobody can suspend.
func TestWhatCannotBeDone(t *testing.T) {
	r := record(t, "v0.0.38", map[string]string{"DELETE /job/9": "delete"})
	s, ctx := r.site(t), t.Context()
	if err := s.Signal(ctx, 9, 10, site.ToAll); err != nil || r.asked[0] != "DELETE /job/9?signal=10" {
		t.Errorf("%v, %q", err, r.asked)
	}
	for what, err := range map[string]error{
		"kill": s.Kill(ctx, 9), "steps": s.Signal(ctx, 9, 10, site.ToSteps), "script": s.Signal(ctx, 9, 10, site.ToBatch), "suspend": s.Suspend(ctx, 9, true),
	} {
		if fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(r.asked) != 1 {
		t.Errorf("asked %q", r.asked)
	}
	r = record(t, "v0.0.42", map[string]string{"DELETE /job/9": "delete"})
	s = r.site(t)
	if err := s.Kill(ctx, 9); err != nil {
		t.Error(err)
	}
	if err := s.Signal(ctx, 9, 10, site.ToAll); err != nil {
		t.Error(err)
	}
	if err := s.Signal(ctx, 9, 10, site.ToSteps); err != nil {
		t.Error(err)
	}
	want := "DELETE /job/9?flags=FULL_STEPS_ONLY&signal=KILL, DELETE /job/9?flags=BATCH_JOB&signal=KILL, DELETE /job/9?flags=FULL_JOB&signal=10, DELETE /job/9?signal=10"
	if got := strings.Join(r.asked, ", "); got != want {
		t.Errorf("asked %s", got)
	}
}

// Bounds of a Site that has the commands too: they do what slurmrestd cannot, no more.
func TestCommandsDoTheRest(t *testing.T) {
	r := record(t, "v0.0.38", map[string]string{"DELETE /job/9": "delete"})
	c := &noted{}
	s, err := rest.New(rest.Config{URL: r.URL, User: "root", Commands: c})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := s.Of(ctx, ""); err != nil || c.did[0] != "of root" {
		t.Errorf("%v, %q", err, c.did)
	}
	c.did = nil
	for _, err := range []error{s.Kill(ctx, 9), s.Signal(ctx, 9, 10, site.ToSteps), s.Suspend(ctx, 9, true), s.Signal(ctx, 9, 10, site.ToAll), s.End(ctx, 9), s.Update(ctx, 9, site.Change{Hold: true}), s.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(c.did, " "); got != "kill signal suspend update close" {
		t.Errorf("commands did %s", got)
	}
}
