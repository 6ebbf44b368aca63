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
			is(b.T, b.e.Stop(b.Context(), l.Ref, engine.Stop{}), fault.NotFound)
		},
		"NeverKnown": func(b *bench, l *engine.Launch) { b.forget(l.Ref) },
		"Forgotten": func(b *bench, l *engine.Launch) {
			b.launch(l)
			b.gone(l.Ref)
			b.forget(l.Ref)
		},
	} {
		h.run(t, name, func(t *testing.T) {
			b := start(t, h)
			l := b.plan(1, 2, Program{})
			over(b, l)
			b.barred(l)
			over := l.Ref
			if h.Reopen != nil {
				b.reopen(func() {})
				b.barred(l)
				b.reopen(func() {}) // what was read is kept
				b.barred(l)
			}
			is(t, b.e.Stop(t.Context(), over, engine.Stop{}), fault.NotFound)
			b.forget(over)
			next := b.plan(1, 2, Program{}) // another attempt of it, and another allocation, may begin
			next.Ref.Attempt = 2
			b.launch(next)
			b.gone(next.Ref)
			other := b.plan(2, 1, Program{})
			b.launch(other)
			b.gone(other.Ref)
			if all, err := b.e.List(t.Context()); err != nil || len(all) != 2 {
				t.Errorf("list %+v, %v", all, err)
			}
		})
	}
}

func (b *bench) forget(ref engine.Ref) {
	b.Helper()
	if err := b.e.Forget(b.Context(), ref); err != nil {
		b.Fatalf("forget: %v", err)
	}
}

// barred launches what must not begin.
func (b *bench) barred(l *engine.Launch) {
	b.Helper()
	is(b.T, b.e.Launch(b.Context(), l), fault.Conflict)
	_, err := b.e.Inspect(b.Context(), l.Ref)
	is(b.T, err, fault.NotFound)
	if all, err := b.e.List(b.Context()); err != nil || len(all) != 0 {
		b.Errorf("list %+v, %v", all, err)
	}
}
