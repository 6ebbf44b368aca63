package controller_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
)

// TestAWholeLife: made, kept alive, updated, undone, scaled, stopped.
func TestAWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		defer r.stop()
		r.submit(specOf("a", 2))
		s := r.until(10*time.Second, settled)
		if s.Revision != 1 || s.Replicas[1].Address != "127.0.0.1:20002" || s.Replicas[1].State != "RUNNING" || s.Route.Host != "chat.localhost" {
			t.Errorf("%+v", s)
		}
		if x := p.parts[1]; x.Job.Spec.Name != "chat.1" || !x.Job.Spec.Requeue || x.Part != (job.Part{Controller: "service/team/chat", Revision: 1, Index: 1}) {
			t.Errorf("job %+v of part %+v", x.Job.Spec, x.Part)
		}

		p.end(2, job.Failed)
		s = r.until(900*time.Millisecond, func(s controller.Status) bool { return s.Ready == 1 })
		if !hasReason(s, "replica 1 ended: its program ended with exit 1") {
			t.Errorf("reasons %v", s.Reasons)
		}
		s = r.until(10*time.Second, settled)
		if s.Replicas[1].Job != 3 || s.Replicas[1].Try != 1 {
			t.Errorf("replicas %+v", s.Replicas)
		}

		r.submit(specOf("b", 2))
		r.until(20*time.Second, func(s controller.Status) bool {
			if s.Ready < 2 || len(s.Replicas) > 3 {
				t.Fatalf("%d ready of %+v", s.Ready, s.Replicas)
			}
			return settled(s) && s.Serving == 2
		})
		p.set(func() { p.bad["c"] = true })
		r.submit(specOf("c", 2))
		s = r.until(time.Minute, func(s controller.Status) bool { return settled(s) && s.Rollout.Phase == service.Undone })
		if s.Revision != 2 || !hasReason(s, "revision 3 failed and was undone") {
			t.Errorf("revision %d, %v", s.Revision, s.Reasons)
		}
		did, err := r.Undo(t.Context(), anna, name, 1)
		if err != nil || did.Revision != 4 {
			t.Errorf("%+v, %v", did, err)
		}
		r.until(20*time.Second, func(s controller.Status) bool { return settled(s) && s.Serving == 4 })
		if err := r.Scale(t.Context(), anna, name, 3); err != nil {
			t.Error(err)
		}
		r.until(10*time.Second, func(s controller.Status) bool { return settled(s) && s.Ready == 3 })

		if err := r.Stop(t.Context(), anna, name); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second) // of the bubble
		synctest.Wait()
		if _, err := r.Get(t.Context(), name); fault.KindOf(err) != fault.NotFound || p.living() != 0 || len(p.docs) != 0 {
			t.Errorf("after the stop: %v, %d jobs, %d documents", err, p.living(), len(p.docs))
		}
	})
}

// TestRestart: a controller that begins anew in the midst of an update goes on where it was.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		r.submit(specOf("a", 3))
		r.until(10*time.Second, settled)
		r.submit(specOf("b", 3))
		r.until(10*time.Second, func(s controller.Status) bool { return s.Rollout.Ready == 1 })
		r.stop()
		jobs := len(p.parts)
		r = p.startController(t)
		defer r.stop()
		s := r.until(5*time.Second, func(s controller.Status) bool { return s.Ready >= 3 })
		if len(p.parts) > jobs+1 || s.Rollout.Phase != service.Rolling {
			t.Errorf("%d jobs before and %d after, rollout %+v", jobs, len(p.parts), s.Rollout)
		}
		r.until(20*time.Second, settled)
		if len(p.parts) != 6 {
			t.Errorf("%d jobs for two revisions of three replicas", len(p.parts))
		}
	})
}

// TestServerEndsAfterTheDocument: a server that ends between the document and the submissions has
// submitted nothing, and the next one begins with them.
//
// Seen to fail with: submissions before the document.
func TestServerEndsAfterTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		writes := 0
		p.set(func() {
			p.afterDocs = func() {
				if writes++; writes == 2 { // that of the decision, not of the submission
					r.kill()
				}
			}
		})
		r.submit(specOf("a", 2))
		r.stop()
		if n := len(p.parts); n != 0 || writes != 2 {
			t.Errorf("%d jobs after %d documents", n, writes)
		}
		p.afterDocs = nil
		r = p.startController(t)
		defer r.stop()
		r.until(10*time.Second, settled)
		if n := len(p.parts); n != 2 {
			t.Errorf("%d jobs", n)
		}
	})
}

// TestRefusal: a refused submission is a reason, and is tried again with a pause that grows.
//
// Seen to fail with: a pause that is 0.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.refuse = errQuota
		r := p.startController(t)
		defer r.stop()
		r.submit(specOf("a", 1))
		r.until(time.Second, func(s controller.Status) bool {
			return hasReason(s, "replica 0 was not submitted: quota of team: 2 of 2 GPUs are used") && strings.Contains(s.Replicas[0].Why, "quota")
		})
		time.Sleep(30 * time.Minute) // of the bubble
		p.set(func() {
			if p.submits < 5 || p.submits > 20 {
				t.Errorf("%d submissions in half an hour", p.submits)
			}
		})
		p.set(func() { p.refuse = nil })
		r.until(6*time.Minute, settled)
	})
}

// TestNeverFits: a revision whose replicas fit nowhere is undone.
func TestNeverFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		defer r.stop()
		r.submit(specOf("a", 1))
		r.until(10*time.Second, settled)
		p.set(func() { p.refuse = fault.New(fault.Invalid, "the largest node has 4 GPUs") })
		r.submit(specOf("b", 1))
		s := r.until(5*time.Second, func(s controller.Status) bool { return settled(s) && s.Rollout.Phase == service.Undone })
		if !hasReason(s, "the largest node has 4 GPUs") || s.Revision != 1 {
			t.Errorf("%v", s.Reasons)
		}
	})
}

