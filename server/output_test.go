package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// files opens files below a folder and says as whom it was asked to.
type files struct {
	dir   string
	asked chan string
}

func (f *files) OpenLog(_ context.Context, owner job.Owner, file string) (io.ReadCloser, error) {
	select {
	case f.asked <- owner.User + " " + file:
	default:
	}
	r, err := os.Open(filepath.Join(f.dir, filepath.Base(file)))
	if err != nil {
		return nil, fault.New(fault.NotFound, "%w", err)
	}
	return r, nil
}

func TestLogs(t *testing.T) {
	p := newPlane()
	p.fill(t, 2, "anna", 2001, nil)
	p.start(1, "v1")
	p.jobs[0].Report.Files = []string{"/home/anna/1.stdout", "/home/anna/1.stderr"}
	p.jobs[0].Report.Tasks = []engine.TaskReport{{Step: 0, Rank: 3, Log: "/state/0.3.log"}, {Step: 1, Rank: 3, Log: "/state/1.3.log"}}
	f := &files{dir: t.TempDir(), asked: make(chan string, 10)}
	r := start(t, p, func(c *Config) { c.Output = f })
	c := r.as(t, "anna")
	lines := ""
	for i := range 5000 {
		lines += fmt.Sprintf("line %d\n", i)
	}
	name := filepath.Join(f.dir, "1.stdout")
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	body, err := c.Logs(t.Context(), "1", client.LogOptions{})
	if got := text(t, body, err); got != lines {
		t.Errorf("%d bytes of %d", len(got), len(lines))
	}
	body, err = c.Logs(t.Context(), "1", client.LogOptions{Tail: 2})
	if got := text(t, body, err); got != "line 4998\nline 4999\n" {
		t.Errorf("%q", got)
	}
	<-f.asked
	<-f.asked
	rank, step := 3, 0
	for want, o := range map[string]client.LogOptions{
		"anna /state/1.3.log":      {Rank: &rank},
		"anna /state/0.3.log":      {Rank: &rank, Step: &step},
		"anna /home/anna/1.stderr": {Stream: "stderr"},
	} {
		if _, err := c.Logs(t.Context(), "1", o); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) == "" {
			t.Errorf("%v", err)
		}
		if got := <-f.asked; got != want {
			t.Errorf("opened %s, not %s", got, want)
		}
	}
	if _, err := c.Logs(t.Context(), "2", client.LogOptions{}); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "waits") {
		t.Errorf("of a job that waits: %v", err)
	}
	other := 4
	if _, err := c.Logs(t.Context(), "1", client.LogOptions{Rank: &other}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of no such rank: %v", err)
	}
	resp, answer := r.ask(t, "GET", "/v1/jobs/1/logs?stream=stdin", r.token(t, "anna", nil), "")
	refusal(t, "stream", resp, answer, 400, fault.Invalid, "stream")
	resp, answer = r.ask(t, "GET", "/v1/jobs/1/logs?rank=x", r.token(t, "anna", nil), "")
	refusal(t, "rank", resp, answer, 400, fault.Invalid, "rank")

	// what is written is followed to the end of the job
	got := make(chan string, 1)
	go func() {
		body, err := c.Logs(t.Context(), "1", client.LogOptions{Follow: true, Tail: 1})
		got <- text(t, body, err)
	}()
	<-f.asked
	w, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fmt.Fprintln(w, "last words")
	p.finish(1, job.Completed, job.ExitCode{})
	if s := <-got; !strings.HasSuffix(s, "last words\n") || strings.Count(s, "\n") > 2 {
		t.Errorf("%q", s)
	}
	resp, _ = r.ask(t, "GET", "/v1/jobs/1/logs?follow=true", r.token(t, "anna", nil), "")
	if resp.Trailer.Get(logEnd) != "job-ended" {
		t.Errorf("trailer %v", resp.Trailer)
	}
}

