package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

func TestLogs(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Start(1, "v1")
	p.Jobs[0].Report.Files = []string{"/home/anna/1.stdout", "/home/anna/1.stderr"}
	p.Jobs[0].Report.Tasks = []engine.TaskReport{{Step: 0, Rank: 3, Log: "/state/0.3.log"}, {Step: 1, Rank: 3, Log: "/state/1.3.log"}}
	f := &servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 10)}
	r := start(t, p, func(c *Config) { c.Output = f })
	c := r.As(t, "anna")
	lines := ""
	for i := range 5000 {
		lines += fmt.Sprintf("line %d\n", i)
	}
	name := filepath.Join(f.Dir, "1.stdout")
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	body, err := c.Logs(t.Context(), "1", client.LogOptions{})
	if got := servertest.ReadText(t, body, err); got != lines {
		t.Errorf("%d bytes of %d", len(got), len(lines))
	}
	body, err = c.Logs(t.Context(), "1", client.LogOptions{Tail: 2})
	if got := servertest.ReadText(t, body, err); got != "line 4998\nline 4999\n" {
		t.Errorf("%q", got)
	}
	<-f.Asked
	<-f.Asked
	rank, step := 3, 0
	for want, o := range map[string]client.LogOptions{
		"anna /state/1.3.log":      {Rank: &rank},
		"anna /state/0.3.log":      {Rank: &rank, Step: &step},
		"anna /home/anna/1.stderr": {Stream: "stderr"},
	} {
		if _, err := c.Logs(t.Context(), "1", o); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) == "" {
			t.Errorf("%v", err)
		}
		if got := <-f.Asked; got != want {
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
	resp, answer := r.Ask(t, "GET", "/v1/jobs/1/logs?stream=stdin", r.Token(t, "anna", nil), "")
	servertest.CheckRefusal(t, "stream", resp, answer, 400, fault.Invalid, "stream")
	resp, answer = r.Ask(t, "GET", "/v1/jobs/1/logs?rank=x", r.Token(t, "anna", nil), "")
	servertest.CheckRefusal(t, "rank", resp, answer, 400, fault.Invalid, "rank")

	// what is written is followed to the end of the job
	got := make(chan string, 1)
	go func() {
		body, err := c.Logs(t.Context(), "1", client.LogOptions{Follow: true, Tail: 1})
		got <- servertest.ReadText(t, body, err)
	}()
	<-f.Asked
	w, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fmt.Fprintln(w, "last words")
	p.Finish(1, job.Completed, job.ExitCode{})
	if s := <-got; !strings.HasSuffix(s, "last words\n") || strings.Count(s, "\n") > 2 {
		t.Errorf("%q", s)
	}
	resp, _ = r.Ask(t, "GET", "/v1/jobs/1/logs?follow=true", r.Token(t, "anna", nil), "")
	if resp.Trailer.Get(api.LogEnd) != "job-ended" {
		t.Errorf("trailer %v", resp.Trailer)
	}
	size := len(lines) + len("last words\n")
	for query, want := range map[string]struct {
		from int
		text string
	}{fmt.Sprintf("from=%d", size-6): {size - 6, "words\n"}, "from=100000000": {size, ""}, "tail=1": {size - 11, "last words\n"}} {
		resp, answer = r.Ask(t, "GET", "/v1/jobs/1/logs?"+query, r.Token(t, "anna", nil), "")
		if string(answer) != want.text || resp.Header.Get(api.LogFrom) != strconv.Itoa(want.from) {
			t.Errorf("%s: %q from %s, not %d", query, answer, resp.Header.Get(api.LogFrom), want.from)
		}
	}
	resp, answer = r.Ask(t, "GET", "/v1/jobs/1/logs?from=1&tail=1", r.Token(t, "anna", nil), "")
	servertest.CheckRefusal(t, "from and tail", resp, answer, 400, fault.Invalid, "tail")
}

// TestFollowBeginsWhenTheJobDoes asks for the output of a job that waits.
func TestFollowBeginsWhenTheJobDoes(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	f := &servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 1)}
	r := start(t, p, func(c *Config) { c.Output = f })
	got := make(chan string, 1)
	c := r.As(t, "anna")
	go func() {
		body, err := c.Logs(t.Context(), "1", client.LogOptions{Follow: true})
		got <- servertest.ReadText(t, body, err)
	}()
	p.Start(1, "v1")
	if got := <-f.Asked; got != "anna /home/anna/out-1" { // no report names files yet
		t.Errorf("opened %s", got)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, "out-1"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Finish(1, job.Completed, job.ExitCode{}) // if the file came too late for the first look, there is another one
	if s := <-got; s != "hello\n" {
		t.Errorf("%q", s)
	}
}

