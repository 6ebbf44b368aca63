package notify

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/model/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a log that a test reads.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// program writes an executable script.
func program(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mail")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func start(t *testing.T, c Config) (*Notifier, *sink) {
	t.Helper()
	log := &sink{}
	n, err := New(c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, n) })
	return n, log
}

func closeNow(t *testing.T, n *Notifier) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// The command gets the subject and each address as arguments of their own, the text
// on standard input, and the facts as variables.
func TestMailCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	mail := program(t, `{ for a; do printf '<%s>' "$a"; done; echo; env | grep ^SLURM_ | sort; cat; } > "`+out+`"`+"\n")
	n, log := start(t, Config{Command: []string{mail, "-n"}, Domain: "example.org"})
	done := view(job.Completed, 1, true)
	done.Spec.Mail.To = "anna, ben@example.com"
	n.Job(Change{Before: view(job.Running, 1, true), After: done})
	closeNow(t, n)
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err, log)
	}
	for _, want := range []string{
		"<-n><-s><Slurm Job_id=7 Name=train Ended, Run time 00:01:05, COMPLETED, ExitCode 0><anna@example.org><ben@example.com>\n",
		"SLURM_JOB_ID=7\n", "SLURM_JOB_MAIL_TYPE=Ended\n", "SLURM_JOB_STATE=COMPLETED\n", "SLURM_JOB_USER=anna\n", "\ncox show 7\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if s := n.Stats(); s != (Stats{Sent: 1}) || log.String() != "" {
		t.Errorf("%+v\n%s", s, log)
	}
}

// Nothing that a job says becomes a line, an option, a recipient or a command.
func TestMailCommandAgainstHostileJobs(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	mail := program(t, `for a; do printf '<%s>' "$a"; done >> "`+out+`"`+"\n")
	n, log := start(t, Config{Command: []string{mail}})
	for _, to := range []string{"-X", "|touch " + dir + "/pwned", "/etc/passwd", "a\nBcc: b@c", "a@b c", "$(touch " + dir + "/pwned)", "`x`", "a@b@c", "+file", "@b"} {
		j := view(job.Completed, 1, true)
		j.Spec.Mail.To = to
		n.Job(Change{Before: view(job.Running, 1, true), After: j})
	}
	j := view(job.Completed, 1, true)
	j.Spec.Name = "x\r\nBcc: all@example.org\r\n\r\n$(touch " + dir + "/pwned)\x00\u2028"
	n.Job(Change{Before: view(job.Running, 1, true), After: j})
	closeNow(t, n)
	got, _ := os.ReadFile(out)
	if want := "<-s><Slurm Job_id=7 Name=x  Bcc: all@example.org    $(touch " + dir + "/pwned)   Ended, Run time 00:01:05, COMPLETED, ExitCode 0><anna>"; string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(dir + "/pwned"); err == nil {
		t.Error("a job's text was run")
	}
	if s := n.Stats(); s.Sent != 1 || strings.Count(log.String(), "not an address") != 10 {
		t.Errorf("%+v\n%s", s, log)
	}
}

// A command that fails or hangs costs a line in the log and its time, no more; its
// children end with it.
func TestMailCommandFails(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"fails":   {"echo no such user >&2; exit 67\n", "no such user"},
		"hangs":   {"sleep 1000 & wait\n", "deadline exceeded"},
		"missing": {"", "no such file"},
	} {
		argv := []string{"/nonexistent/mail"}
		if c.script != "" {
			argv = []string{program(t, c.script)}
		}
		timeout := 2 * time.Minute
		if name == "hangs" {
			timeout = 200 * time.Millisecond
		}
		n, log := start(t, Config{Command: argv, Timeout: timeout})
		n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Failed, 1, true)})
		closeNow(t, n)
		if s := n.Stats(); s != (Stats{Failed: 1}) || !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), "job=7") {
			t.Errorf("%s: %+v\n%s", name, s, log)
		}
	}
}

// A mail program that hangs takes its children with it when its time is over.
func TestMailCommandLeavesNothingBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	var pid []byte
	for timeout := time.Second; len(pid) == 0; timeout *= 2 { // a slow machine gets it the next time
		n, _ := start(t, Config{Command: []string{program(t, "sleep 1000 & echo $! > "+file+"; wait\n")}, Timeout: timeout})
		n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Failed, 1, true)})
		closeNow(t, n)
		var err error
		if pid, err = os.ReadFile(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	stat := "/proc/" + strings.TrimSpace(string(pid)) + "/stat"
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(stat)
		if err != nil || strings.Contains(string(text), ") Z ") {
			return // gone, or waiting for its parent to notice
		}
		if time.Now().After(deadline) {
			t.Fatalf("a child is there still: %s", text)
		}
	}
}

