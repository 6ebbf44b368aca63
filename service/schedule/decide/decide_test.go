package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// world is a control plane in memory with a clock of its own: jobs end when the test says so.
type world struct {
	t       *testing.T
	now     time.Time
	doc     *schedule.Document
	jobs    []Job
	refused []Refusal
	refuse  *Refusal // what submissions are answered with; nil: they are taken
	next    time.Time
	log     []string // "03:00 submit 1", "04:00 cancel 1"
}

var owner = job.Owner{User: "anna", UID: 2001}

func newWorld(t *testing.T, start string, change func(*schedule.Spec)) *world {
	t.Helper()
	now, err := time.Parse(time.RFC3339, start)
	if err != nil {
		t.Fatal(err)
	}
	spec := schedule.Spec{Name: "nightly", Owner: owner, Settings: schedule.DefaultSettings()}
	spec.Cron, spec.Zone = "0 * * * *", "Etc/UTC"
	if change != nil {
		change(&spec)
	}
	w := &world{t: t, now: now}
	if w.doc, err = Submit(nil, &spec, "anna", now); err != nil {
		t.Fatal(err)
	}
	w.settle()
	return w
}

// settle decides until nothing changes, and carries decisions out.
func (w *world) settle() {
	w.t.Helper()
	for range 20 {
		before := fmt.Sprint(w.doc, w.jobs, w.refused)
		out, err := Decide(&Input{Now: w.now, Name: "nightly", Doc: w.doc, Jobs: w.jobs, Refused: w.refused})
		if err != nil {
			w.t.Fatal(err)
		}
		if out.Doc != nil {
			if fmt.Sprint(out.Doc.Runs) == fmt.Sprint(w.doc.Runs) && out.Doc.Since.Equal(w.doc.Since) {
				w.t.Fatalf("a document is written without a change: %+v", out.Doc)
			}
			w.doc = out.Doc
		}
		for _, x := range out.Cancel {
			w.note("cancel %d", x.Job)
			w.jobs[x.Job-1].Ending = true
		}
		for _, s := range out.Submit {
			w.submit(s)
		}
		w.next = out.Next
		if before == fmt.Sprint(w.doc, w.jobs, w.refused) {
			return
		}
	}
	w.t.Fatal("it never comes to rest")
}

func (w *world) submit(s Submission) {
	w.refused = nil
	if w.refuse != nil {
		f := *w.refuse
		f.Part, f.Until = s.Part, w.now.Add(5*time.Minute)
		w.refused = []Refusal{f}
		w.note("refuse")
		return
	}
	for _, j := range w.jobs {
		if j.Part == s.Part {
			w.t.Fatalf("%+v is submitted twice", s.Part)
		}
	}
	w.jobs = append(w.jobs, Job{ID: job.ID(len(w.jobs) + 1), Part: s.Part, State: job.Running})
	w.note("submit %d for %s", len(w.jobs), s.At.Format("15:04"))
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.UTC().Format("15:04 ")+fmt.Sprintf(format, args...))
}

// pass lets time pass, from one time that a decision named to the next.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		if w.next.IsZero() || w.next.After(end) {
			w.now = end
			w.settle()
			return
		}
		if !w.next.After(w.now) {
			w.t.Fatalf("the next decision is due at %s, and it is %s", w.next, w.now)
		}
		w.now = w.next
		w.settle()
	}
}

// away lets time pass without a server.
func (w *world) away(d time.Duration) { w.now = w.now.Add(d); w.settle() }

func (w *world) end(id job.ID, s job.State) {
	w.t.Helper()
	j := &w.jobs[id-1]
	j.State, j.Ended = s, w.now
	if s != job.Completed {
		j.Exit = job.ExitCode{Status: 1}
	}
	w.settle()
}

func (w *world) runNow() error {
	d, _, err := RunNow(w.doc, w.jobs, "nightly", "ben", w.now)
	if err == nil {
		w.doc = d
		w.settle()
	}
	return err
}

// expect compares what happened, and forgets it.
func (w *world) expect(want ...string) {
	w.t.Helper()
	if got := strings.Join(w.log, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("it did:\n%s\nwant:\n%s", got, strings.Join(want, ", "))
	}
	w.log = nil
}