// TestAnAnswerMayEndLate follows a job that ends after it was silent for longer than a
// reader may not read.
func TestAnAnswerMayEndLate(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Start(1, "v1")
	f := &servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 10)}
	if err := os.WriteFile(filepath.Join(f.Dir, "out-1"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, p, func(c *Config) { c.Output, c.Stall = f, time.Second })
	body, err := r.As(t, "anna").Logs(t.Context(), "1", client.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, len("hello\n"))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)        // what is tested is that so much time goes by
	p.Finish(1, job.Completed, job.ExitCode{}) // long after its last line
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestExec(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Start(1, "v1")
	sh := &servertest.Shell{Got: make(chan engine.ExecRequest, 10)}
	r := start(t, p, func(c *Config) { c.Exec = sh })
	c := r.As(t, "anna")
	rank := 1
	var out, errs bytes.Buffer
	in := strings.Repeat("some input\n", 200000) // more than one frame
	code, err := c.Exec(t.Context(), "1", api.Exec{Command: []string{"upper", "-x"}, Rank: &rank, Env: []string{"A=1"}},
		client.ExecStreams{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs})
	if err != nil || code.Status != 3 || out.String() != strings.ToUpper(in) || errs.String() != "done" {
		t.Errorf("%v, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
	if e := <-sh.Got; e.Command[1] != "-x" || *e.Rank != 1 || e.Env[0] != "A=1" {
		t.Errorf("%+v", e)
	}
	out.Reset()
	sizes := make(chan api.Window, 1)
	sizes <- api.Window{Rows: 24, Cols: 80}
	if _, err = c.Exec(t.Context(), "1", api.Exec{Command: []string{"size"}, TTY: true}, client.ExecStreams{Stdout: &out, Resize: sizes}); err != nil || out.String() != "24x80" {
		t.Errorf("%q, %v", out.String(), err)
	}
	<-sh.Got
	if _, err = c.Exec(t.Context(), "1", api.Exec{Command: []string{"nope"}}, client.ExecStreams{}); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) != "look at PATH" {
		t.Errorf("%v", err)
	}
	<-sh.Got
	if _, err = c.Exec(t.Context(), "2", api.Exec{Command: []string{"upper"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("of a job that waits: %v", err)
	}
	if _, err = r.As(t, "ben").Exec(t.Context(), "1", api.Exec{Command: []string{"upper"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Permission {
		t.Errorf("of somebody else's: %v", err)
	}
	resp, body := r.Ask(t, http.MethodPost, "/v1/jobs/1/exec", r.Token(t, "anna", nil), "")
	servertest.CheckRefusal(t, "no upgrade", resp, body, 426, fault.Invalid, "upgrade")

	// a client that goes ends its command
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := c.Exec(ctx, "1", api.Exec{Command: []string{"sleep"}}, client.ExecStreams{})
		gone <- err
	}()
	<-sh.Got
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if e := <-sh.Got; e.Command[0] != "stopped" {
		t.Errorf("%+v", e)
	}
	// and so does a server that stops
	go func() { _, _ = c.Exec(t.Context(), "1", api.Exec{Command: []string{"sleep"}}, client.ExecStreams{}) }()
	<-sh.Got
	r.Stop()
	select {
	case <-sh.Got:
	case <-time.After(2 * time.Minute):
		t.Error("the command goes on without a server")
	}
}

// talker is an engine that has output of its own.
type talker struct {
	engine.Engine
	servertest.Files
}

// TestLogsComeFromTheEngineOfTheJobsPool, not from the server's own.
func TestLogsComeFromTheEngineOfTheJobsPool(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 3, "anna", 2001, nil)
	there := talker{Files: servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 1)}}
	if err := os.WriteFile(filepath.Join(there.Dir, "out"), []byte("from there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Engines = map[string]engine.Engine{"b": &there, "c": struct{ engine.Engine }{}}
	for i, pool := range []string{"b", "c", "local"} {
		p.Start(job.ID(i+1), "v1")
		p.Jobs[i].Pool, p.Jobs[i].Report.Files = pool, []string{"/home/anna/out"}
	}
	r := start(t, p, func(c *Config) {
		c.Output, c.Exec = &servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 1)}, &servertest.Shell{}
	})
	c := r.As(t, "anna")
	body, err := c.Logs(t.Context(), "1", client.LogOptions{})
	if got := servertest.ReadText(t, body, err); got != "from there\n" {
		t.Errorf("the output is %q", got)
	}
	if _, err := c.Logs(t.Context(), "2", client.LogOptions{}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("of an engine without output: %v", err)
	}
	if _, err := c.Logs(t.Context(), "3", client.LogOptions{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of the server's own pool: %v", err)
	}
	for _, name := range []string{"1", "2"} { // neither runs commands
		if _, err := c.Exec(t.Context(), name, api.Exec{Command: []string{"true"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("a command in job %s: %v", name, err)
		}
	}
}
