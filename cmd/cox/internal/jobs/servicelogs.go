package jobs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// lookForReplicas is how often a service is asked for replicas that are new.
const lookForReplicas = time.Second

// longestPiece is how much of a line is held: a longer one is printed in pieces, each on a line.
const longestPiece = 64 << 10

// serviceLog joins the output of the replicas of a service.
type serviceLog struct {
	app    *cli.App
	client *client.Client
	name   string
	opts   client.LogOptions

	mu       sync.Mutex // held while a line is written, and over replicas
	readers  sync.WaitGroup
	replicas map[job.ID]*replicaLog
}

// replicaLog is how far the output of a replica is printed. Its reader alone writes what is not of the
// lock.
type replicaLog struct {
	id     job.ID
	prefix string
	reads  bool // a reader is at work; under the lock
	cut    bool // the last reader did not come to an end; under the lock
	failed bool // its output cannot be read; under the lock

	opened bool
	anew   bool   // it is not the output that was printed before
	at     int64  // the next byte to print; -1: the server does not say where
	mark   []byte // the last bytes before it
}

// markSize is how many bytes before the next one show that an output is the same as before.
const markSize = 256

// lastLines is how many lines are printed of an output that was rotated while nobody read it.
const lastLines = 1000

// FollowService copies the output of all replicas of a service to standard output, each line behind
// its replica. With Follow it goes on, with new replicas too and over a restart of the server, until the
// service is gone. lost is told once each time that the server is away.
func FollowService(ctx context.Context, a *cli.App, c *client.Client, name string, o client.LogOptions, lost func(error)) error {
	l := &serviceLog{app: a, client: c, name: name, opts: o, replicas: map[job.ID]*replicaLog{}}
	ctx, stop := context.WithCancel(ctx)
	defer l.readers.Wait()
	defer stop()
	s, err := c.Service(ctx, name)
	if err != nil {
		return err
	}
	l.readReplicas(ctx, s)
	if !o.Follow {
		l.readers.Wait()
		return nil
	}
	look := time.NewTicker(lookForReplicas)
	defer look.Stop()
	for away := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		s, err := c.Service(ctx, name)
		switch kind := fault.KindOf(err); {
		case kind == fault.NotFound:
			l.readers.Wait()
			l.readRest(ctx)
			l.readers.Wait() // before the end of ctx
			return nil
		case kind == fault.Unavailable && ctx.Err() == nil:
			if !away {
				lost(err)
			}
			away = true
			continue
		case err != nil:
			return err
		}
		away = false
		l.readReplicas(ctx, s)
	}
}

// readReplicas begins to read the output of replicas that nobody reads: new ones, those that were
// cut off, and those that began again in the queue.
func (l *serviceLog) readReplicas(ctx context.Context, s *api.Service) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range s.Parts {
		r := &s.Parts[i]
		if r.Job == 0 {
			continue
		}
		known := l.replicas[r.Job]
		if known == nil {
			known = &replicaLog{id: r.Job, prefix: fmt.Sprintf("%s.%d | ", l.name, r.Index)}
			l.replicas[r.Job] = known
		}
		if !known.reads && !known.failed {
			known.reads = true
			l.readers.Go(func() { l.readReplica(ctx, known, l.opts.Follow) })
		}
	}
}

// readRest prints what replicas that were cut off printed last, of a service that is gone.
func (l *serviceLog) readRest(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.replicas {
		if known.cut && !known.failed {
			l.readers.Go(func() { l.readReplica(ctx, known, false) })
		}
	}
}

// readReplica prints what a replica prints until it has ended, or ctx.
func (l *serviceLog) readReplica(ctx context.Context, known *replicaLog, follow bool) {
	err := l.copyReplica(ctx, known, follow)
	kind := fault.KindOf(err)
	failed := err != nil && kind != fault.Unavailable && kind != fault.NotFound && ctx.Err() == nil // it has printed nothing
	if failed {
		l.write(known.prefix, fmt.Sprintf("(its output cannot be read: %v)", err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known.reads, known.cut, known.failed = false, kind == fault.Unavailable, known.failed || failed
}

// copyReplica prints the output of a replica from where it was printed last.
func (l *serviceLog) copyReplica(ctx context.Context, known *replicaLog, follow bool) error {
	in, same, err := l.openReplica(ctx, known, follow)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, longestPiece)
	if n := len(known.mark); same && n > 0 {
		before, err := lines.Peek(n)
		if fault.KindOf(err) == fault.Unavailable {
			return err
		}
		same = bytes.Equal(before, known.mark)
		_, _ = lines.Discard(len(before)) // they are there
	}
	if !same {
		return l.copyAnew(ctx, known, follow)
	}
	for {
		line, err := lines.ReadSlice('\n')
		whole := err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF)
		if len(line) > 0 && whole { // of one that was cut off the rest is still to come
			l.write(known.prefix, string(line))
			known.notePrinted(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// openReplica opens the output of a replica from where it was printed last, and the mark before; same is
// false if it has not so much.
func (l *serviceLog) openReplica(ctx context.Context, known *replicaLog, follow bool) (in *client.Log, same bool, err error) {
	o := l.opts
	switch o.Follow = follow; {
	case known.opened:
		o.Tail, o.From = 0, max(known.at-int64(len(known.mark)), 0)
	case known.anew:
		o.Tail = lastLines
	}
	if in, err = l.client.OpenLog(ctx, known.id.String(), o); err != nil {
		return nil, false, err
	}
	if !known.opened {
		known.opened, known.at = true, in.From()
		return in, true, nil
	}
	return in, in.From() == o.From, nil
}

// copyAnew prints the last lines of an output that is not what it was: its replica began anew and emptied
// the file, or it was rotated.
func (l *serviceLog) copyAnew(ctx context.Context, known *replicaLog, follow bool) error {
	l.write(known.prefix, fmt.Sprintf("(its output begins anew: the last %d lines of it at most)", lastLines))
	known.opened, known.anew, known.mark = false, true, nil
	return l.copyReplica(ctx, known, follow)
}

// notePrinted notes that bytes were printed.
func (k *replicaLog) notePrinted(line []byte) {
	k.at += int64(len(line))
	k.mark = append(k.mark, line...)
	k.mark = append(k.mark[:0], k.mark[max(0, len(k.mark)-markSize):]...)
}

func (l *serviceLog) write(prefix, line string) {
	if line == "" || line[len(line)-1] != '\n' {
		line += "\n"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.app.Out, prefix+line) // who has closed it wants no more
}
