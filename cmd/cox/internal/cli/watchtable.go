package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// The pace of a list that is watched: never drawn more often than each, and at
// least as often as every, because times go on without events.
const (
	drawEach  = 500 * time.Millisecond
	drawEvery = 2 * time.Second
)

// WatchTable shows a table and keeps it up to date until ctx ends. Without a
// terminal it prints the table once and then a line for each event.
func (a *App) WatchTable(ctx context.Context, c *client.Client, list func() (*printer.Table, int, error), w client.WatchOptions) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	w.After = info.Change
	if !IsTerminal(a.Out) {
		t, _, err := list()
		if err != nil {
			return err
		}
		if err := t.Write(a.Out, a.Page(a.Out)); err != nil {
			return err
		}
		return c.Watch(ctx, w, func(e api.Event) error {
			_, err := fmt.Fprintln(a.Out, printer.Event(a.Page(a.Out), &e))
			return err
		})
	}
	return a.redrawTable(ctx, c, list, w)
}

func (a *App) redrawTable(ctx context.Context, c *client.Client, list func() (*printer.Table, int, error), w client.WatchOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, w, func(api.Event) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	drawn := 0
	for {
		t, n, err := list()
		if err != nil {
			return errors.Join(err, StopWatch(cancel, ended))
		}
		drawn = a.drawTable(t, n, drawn)
		began := a.Now()
		select {
		case err := <-ended:
			return err
		case <-changed:
			if err := sleepContext(ctx, drawEach-a.Now().Sub(began)); err != nil {
				return errors.Join(err, StopWatch(cancel, ended))
			}
		case <-time.After(drawEvery):
		}
	}
}

// StopWatch ends a watch and waits for it; that it was ended is no error.
func StopWatch(cancel func(), ended <-chan error) error {
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// sleepContext waits, unless ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drawTable writes the table over the lines that were drawn before, as many rows as the
// terminal has, and returns how many lines there are now.
func (a *App) drawTable(t *printer.Table, n, before int) (lines int) {
	p := a.Page(a.Out)
	var text bytes.Buffer
	_ = t.Write(&text, p) // into memory
	all := strings.SplitAfter(strings.TrimSuffix(text.String(), "\n"), "\n")
	height := 24
	if fd, ok := TerminalFd(a.Out); ok {
		if _, h, err := term.GetSize(fd); err == nil && h > 2 {
			height = h
		}
	}
	last := fmt.Sprintf("%s, %s          Ctrl-C ends", printer.Count(n, "row"), p.Now.In(p.Zone).Format("15:04:05"))
	if room := height - 2; len(all) > room {
		last = fmt.Sprintf("… %d more; %s", len(all)-room, last)
		all = all[:room]
	}
	var b strings.Builder
	if before > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", before)
	}
	for _, l := range all {
		b.WriteString(strings.TrimSuffix(l, "\n") + "\x1b[K\n")
	}
	b.WriteString(p.Paint(printer.Dim, printer.Cut(last, p.Width)) + "\x1b[K\n\x1b[J")
	fmt.Fprint(a.Out, b.String())
	return len(all) + 1
}