// TestUnwritableDocument: nothing is submitted that no document names; people hear of it, and it goes
// on when the store does.
func TestUnwritableDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		defer r.stop()
		r.submit(specOf("a", 1))
		r.until(10*time.Second, settled)
		p.set(func() { p.failDocs = fault.New(fault.Unavailable, "the disk is full") })
		if err := r.Scale(t.Context(), anna, name, 2); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("scale: %v", err)
		}
		p.end(1, job.Failed)
		s := r.until(5*time.Second, func(s controller.Status) bool {
			return hasReason(s, "its document cannot be written: the disk is full")
		})
		if p.submits != 1 || s.Want != 1 {
			t.Errorf("%d submissions, %d wanted", p.submits, s.Want)
		}
		p.set(func() { p.failDocs = nil })
		s = r.until(10*time.Second, settled)
		if hasReason(s, "cannot be written") {
			t.Errorf("%v", s.Reasons)
		}
	})
}

// TestEndingGetsNoRequests: the hub hears of a record that asks for an end before anything else happens.
func TestEndingGetsNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		defer r.stop()
		r.submit(specOf("a", 2))
		r.until(10*time.Second, settled)
		if _, err := p.Change(t.Context(), anna, []job.ID{1}, cancelOp); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // no time passes
		for _, s := range p.hub.Replicas(name) {
			if s.Ready != (s.Job == 2) {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestUnknownService: every request names what is missing.
func TestUnknownService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPlane().startController(t)
		ctx := t.Context()
		for verb, f := range map[string]func() error{
			"get":    func() error { _, err := r.Get(ctx, name); return err },
			"scale":  func() error { return r.Scale(ctx, anna, name, 2) },
			"pause":  func() error { return r.Pause(ctx, anna, name) },
			"resume": func() error { return r.Resume(ctx, anna, name) },
			"undo":   func() error { _, err := r.Undo(ctx, anna, name, 0); return err },
			"stop":   func() error { return r.Stop(ctx, anna, name) },
		} {
			if err := f(); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "there is no service team/chat") {
				t.Errorf("%s: %v", verb, err)
			}
		}
		r.stop()
		if _, err := r.List(context.Background()); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a controller that has ended: %v", err)
		}
	})
}

// TestPrometheusPage: the number of replicas follows a number of their own pages.
//
// Seen to fail with: readPages that reads nothing.
func TestPrometheusPage(t *testing.T) {
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stats" {
			fmt.Fprint(w, "# TYPE waiting gauge\nwaiting 25\n")
		}
	}))
	defer pages.Close()
	p := newPlane()
	p.number = pages.Listener.Addr().(*net.TCPAddr).Port
	r := p.startController(t)
	defer r.stop()
	s := specOf("a", 1)
	s.Replicas.Max = 3
	s.Scale = &service.Scale{Metric: "waiting", Target: 10, Path: "/stats"}
	r.submit(s)
	for version := uint64(0); ; {
		st := r.status()
		if st.Want == 3 && hasReason(st, "25 waiting in all, target 10 for each replica") {
			return
		}
		var err error
		if version, err = r.Next(t.Context(), version); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageThatHangs: a page that never answers delays neither the other replicas of its service nor
// other services.
//
// Seen to fail with: readings that are stored when all pages were read; one round of all services.
func TestPageThatHangs(t *testing.T) {
	read := make(chan bool)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-read
		}
		fmt.Fprint(w, "# TYPE waiting gauge\nwaiting 25\n")
	}))
	defer pages.Close()
	defer close(read)
	p := newPlane()
	p.number = pages.Listener.Addr().(*net.TCPAddr).Port
	r := p.startController(t)
	defer r.stop()
	bad := specOf("a", 1)
	bad.Name, bad.Scale = "bad", &service.Scale{Metric: "waiting", Target: 10, Path: "/hangs"}
	r.submit(bad)
	waitFor(t, r, "team/bad", func(s controller.Status) bool { return s.Ready == 1 })
	good := specOf("a", 1)
	good.Replicas.Max, good.Scale = 3, &service.Scale{Metric: "waiting", Target: 10}
	r.submit(good)
	waitFor(t, r, name, func(s controller.Status) bool { return s.Want == 3 })
}

// waitFor waits, in real time, until a service is as wanted.
func waitFor(t *testing.T, r *running, name string, is func(controller.Status) bool) {
	t.Helper()
	for version := uint64(0); ; {
		s, err := r.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if is(s) {
			return
		}
		if version, err = r.Next(t.Context(), version); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAWriteThatFailedAndIsDurable: a document that was written, of which the controller heard an error, is
// taken up: the next write follows it, whether it was the first one, one of a decision or one that a person
// asked for.
//
// Seen to fail with: a controller that does not read documents again.
func TestAWriteThatFailedAndIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.loseDocs = 2 // that of the submission, and that of the first decision
		r := p.startController(t)
		defer r.stop()
		if _, err := r.Submit(t.Context(), anna, specOf("a", 2), nil); fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("the submission: %v", err)
		}
		r.until(20*time.Second, settled)
		p.set(func() { p.loseDocs = 1 })
		if err := r.Scale(t.Context(), anna, name, 3); fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("the scaling: %v", err)
		}
		if err := r.Scale(t.Context(), anna, name, 4); err != nil {
			t.Errorf("the next one: %v", err)
		}
		if s := r.until(20*time.Second, settled); s.Want != 4 || len(p.parts) != 4 {
			t.Errorf("%d replicas are wanted, %d were submitted", s.Want, len(p.parts))
		}
	})
}