// While every worker is busy the queue fills, and then mails are dropped with a count
// and a line; the caller never waits. Closing gives up what cannot be sent in time.
func TestQueueIsBounded(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	n, log := start(t, Config{Command: []string{program(t, "echo > '"+fifo+"'\n")}, Workers: 1, Queue: 2})
	change := Change{Before: view(job.Running, 1, true), After: view(job.Completed, 1, true)}
	n.Job(change)
	f, err := os.Open(fifo) // returns when the first mail is on its way
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for range 20 {
		n.Job(change)
	}
	if s := n.Stats(); s.Dropped < 17 || !strings.Contains(log.String(), "the queue is full") {
		t.Errorf("%+v\n%s", s, log)
	}
	if lines := strings.Count(log.String(), "the queue is full"); lines > 5 {
		t.Errorf("%d lines for %d dropped mails", lines, n.Stats().Dropped)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := n.Close(ctx); err == nil {
		t.Error("closing said that every mail was sent")
	}
	n.Job(change) // closed: nothing happens
}

// collect is a sender that keeps what it gets.
type collect struct{ ch chan *message }

func (c collect) send(_ context.Context, m *message) error {
	c.ch <- m
	return nil
}

func collecting(t *testing.T) (*Notifier, chan *message) {
	t.Helper()
	ch := make(chan *message, 1000)
	log := &sink{}
	n, err := newNotifier(Config{Command: []string{"x"}, Workers: 1}, collect{ch}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, n) })
	return n, ch
}

// tasks runs an array through a notifier and returns the subjects. Quick tasks are
// seen when they have ended, not before.
func tasks(t *testing.T, types string, ends []job.State, quick bool) []string {
	t.Helper()
	n, ch := collecting(t)
	at := func(i int, state job.State, started bool) *job.Job {
		j := view(state, 1, started)
		j.ID, j.Array = job.ID(7+i), &job.ArrayTask{Job: 7, Index: uint32(i), Count: uint32(len(ends))}
		j.Spec.Mail.Types = strings.Split(types, ",")
		if state == job.Failed {
			j.Exit.Status = i
		}
		if !started {
			j.Attempt = 0
		}
		return j
	}
	for i := range ends {
		if !quick {
			n.Job(Change{Before: at(i, job.Pending, false), After: at(i, job.Running, true)})
		}
	}
	for i, end := range ends {
		before := at(i, job.Running, true)
		if quick {
			before = at(i, job.Pending, false)
		}
		n.Job(Change{Before: before, After: at(i, end, true)})
	}
	closeNow(t, n)
	close(ch)
	var out []string
	for m := range ch {
		_, text, _ := strings.Cut(m.subject, "Name=train ")
		out = append(out, text)
	}
	if len(n.arrays) != 0 {
		t.Errorf("%d arrays are remembered for ever", len(n.arrays))
	}
	return out
}

func TestArrays(t *testing.T) {
	done, failed, cancelled := job.Completed, job.Failed, job.Cancelled
	for _, c := range []struct {
		types string
		ends  []job.State
		want  string
	}{
		{"BEGIN,END,FAIL", []job.State{done, done, done}, "Began; Ended, COMPLETED, ExitCode [0-0]"},
		{"BEGIN,END,FAIL", []job.State{done, failed, done}, "Began; Failed, Mixed, ExitCode [0-1]"},
		{"END", []job.State{done, done, failed}, "Ended, Mixed, ExitCode [0-2]"},
		{"FAIL", []job.State{done, done, cancelled}, ""},
		{"FAIL", []job.State{done, done, failed}, "Failed, Mixed, ExitCode [0-2]"},
		{"END,ARRAY_TASKS", []job.State{done, failed}, "Ended, Run time 00:01:05, COMPLETED, ExitCode 0; Ended, Run time 00:01:05, FAILED, ExitCode 1"},
	} {
		for _, quick := range []bool{false, true} {
			if got := strings.Join(tasks(t, c.types, c.ends, quick), "; "); got != c.want {
				t.Errorf("%s of %v (quick: %v): %q, want %q", c.types, c.ends, quick, got, c.want)
			}
		}
	}
}

