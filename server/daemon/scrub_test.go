package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/store"
)

// bad is a store of which one row is damaged, and another one when it is scrubbed.
type bad struct{ list []store.Damage }

func (b *bad) Damages() []store.Damage { return b.list }

func (b *bad) Scrub(_ context.Context, pace func(int) error) error {
	b.list = append(b.list, store.Damage{Table: "blob", Row: "ab", Why: "its checksum is wrong"})
	return pace(1 << 30) // two minutes at the rate of a scrub
}

// TestDamageIsLogged: the log has one error for each damaged row, with its name, and a scrub ends
// with the server, however long it would still take.
func TestDamageIsLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	b := &bad{list: []store.Damage{{Table: "job", Row: "7", Job: 7, Why: "its checksum is wrong"}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := scrubState(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("the scrub: %v", err)
	}
	watchState(ctx, b, log)
	for _, want := range []string{"level=ERROR", "the stored row of job 7: its checksum is wrong", "row ab of table blob"} {
		if strings.Count(out.String(), want) == 0 {
			t.Errorf("the log lacks %q: %s", want, &out)
		}
	}
	if n := strings.Count(out.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors are logged, of two damaged rows: %s", n, &out)
	}
}
