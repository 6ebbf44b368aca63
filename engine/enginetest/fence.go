package enginetest

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// testFence is the rule that keeps a launch from running on what was freed: a Stop
// that did not find the attempt, and a Forget, hold for launches that come later.
func testFence(t *testing.T, h Harness) {
	for name, over := range map[string]func(*bench, *engine.Launch){
		"Stopped": func(b *bench, l *engine.Launch) {
			checkKind(b.T, b.e.Stop(b.Context(), l.Ref, engine.Stop{}), fault.NotFound)
		},
		"NeverKnown": func(b *bench, l *engine.Launch) { b.mustForget(l.Ref) },
		"Forgotten": func(b *bench, l *engine.Launch) {
			b.mustLaunch(l)
			b.awaitGone(l.Ref)
			b.mustForget(l.Ref)
		},
	} {
		h.run(t, name, func(t *testing.T) {
			b := startBench(t, h)
			l := b.planLaunch(1, 2, Program{})
			over(b, l)
			b.checkBarred(l)
			over := l.Ref
			if h.Reopen != nil {
				b.reopenEngine(func() {})
				b.checkBarred(l)
				b.reopenEngine(func() {}) // what was read is kept
				b.checkBarred(l)
			}
			checkKind(t, b.e.Stop(t.Context(), over, engine.Stop{}), fault.NotFound)
			b.mustForget(over)
			next := b.planLaunch(1, 2, Program{}) // another attempt of it, and another allocation, may begin
			next.Ref.Attempt = 2
			b.mustLaunch(next)
			b.awaitGone(next.Ref)
			other := b.planLaunch(2, 1, Program{})
			b.mustLaunch(other)
			b.awaitGone(other.Ref)
			if all, err := b.e.List(t.Context()); err != nil || len(all) != 2 {
				t.Errorf("list %+v, %v", all, err)
			}
		})
	}
}

func (b *bench) mustForget(ref engine.Ref) {
	b.Helper()
	if err := b.e.Forget(b.Context(), ref); err != nil {
		b.Fatalf("forget: %v", err)
	}
}

// checkBarred launches what must not begin.
func (b *bench) checkBarred(l *engine.Launch) {
	b.Helper()
	checkKind(b.T, b.e.Launch(b.Context(), l), fault.Conflict)
	_, err := b.e.Inspect(b.Context(), l.Ref)
	checkKind(b.T, err, fault.NotFound)
	if all, err := b.e.List(b.Context()); err != nil || len(all) != 0 {
		b.Errorf("list %+v, %v", all, err)
	}
}