// A task that runs again is not counted among those that have ended.
func TestArrayWithARequeue(t *testing.T) {
	n, ch := collecting(t)
	task := func(i uint32, s job.State, attempt uint32) *job.Job {
		j := view(s, attempt, true)
		j.ID, j.Array, j.Spec.Mail.Types = job.ID(7+i), &job.ArrayTask{Job: 7, Index: i, Count: 2}, []string{"END", "REQUEUE"}
		return j
	}
	n.Job(Change{Before: task(0, job.Running, 1), After: task(0, job.Failed, 1)})
	n.Job(Change{Before: task(0, job.Failed, 1), After: task(0, job.Pending, 1)})
	n.Job(Change{Before: task(1, job.Running, 1), After: task(1, job.Completed, 1)})
	n.Job(Change{Before: task(0, job.Pending, 1), After: task(0, job.Completed, 2)})
	closeNow(t, n)
	close(ch)
	var got []string
	for m := range ch {
		got = append(got, m.subject)
	}
	want := []string{
		"Slurm Array Task Job_id=7_0 (7) Name=train Requeued",
		"Slurm Array Summary Job_id=7_* (7) Name=train Ended, COMPLETED, ExitCode [0-0]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// After a restart the tasks that are there count as they are.
func TestSeen(t *testing.T) {
	n, ch := collecting(t)
	task := func(i uint32, s job.State) *job.Job {
		j := view(s, 1, true)
		j.ID, j.Array = job.ID(7+i), &job.ArrayTask{Job: 7, Index: i, Count: 2}
		return j
	}
	n.Seen(task(0, job.Completed))
	n.Seen(task(1, job.Running))
	n.Job(Change{Before: task(1, job.Running), After: task(1, job.Completed)})
	closeNow(t, n)
	close(ch)
	var got []string
	for m := range ch {
		got = append(got, m.subject)
	}
	if want := []string{"Slurm Array Summary Job_id=7_* (7) Name=train Ended, COMPLETED, ExitCode [0-0]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Shares of the time limit are told while the job runs, and not after its end.
func TestTimeLimits(t *testing.T) {
	n, ch := collecting(t)
	j := view(job.Running, 1, true)
	j.Spec.Mail.Types = []string{"TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT"}
	j.Spec.TimeLimit, j.Started = 400*time.Millisecond, time.Now()
	n.Job(Change{Before: view(job.Pending, 0, false), After: j})
	flagged := *j
	flagged.Flags |= job.Uncertain
	n.Job(Change{Before: j, After: &flagged}) // changes nothing
	var got []string
	for range 3 {
		got = append(got, string((<-ch).event))
	}
	if since := time.Since(j.Started); since < 360*time.Millisecond {
		t.Errorf("90%% was told after %v of 400 ms", since)
	}
	end := *j
	end.State, end.Ended = job.Timeout, time.Now()
	n.Job(Change{Before: j, After: &end})
	got = append(got, string((<-ch).event))
	if want := "TIME_LIMIT_50 TIME_LIMIT_80 TIME_LIMIT_90 TIME_LIMIT"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}

	j2 := *j
	j2.ID, j2.Spec, j2.Started = 8, new(*j.Spec), time.Now()
	j2.Spec.TimeLimit = time.Hour
	n.Job(Change{Before: view(job.Pending, 0, false), After: &j2})
	ended := j2
	ended.State = job.Completed
	n.Job(Change{Before: &j2, After: &ended})
	if n.limits.jobs[8] != nil {
		t.Error("a job that has ended is timed still")
	}
}

// Nothing is asked for, nothing is configured: nothing happens.
func TestNothingToDo(t *testing.T) {
	n, err := New(Config{}, slog.Default())
	if n != nil || err != nil {
		t.Fatalf("%v, %v", n, err)
	}
	n.Job(Change{After: view(job.Completed, 1, true)})
	n.Seen(view(job.Running, 1, true))
	if err := n.Close(t.Context()); err != nil || n.Stats() != (Stats{}) {
		t.Errorf("%v", err)
	}
	for _, c := range []Config{
		{Command: []string{"mail"}, SMTP: SMTP{Addr: "localhost:25"}},
		{Command: []string{""}},
		{SMTP: SMTP{Addr: "localhost"}},
		{SMTP: SMTP{Addr: "localhost:25", User: "x"}},
		{SMTP: SMTP{Addr: "localhost:25", From: "a\nb@c"}},
	} {
		if _, err := New(c, slog.Default()); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
