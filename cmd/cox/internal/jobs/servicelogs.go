package jobs

import (
	"bufio"
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

// serviceLog joins the output of the replicas of a service.
type serviceLog struct {
	app    *cli.App
	client *client.Client
	name   string
	opts   client.LogOptions

	mu      sync.Mutex // held while a line is written
	readers sync.WaitGroup
	known   map[job.ID]bool
}

// FollowService copies the output of all replicas of a service to standard output, each line behind
// its replica. With Follow it goes on, with new replicas too, until the service is gone.
func FollowService(ctx context.Context, a *cli.App, c *client.Client, name string, o client.LogOptions) error {
	l := &serviceLog{app: a, client: c, name: name, opts: o, known: map[job.ID]bool{}}
	ctx, stop := context.WithCancel(ctx)
	defer l.readers.Wait()
	defer stop()
	s, err := c.Service(ctx, name)
	if err != nil {
		return err
	}
	l.readNew(ctx, s)
	if !o.Follow {
		l.readers.Wait()
		return nil
	}
	look := time.NewTicker(lookForReplicas)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		s, err := c.Service(ctx, name)
		switch fault.KindOf(err) {
		case fault.NotFound:
			l.readers.Wait() // what its replicas printed last
			return nil
		case fault.Unavailable:
			continue
		}
		if err != nil {
			return err
		}
		l.readNew(ctx, s)
	}
}

// readNew begins to read the output of replicas that are new.
func (l *serviceLog) readNew(ctx context.Context, s *api.Service) {
	for i := range s.Parts {
		r := s.Parts[i]
		if r.Job == 0 || l.known[r.Job] {
			continue
		}
		l.known[r.Job] = true
		l.readers.Go(func() { l.copyReplica(ctx, r) })
	}
}

// copyReplica copies what a replica prints until it has ended, or ctx.
func (l *serviceLog) copyReplica(ctx context.Context, r api.Replica) {
	prefix := fmt.Sprintf("%s.%d | ", l.name, r.Index)
	in, err := l.client.Logs(ctx, r.Job.String(), l.opts)
	if err != nil {
		if ctx.Err() == nil && fault.KindOf(err) != fault.NotFound { // it has printed nothing
			l.write(prefix, fmt.Sprintf("(its output cannot be read: %v)", err))
		}
		return
	}
	defer in.Close()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.write(prefix, line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				l.write(prefix, fmt.Sprintf("(its output was cut off: %v)", err))
			}
			return
		}
	}
}

func (l *serviceLog) write(prefix, line string) {
	if line == "" || line[len(line)-1] != '\n' {
		line += "\n"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.app.Out, prefix+line) // who has closed it wants no more
}
