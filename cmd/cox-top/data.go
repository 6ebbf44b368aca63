package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// The pace of looking at the server.
const (
	lookEach  = 250 * time.Millisecond // not more often, however many events come
	lookEvery = 2 * time.Second        // not more seldom
	lookTime  = 10 * time.Second       // no answer after this is none
)

// snapshot is what was seen of the server in one look.
type snapshot struct {
	info  *api.ServerInfo
	nodes []api.Node
	pools []api.Pool
	jobs  []printer.QueueRow // live, by number; waiting tasks of an array in one row
}

// The messages that come from the server.
type (
	seenMsg    struct{ snapshot }
	lostMsg    struct{ err error }          // a look failed
	changedMsg struct{}                     // something has changed
	cardMsg    struct{ title, text string } // an answer to show over the list
	doneMsg    struct{ text string }        // what became of a change
)

// source is where the model asks. Its methods make commands, which run outside of
// the model.
type source interface {
	fetchAll() tea.Msg
	readUse() tea.Msg
	jobCard(name string) tea.Cmd
	whyCard(name string) tea.Cmd
	cancelJob(name string) tea.Cmd
	openShell(target string) tea.Cmd
	openLog(target string, stderr bool) logReader
}

// remote asks a server.
type remote struct {
	c      *client.Client
	ctx    context.Context
	server string // as --server has it, "": what the environment says
}

func (r *remote) requestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, lookTime)
}

// fetchAll asks for everything that the views show.
func (r *remote) fetchAll() tea.Msg {
	ctx, stop := r.requestContext()
	defer stop()
	var s snapshot
	var err error
	if s.info, err = r.c.Info(ctx); err != nil {
		return lostMsg{err}
	}
	nodes, err := r.c.Nodes(ctx)
	if err != nil {
		return lostMsg{err}
	}
	s.nodes = nodes.Nodes
	pools, err := r.c.Pools(ctx)
	if err != nil {
		return lostMsg{err}
	}
	s.pools = pools.Pools
	lines, err := r.c.JobsTSV(ctx, client.Query{Collapse: true}, printer.QueueColumns()...)
	if err != nil {
		return lostMsg{err}
	}
	defer lines.Close()
	if s.jobs, err = readRows(lines); err != nil {
		return lostMsg{err}
	}
	return seenMsg{s}
}

func readRows(r io.Reader) ([]printer.QueueRow, error) {
	var rows []printer.QueueRow
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i := range fields {
				fields[i] = api.UnescapeTSV(fields[i])
			}
			row, err := printer.QueueRowFrom(fields)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		}
	}
}

// followChanges tells of changes until the context ends, at most one for each lookEach.
func (r *remote) followChanges(tell func(tea.Msg)) {
	changed := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.watchEvents(changed)
	}()
	pace := time.NewTicker(lookEach)
	defer pace.Stop()
	for {
		select {
		case <-ended:
			return
		case <-changed:
			tell(changedMsg{})
		}
		select { // the next one not before its time
		case <-ended:
			return
		case <-pace.C:
		}
	}
}

func (r *remote) watchEvents(changed chan<- struct{}) {
	for r.ctx.Err() == nil {
		info, err := r.c.Info(r.ctx)
		if err != nil {
			select {
			case <-time.After(lookEvery):
			case <-r.ctx.Done():
			}
			continue
		}
		_ = r.c.Watch(r.ctx, client.WatchOptions{After: info.Change}, func(api.Event) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}
}

func (r *remote) jobCard(name string) tea.Cmd {
	return r.askCard(name, func(ctx context.Context, p printer.Page) (string, error) {
		j, err := r.c.Job(ctx, name)
		if err != nil {
			return "", err
		}
		return printer.Job(p, j, joboutput.FirstError(ctx, r.c, j)), nil
	})
}

func (r *remote) whyCard(name string) tea.Cmd {
	return r.askCard("why "+name, func(ctx context.Context, p printer.Page) (string, error) {
		w, err := r.c.Why(ctx, name)
		if err != nil {
			return "", err
		}
		j, err := r.c.Job(ctx, w.Name) // of an array it is one of its tasks
		if err != nil {
			return "", err
		}
		text := printer.Why(p, w, j)
		if line := joboutput.FirstError(ctx, r.c, j); line != "" {
			text += "  first  " + printer.Clean(line) + "\n"
		}
		return text, nil
	})
}

func (r *remote) askCard(title string, ask func(context.Context, printer.Page) (string, error)) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := r.requestContext()
		defer stop()
		text, err := ask(ctx, printer.Page{Now: time.Now(), Zone: time.Local})
		if err != nil {
			return doneMsg{err.Error()}
		}
		return cardMsg{title, text}
	}
}

func (r *remote) cancelJob(name string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := r.requestContext()
		defer stop()
		done, err := r.c.Change(ctx, &api.Change{Verb: api.VerbCancel, Select: api.Select{IDs: []string{name}}})
		switch {
		case err != nil:
			return doneMsg{err.Error()}
		case len(done.Errors) > 0:
			return doneMsg{done.Errors[0].Error.Error()}
		}
		return doneMsg{strings.TrimSpace(printer.Changed("cancelled", done))}
	}
}
