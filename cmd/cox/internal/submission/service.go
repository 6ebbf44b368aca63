package submission

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/service"
)

// printSubmittedService says what became of a service: "service chat, revision 1: http://chat.localhost:8080".
func printSubmittedService(a *cli.App, f *submitFlags, done *api.Submitted) error {
	s := done.Service
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, done)
	case f.parsable || f.format == cli.AsName:
		return cli.WriteNames(a.Out, []string{s.Name})
	case f.quiet:
		return nil
	}
	p := a.Page(a.Out)
	line := fmt.Sprintf("service %s, revision %d", p.Paint(printer.Accent, printer.Clean(s.Name)), s.Revision)
	if !s.Changed && !s.Created {
		line = fmt.Sprintf("service %s is at revision %d already, nothing has changed", p.Paint(printer.Accent, printer.Clean(s.Name)), s.Revision)
	}
	if s.URL != "" {
		line += ": " + s.URL
	}
	if p.Width > 0 && !f.wait {
		line += p.Paint(printer.Dim, fmt.Sprintf("          cox service show %s   cox logs -f %s", s.Name, s.Name))
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}

// longestOutage is how long a server may be away while somebody waits for a service.
const longestOutage = time.Minute

// serviceLook looks at a service, over a restart of its server.
type serviceLook struct {
	app    *cli.App
	client *client.Client
	name   string
	lost   time.Time // when the server was first away; zero: it answers
}

// next returns the service as it is now; nil without an error: the server is away, look again.
func (l *serviceLook) next(ctx context.Context) (*api.Service, error) {
	return l.take(ctx, l.client.Service)
}

// stop ends the service, and returns it as next does.
func (l *serviceLook) stop(ctx context.Context) (*api.Service, error) {
	return l.take(ctx, l.client.StopService)
}

func (l *serviceLook) take(ctx context.Context, ask func(context.Context, string) (*api.Service, error)) (*api.Service, error) {
	s, err := ask(ctx, l.name)
	if err != nil {
		return nil, l.endure(ctx, err)
	}
	l.lost = time.Time{}
	return s, nil
}

// endure returns nil for the error of a server that is away for a short time, and says so once.
func (l *serviceLook) endure(ctx context.Context, err error) error {
	switch {
	case err == nil:
	case fault.KindOf(err) != fault.Unavailable || ctx.Err() != nil:
		return err
	case l.lost.IsZero():
		l.lost = l.app.Now()
		fmt.Fprintf(l.app.Err, "… %s; trying again for %s\n", printer.Clean(err.Error()), printer.Duration(longestOutage))
	case l.app.Now().Sub(l.lost) > longestOutage:
		return err
	}
	return nil
}

// lookAtService is how often a service is looked at while somebody waits for it.
const lookAtService = 300 * time.Millisecond

// waitService waits until the revision that was submitted serves; the exit code is 1 if it does not come
// to that. Ctrl-C ends the waiting, not the service.
func waitService(ctx context.Context, a *cli.App, c *client.Client, f *submitFlags, of *api.SubmittedService) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	look := time.NewTicker(lookAtService)
	defer look.Stop()
	at := &serviceLook{app: a, client: c, name: of.Name}
	for {
		s, err := at.next(ctx)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(a.Err, "service %s goes on          cox service show %s   cox service stop %s\n", of.Name, of.Name, of.Name)
			a.Code = 130
			return nil
		case err != nil:
			return err
		case s != nil:
			if served, over := isOver(s, of); over {
				printOver(a, f, s, served)
				return nil
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// isOver reports whether waiting for a revision has come to an end, and whether it serves.
func isOver(s *api.Service, of *api.SubmittedService) (serves, over bool) {
	switch r := s.Rollout; {
	case s.Revision != of.Revision || r != nil && (r.Phase == string(service.Undoing) || r.Phase == string(service.Halted)):
		return false, true
	case (r == nil || r.Phase == string(service.Done)) && s.Replicas.Ready >= s.Replicas.Want:
		return true, true
	}
	return false, false
}

// printOver says what came of a revision.
func printOver(a *cli.App, f *submitFlags, s *api.Service, serves bool) {
	switch {
	case !serves:
		fmt.Fprintln(a.Err, printer.Rollout(a.Page(a.Err), s))
		a.Code = 1
	case !f.quiet && !f.parsable:
		fmt.Fprintf(a.Err, "service %s: %d of %s ready\n", s.Name, s.Replicas.Ready, printer.Count(s.Replicas.Want, "replica"))
	}
}
