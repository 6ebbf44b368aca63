package main

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

// watchTable shows a table and keeps it up to date until ctx ends. Without a
// terminal it prints the table once and then a line for each event.
func (a *app) watchTable(ctx context.Context, c *client.Client, list func() (*printer.Table, int, error), w client.WatchOptions) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	w.After = info.Change
	if !onTerminal(a.out) {
		t, _, err := list()
		if err != nil {
			return err
		}
		if err := t.Write(a.out, a.page(a.out)); err != nil {
			return err
		}
		return c.Watch(ctx, w, func(e api.Event) error {
			_, err := fmt.Fprintln(a.out, printer.Event(a.page(a.out), &e))
			return err
		})
	}
	return a.redraw(ctx, c, list, w)
}

func (a *app) redraw(ctx context.Context, c *client.Client, list func() (*printer.Table, int, error), w client.WatchOptions) error {
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
			return errors.Join(err, stopped(cancel, ended))
		}
		drawn = a.draw(t, n, drawn)
		began := a.now()
		select {
		case err := <-ended:
			return err
		case <-changed:
			if err := pause(ctx, drawEach-a.now().Sub(began)); err != nil {
				return errors.Join(err, stopped(cancel, ended))
			}
		case <-time.After(drawEvery):
		}
	}
}

// stopped ends a watch and waits for it; that it was ended is no error.
func stopped(cancel func(), ended <-chan error) error {
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// draw writes the table over the lines that were drawn before, as many rows as the
// terminal has, and returns how many lines there are now.
func (a *app) draw(t *printer.Table, n, before int) (lines int) {
	p := a.page(a.out)
	var text bytes.Buffer
	_ = t.Write(&text, p) // into memory
	all := strings.SplitAfter(strings.TrimSuffix(text.String(), "\n"), "\n")
	height := 24
	if fd, ok := terminal(a.out); ok {
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
	fmt.Fprint(a.out, b.String())
	return len(all) + 1
}