// TestFollowBeginsWhenTheJobDoes asks for the output of a job that waits.
func TestFollowBeginsWhenTheJobDoes(t *testing.T) {
	p := newPlane()
	p.fill(t, 1, "anna", 2001, nil)
	f := &files{dir: t.TempDir(), asked: make(chan string, 1)}
	r := start(t, p, func(c *Config) { c.Output = f })
	got := make(chan string, 1)
	c := r.as(t, "anna")
	go func() {
		body, err := c.Logs(t.Context(), "1", client.LogOptions{Follow: true})
		got <- text(t, body, err)
	}()
	p.start(1, "v1")
	if got := <-f.asked; got != "anna /home/anna/out-1" { // no report names files yet
		t.Errorf("opened %s", got)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "out-1"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.finish(1, job.Completed, job.ExitCode{}) // if the file came too late for the first look, there is another one
	if s := <-got; s != "hello\n" {
		t.Errorf("%q", s)
	}
}

// TestAnAnswerMayEndLate follows a job that ends after it was silent for longer than a
// reader may not read.
func TestAnAnswerMayEndLate(t *testing.T) {
	p := newPlane()
	p.fill(t, 2, "anna", 2001, nil)
	p.start(1, "v1")
	f := &files{dir: t.TempDir(), asked: make(chan string, 10)}
	if err := os.WriteFile(filepath.Join(f.dir, "out-1"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, p, func(c *Config) { c.Output, c.Stall = f, time.Second })
	body, err := r.as(t, "anna").Logs(t.Context(), "1", client.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, len("hello\n"))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)        // what is tested is that so much time goes by
	p.finish(1, job.Completed, job.ExitCode{}) // long after its last line
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// shell is a command that repeats its input in capitals.
type shell struct{ got chan engine.ExecRequest }

func (s *shell) Exec(ctx context.Context, _ engine.Ref, e engine.ExecRequest) (job.ExitCode, error) {
	s.got <- e
	switch e.Command[0] {
	case "upper":
		b, err := io.ReadAll(e.Stdin)
		if err != nil {
			return job.ExitCode{}, err
		}
		fmt.Fprint(e.Stdout, strings.ToUpper(string(b)))
		fmt.Fprint(e.Stderr, "done")
		return job.ExitCode{Status: 3}, nil
	case "size":
		w := <-e.Resize
		fmt.Fprintf(e.Stdout, "%dx%d", w.Rows, w.Cols)
		return job.ExitCode{}, nil
	case "sleep":
		<-ctx.Done()
		s.got <- engine.ExecRequest{Command: []string{"stopped"}}
		return job.ExitCode{}, ctx.Err()
	}
	return job.ExitCode{}, fault.New(fault.NotFound, "%s: no such command", e.Command[0]).Advise("look at PATH")
}

func TestExec(t *testing.T) {
	p := newPlane()
	p.fill(t, 2, "anna", 2001, nil)
	p.start(1, "v1")
	sh := &shell{got: make(chan engine.ExecRequest, 10)}
	r := start(t, p, func(c *Config) { c.Exec = sh })
	c := r.as(t, "anna")
	rank := 1
	var out, errs bytes.Buffer
	in := strings.Repeat("some input\n", 200000) // more than one frame
	code, err := c.Exec(t.Context(), "1", api.Exec{Command: []string{"upper", "-x"}, Rank: &rank, Env: []string{"A=1"}},
		client.ExecStreams{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs})
	if err != nil || code.Status != 3 || out.String() != strings.ToUpper(in) || errs.String() != "done" {
		t.Errorf("%v, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
	if e := <-sh.got; e.Command[1] != "-x" || *e.Rank != 1 || e.Env[0] != "A=1" {
		t.Errorf("%+v", e)
	}
	out.Reset()
	sizes := make(chan api.Window, 1)
	sizes <- api.Window{Rows: 24, Cols: 80}
	if _, err = c.Exec(t.Context(), "1", api.Exec{Command: []string{"size"}, TTY: true}, client.ExecStreams{Stdout: &out, Resize: sizes}); err != nil || out.String() != "24x80" {
		t.Errorf("%q, %v", out.String(), err)
	}
	<-sh.got
	if _, err = c.Exec(t.Context(), "1", api.Exec{Command: []string{"nope"}}, client.ExecStreams{}); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) != "look at PATH" {
		t.Errorf("%v", err)
	}
	<-sh.got
	if _, err = c.Exec(t.Context(), "2", api.Exec{Command: []string{"upper"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("of a job that waits: %v", err)
	}
	if _, err = r.as(t, "ben").Exec(t.Context(), "1", api.Exec{Command: []string{"upper"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Permission {
		t.Errorf("of somebody else's: %v", err)
	}
	resp, body := r.ask(t, http.MethodPost, "/v1/jobs/1/exec", r.token(t, "anna", nil), "")
	refusal(t, "no upgrade", resp, body, 426, fault.Invalid, "upgrade")

	// a client that goes ends its command
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := c.Exec(ctx, "1", api.Exec{Command: []string{"sleep"}}, client.ExecStreams{})
		gone <- err
	}()
	<-sh.got
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if e := <-sh.got; e.Command[0] != "stopped" {
		t.Errorf("%+v", e)
	}
	// and so does a server that stops
	go func() { _, _ = c.Exec(t.Context(), "1", api.Exec{Command: []string{"sleep"}}, client.ExecStreams{}) }()
	<-sh.got
	r.stop()
	select {
	case <-sh.got:
	case <-time.After(2 * time.Minute):
		t.Error("the command goes on without a server")
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\n", 5, "a\n"}, {"", 3, ""}, {"\n\n\n", 2, "\n\n"}, {"abc", 1, "abc"},
	} {
		if got := string(lastLines([]byte(c.in), c.n)); got != c.want {
			t.Errorf("%q, %d: %q, not %q", c.in, c.n, got, c.want)
		}
	}
}
