package serverlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of entries. Entries of level debug, which somebody has asked for, are bounded in
// their length alone.
const (
	maxText     = 8 << 10         // bytes of a message or of one value
	maxAttrs    = 32              // values of an entry
	burst       = 100             // entries of one message at once
	perEntry    = 1 * time.Second // after which there is one more
	maxMessages = 256             // that are told apart
)

// Bounded is a handler in front of another one. It shortens long texts. It passes on 100 entries
// with the same message at once, and then one a second; the next entry with that message says how
// many were left out. It is safe for concurrent use, as slog requires.
type Bounded struct {
	next  slog.Handler
	rates *messageRates
}

// NewBounded returns a handler that passes entries on to next. now returns the time.
func NewBounded(next slog.Handler, now func() time.Time) *Bounded {
	return &Bounded{next: next, rates: &messageRates{now: now, of: map[string]*messageRate{}}}
}

// Enabled asks the next handler.
func (b *Bounded) Enabled(ctx context.Context, level slog.Level) bool {
	return b.next.Enabled(ctx, level)
}

// Handle passes an entry on, shortened, or leaves it out.
func (b *Bounded) Handle(ctx context.Context, r slog.Record) error {
	var left uint64
	if r.Level > slog.LevelDebug {
		var ok bool
		if left, ok = b.rates.takeEntry(r.Message); !ok {
			return nil
		}
	}
	out := slog.NewRecord(r.Time, r.Level, shortenText(r.Message), r.PC)
	n := 0
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(shortenAttr(a))
		n++
		return n < maxAttrs
	})
	if left > 0 {
		out.AddAttrs(slog.Uint64("left_out", left))
	}
	return b.next.Handle(ctx, out)
}

// WithAttrs returns a handler with the same bounds and counts.
func (b *Bounded) WithAttrs(as []slog.Attr) slog.Handler {
	short := make([]slog.Attr, 0, len(as))
	for _, a := range as {
		short = append(short, shortenAttr(a))
	}
	return &Bounded{b.next.WithAttrs(short), b.rates}
}

// WithGroup returns a handler with the same bounds and counts.
func (b *Bounded) WithGroup(name string) slog.Handler {
	return &Bounded{b.next.WithGroup(name), b.rates}
}

// shortenAttr bounds a value. A group or struct that is too long becomes the beginning of its text.
func shortenAttr(a slog.Attr) slog.Attr {
	a.Key = shortenText(a.Key)
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(shortenText(v.String()))
	case slog.KindAny, slog.KindGroup:
		if text := fmt.Sprint(v.Any()); len(text) > maxText {
			a.Value = slog.StringValue(shortenText(text))
		}
	}
	return a
}

// shortenText is a text of at most maxText bytes and a note of how much is missing.
func shortenText(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:cut], len(text)-cut)
}

// messageRates counts entries by message. Most messages are constants of the program. If one
// contains part of a request, the messages beyond maxMessages share one count.
type messageRates struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*messageRate
}

type messageRate struct {
	used float64   // entries, of burst
	at   time.Time // when used was true
	left uint64    // entries left out since the last one
}

// takeEntry says whether an entry is written, and how many before it were not.
func (m *messageRates) takeEntry(message string) (left uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	r := m.of[message]
	if r == nil {
		if len(m.of) >= maxMessages {
			message = ""
			r = m.of[message]
		}
		if r == nil {
			r = &messageRate{at: now}
			m.of[message] = r
		}
	}
	if gone := now.Sub(r.at); gone > 0 {
		r.used = max(0, r.used-gone.Seconds()/perEntry.Seconds())
	}
	r.at = now
	if r.used+1 > burst {
		r.left++
		return 0, false
	}
	r.used++
	left, r.left = r.left, 0
	return left, true
}
