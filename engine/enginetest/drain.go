package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testDrain is what holds for drivers that watch endpoints: an attempt that serves has its time for
// requests before the signal, its endpoints are not ready then, and a stop without that time ends it.
func testDrain(t *testing.T, h Harness) {
	b := startBench(t, h)
	w, ok := b.e.(engine.EndpointWatcher)
	if !ok {
		t.Skip("this driver serves nothing")
	}
	serving := func(allocation uint64) engine.Ref {
		l := b.planLaunch(allocation, 1, Program{Run: Forever})
		l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Drain: time.Hour}
		b.mustLaunch(l)
		b.awaitRunning(l.Ref)
		return l.Ref
	}
	ref := serving(1)
	b.mustStop(ref, engine.Stop{Grace: patience, Drain: time.Hour})
	b.awaitUnready(w, ref)
	if r, err := b.e.Inspect(t.Context(), ref); err != nil || r.Gone || r.Phase != engine.Running && r.Phase != engine.Ending {
		t.Errorf("while its requests end: %s, %v", describeReport(r), err)
	}
	b.mustStop(ref, engine.Stop{Grace: patience})
	checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigterm})

	ref = serving(2)
	const drain, second = 1500 * time.Millisecond, time.Second // an engine may tell whole seconds
	asked := b.Now()
	b.mustStop(ref, engine.Stop{Grace: patience, Drain: drain})
	b.mustStop(ref, engine.Stop{Grace: patience, Drain: time.Hour}) // it does not become more
	if r := b.awaitGone(ref); r.Ended.Sub(asked) < drain-second {
		t.Errorf("ended %s after it was asked to, its requests had %s", r.Ended.Sub(asked), drain)
	}

	ref = serving(3)
	b.mustStop(ref, engine.Stop{}) // killed at once
	checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigkill})
}

// awaitUnready waits until an attempt has endpoints that are not ready.
func (b *bench) awaitUnready(w engine.EndpointWatcher, ref engine.Ref) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.T.Context(), patience)
	defer cancel()
	seen := false
	err := w.WatchEndpoints(ctx, func(e engine.Endpoints) error {
		if seen = e.Ref == ref && !e.Ready; seen {
			cancel()
		}
		return nil
	})
	if !seen {
		b.T.Errorf("the endpoints of %s stay ready: %v", ref, err)
	}
}