// runs are the runs as text: "03:00 ended COMPLETED".
func (w *world) runs() string {
	var out []string
	for _, r := range w.doc.Runs {
		line := r.At.Format("15:04 ") + string(r.State)
		if r.State == schedule.Ended {
			line += " " + r.Outcome.String()
		}
		if r.Missed > 0 {
			line += fmt.Sprintf(" missed %d", r.Missed)
		}
		if r.Why != "" {
			line += " (" + r.Why + ")"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (w *world) expectRuns(want ...string) {
	w.t.Helper()
	if got := w.runs(); got != strings.Join(want, "\n") {
		w.t.Errorf("runs:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// TestRunsComeAtTheirTimes: one job for each time, and what became of it.
func TestRunsComeAtTheirTimes(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.expect()
	w.pass(45 * time.Minute)
	w.expect("01:00 submit 1 for 01:00")
	w.expectRuns("01:00 live")
	w.end(1, job.Completed)
	w.pass(time.Hour)
	w.end(2, job.Failed)
	w.expect("02:00 submit 2 for 02:00")
	w.expectRuns("01:00 ended COMPLETED", "02:00 ended FAILED")
	if r := w.doc.Runs[1]; r.Exit != "exit 1" || r.Job != 2 || !r.Ended.Equal(w.now) {
		t.Errorf("%+v", r)
	}
}

// TestOverlap: while a run has not ended, the next one is skipped, begins too, or replaces it.
func TestOverlap(t *testing.T) {
	overlap := func(o schedule.Overlap) func(*schedule.Spec) {
		return func(s *schedule.Spec) { s.Overlap = o }
	}
	t.Run("skip", func(t *testing.T) {
		w := newWorld(t, "2026-11-29T00:30:00Z", overlap(schedule.Skip))
		w.pass(2 * time.Hour)
		w.expect("01:00 submit 1 for 01:00")
		w.expectRuns("01:00 live", "02:00 skipped (the run of 2026-11-29 01:00 (job 1) has not ended)")
		w.end(1, job.Completed)
		w.pass(time.Hour)
		w.expect("03:00 submit 2 for 03:00")
	})
	t.Run("allow", func(t *testing.T) {
		w := newWorld(t, "2026-11-29T00:30:00Z", overlap(schedule.Allow))
		w.pass(2 * time.Hour)
		w.expect("01:00 submit 1 for 01:00", "02:00 submit 2 for 02:00")
	})
	t.Run("replace", func(t *testing.T) {
		w := newWorld(t, "2026-11-29T00:30:00Z", overlap(schedule.Replace))
		w.pass(90 * time.Minute)
		w.expect("01:00 submit 1 for 01:00", "02:00 cancel 1")
		w.end(1, job.Cancelled)
		w.expect("02:00 submit 2 for 02:00")
		w.pass(time.Hour) // job 2 never ends
		w.pass(time.Hour)
		w.expectRuns("01:00 ended CANCELLED", "02:00 live", "03:00 skipped (not submitted before the next time)", "04:00 due")
		w.expect("03:00 cancel 2")
	})
	t.Run("replace by hand", func(t *testing.T) {
		w := newWorld(t, "2026-11-29T00:30:00Z", overlap(schedule.Replace))
		w.pass(45 * time.Minute)
		for range 2 {
			if err := w.runNow(); err != nil {
				t.Fatal(err)
			}
		}
		w.expect("01:00 submit 1 for 01:00", "01:15 cancel 1")
		w.end(1, job.Cancelled)
		w.expect("01:15 submit 2 for 01:15", "01:15 cancel 2")
		w.end(2, job.Cancelled)
		w.expect("01:15 submit 3 for 01:15")
	})
}

// TestMissedTimes: of the times that passed while the server was away the latest begins, unless it is
// too late.
func TestMissedTimes(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.away(5 * time.Hour)
	w.expect("05:30 submit 1 for 05:00")
	w.expectRuns("05:00 live missed 4")
	w.end(1, job.Completed)
	w.away(24 * 30 * time.Hour)
	if r := w.doc.Last(); r.Missed != schedule.MostMissed+1 || r.State != schedule.Live {
		t.Errorf("%+v", r)
	}

	late := newWorld(t, "2026-11-29T00:30:00Z", func(s *schedule.Spec) { s.Late = 10 * time.Minute })
	late.away(5 * time.Hour)
	late.expect()
	late.expectRuns("05:00 skipped missed 4 (30m0s late, at most 10m0s is allowed)")
	late.away(39 * time.Minute)
	late.expect("06:09 submit 1 for 06:00")
}

// TestClockThatGoesBack: a time that was decided upon does not come again.
func TestClockThatGoesBack(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.pass(45 * time.Minute)
	w.end(1, job.Completed)
	w.away(-2 * time.Hour)
	w.pass(150 * time.Minute) // until 01:45 again
	w.expect("01:00 submit 1 for 01:00")
	w.pass(30 * time.Minute)
	w.expect("02:00 submit 2 for 02:00")
}

// TestSummerTime: a time that clocks jump over is left out on that day, and one that they show twice
// comes twice, as in Kubernetes.
func TestSummerTime(t *testing.T) {
	zurich := func(s *schedule.Spec) { s.Cron, s.Zone, s.Overlap = "30 2 * * *", "Europe/Zurich", schedule.Allow }
	w := newWorld(t, "2026-03-28T00:00:00Z", zurich)
	w.pass(72 * time.Hour)
	w.expect("01:30 submit 1 for 02:30", "00:30 submit 2 for 02:30") // 28 and 30 March, in UTC
	w = newWorld(t, "2026-10-24T12:00:00Z", zurich)
	w.pass(24 * time.Hour)
	w.expect("00:30 submit 1 for 02:30", "01:30 submit 2 for 02:30")
	if a, b := w.doc.Runs[0].Part("x"), w.doc.Runs[1].Part("x"); a == b {
		t.Errorf("both are %+v", a)
	}
}

// TestSuspend: no runs by the clock, then on with the next time; Kubernetes begins the latest that passed.
func TestSuspend(t *testing.T) {
	for catchUp, want := range map[bool][]string{false: {"04:00 submit 1 for 04:00"}, true: {"03:30 submit 1 for 03:00"}} {
		w := newWorld(t, "2026-11-29T00:30:00Z", func(s *schedule.Spec) { s.CatchUp = catchUp })
		w.doc = Suspend(w.doc, "ben", w.now)
		w.settle()
		if Suspend(w.doc, "ben", w.now) != nil || !w.next.IsZero() {
			t.Error("it is suspended twice, or has a next time")
		}
		w.away(3 * time.Hour)
		w.expect()
		w.doc = Resume(w.doc, w.now)
		w.settle()
		w.pass(40 * time.Minute)
		w.expect(want...)
		if Resume(w.doc, w.now) != nil || w.doc.SuspendedBy != "" {
			t.Error("it is resumed twice")
		}
	}
}

// TestRunByHand: it comes at once, beside the clock, and obeys overlap.
func TestRunByHand(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.doc = Suspend(w.doc, "ben", w.now)
	if err := w.runNow(); err != nil {
		t.Fatal(err)
	}
	if err := w.runNow(); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "the run of 2026-11-29 00:30 (job 1) has not ended") {
		t.Errorf("a second one: %v", err)
	}
	w.doc = Resume(w.doc, w.now)
	w.pass(time.Hour)
	w.expect("00:30 submit 1 for 00:30")
	w.end(1, job.Completed)
	w.now = time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	w.settle()
	w.end(2, job.Completed)
	if err := w.runNow(); err != nil { // at the second of a run by the clock
		t.Fatal(err)
	}
	w.expect("03:00 submit 2 for 03:00", "03:00 submit 3 for 03:00")
	if r := w.doc.Runs[len(w.doc.Runs)-1]; r.By != "ben" || r.Try != 2 {
		t.Errorf("%+v", r)
	}
}

// TestRefusedRun: a refusal for good ends the run, another one is tried again until the next time. None
// stops the next.
func TestRefusedRun(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.refuse = &Refusal{Why: "there is no pool x", Never: true}
	w.pass(time.Hour)
	w.expect("01:00 refuse")
	w.expectRuns("01:00 refused (there is no pool x)")
	w.refuse = &Refusal{Why: "too many jobs wait"}
	w.pass(45 * time.Minute)
	w.expect("02:00 refuse", "02:05 refuse", "02:10 refuse", "02:15 refuse")
	w.expectRuns("01:00 refused (there is no pool x)", "02:00 due (too many jobs wait)")
	w.pass(50 * time.Minute)
	w.refuse, w.log = nil, nil
	w.pass(10 * time.Minute)
	w.expectRuns("01:00 refused (there is no pool x)", "02:00 skipped (not submitted before the next time: too many jobs wait)", "03:00 live")
	w.expect("03:10 submit 1 for 03:00")
}

// TestHistory: as many runs are kept as asked for, and those that are not over.
func TestHistory(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", func(s *schedule.Spec) { s.Keep, s.Overlap = schedule.History{Done: 2, Failed: 1}, schedule.Allow })
	w.pass(5 * time.Hour)
	for id, s := range []job.State{job.Completed, job.Failed, job.Completed, job.Timeout} {
		w.end(job.ID(id+1), s)
	}
	w.expectRuns("01:00 ended COMPLETED", "03:00 ended COMPLETED", "04:00 ended TIMEOUT", "05:00 live")
	w.end(5, job.Completed)
	w.expectRuns("03:00 ended COMPLETED", "04:00 ended TIMEOUT", "05:00 ended COMPLETED")
}

// TestArrayOfARun: a run lives until its last task has ended, and is as bad as the worst of them.
func TestArrayOfARun(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.pass(45 * time.Minute)
	w.jobs = append(w.jobs, Job{ID: 2, Part: w.jobs[0].Part, State: job.Running}, Job{ID: 3, Part: w.jobs[0].Part, State: job.Pending})
	w.end(2, job.Failed)
	w.end(1, job.Completed)
	w.expectRuns("01:00 live")
	w.pass(time.Hour)
	w.end(3, job.Completed)
	w.expectRuns("01:00 ended FAILED", "02:00 skipped (the run of 2026-11-29 01:00 (job 1) has not ended)")
}

// TestArraysThatNoScheduleHas: one of more than 10,000 tasks is refused.
func TestArraysThatNoScheduleHas(t *testing.T) {
	w := newWorld(t, "2026-03-02T00:30:00Z", nil)
	for tasks, kind := range map[int]fault.Kind{10_000: 0, 10_001: fault.Invalid} {
		spec := w.doc.Spec
		spec.Job.Array = &job.ArraySpec{Indices: make([]uint32, tasks)}
		_, err := Submit(w.doc, &spec, "anna", w.now)
		if kind == 0 && err != nil || kind != 0 && (fault.KindOf(err) != kind || !strings.Contains(err.Error(), "10001 tasks, more than 10000") || fault.Remedy(err) == "") {
			t.Errorf("%d tasks: %v", tasks, err)
		}
	}
}

// TestForgottenJob: a run whose job is not remembered is over.
func TestForgottenJob(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	w.pass(45 * time.Minute)
	w.jobs = nil
	w.settle()
	if r := w.doc.Runs[0]; r.State != schedule.Ended || r.Why != "its job is not remembered any more" {
		t.Errorf("%+v", r)
	}
}

// TestChangedSpecification: new times count from now, the same file changes nothing, and a suspension by
// hand outlives a file that says nothing else.
func TestChangedSpecification(t *testing.T) {
	w := newWorld(t, "2026-11-29T00:30:00Z", nil)
	spec := w.doc.Spec
	spec.Job.Source.Host, spec.Env, spec.Text = "n2", []string{"A=b"}, "the same with a comment"
	if d, err := Submit(w.doc, &spec, "anna", w.now); err != nil || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	w.doc = Suspend(w.doc, "ben", w.now)
	w.now = w.now.Add(3 * time.Hour)
	spec.Cron = "0 0 * * *"
	d, err := Submit(w.doc, &spec, "anna", w.now)
	if err != nil || d.Revision != 2 || !d.Since.Equal(w.now) || !d.Suspended {
		t.Fatalf("%+v, %v", d, err)
	}
	on, off := spec, spec
	on.Suspend = true
	if d, err = Submit(d, &on, "anna", w.now); err != nil || !d.Suspended || d.SuspendedBy != "ben" {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err = Submit(d, &off, "anna", w.now); err != nil || d.Suspended || d.Revision != 4 {
		t.Fatalf("%+v, %v", d, err)
	}
	for want, change := range map[string]func(*schedule.Spec){
		"never comes":      func(s *schedule.Spec) { s.Cron = "0 0 31 2 *" },
		"it takes 0-23":    func(s *schedule.Spec) { s.Cron = "0 24 * * *" },
		"is no time zone":  func(s *schedule.Spec) { s.Zone = "Mars/Olympus" },
		"is not made of":   func(s *schedule.Spec) { s.Name = "a b" },
		"none of allow, s": func(s *schedule.Spec) { s.Overlap = "" },
	} {
		bad := spec
		change(&bad)
		if _, err := Submit(nil, &bad, "anna", w.now); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
