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
		line += " serves already: nothing has changed"
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

// lookAtService is how often a service is looked at while somebody waits for it.
const lookAtService = 300 * time.Millisecond

// waitService waits until the revision that was submitted serves; the exit code is 1 if it does not come
// to that. Ctrl-C ends the waiting, not the service.
func waitService(ctx context.Context, a *cli.App, c *client.Client, f *submitFlags, of *api.SubmittedService) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	look := time.NewTicker(lookAtService)
	defer look.Stop()
	for {
		s, err := c.Service(ctx, of.Name)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(a.Err, "service %s goes on          cox service show %s   cox service stop %s\n", of.Name, of.Name, of.Name)
			a.Code = 130
			return nil
		case err != nil:
			return err
		}
		switch r := s.Rollout; {
		case s.Revision != of.Revision || r != nil && (r.Phase == string(service.Undoing) || r.Phase == string(service.Halted)):
			fmt.Fprintln(a.Err, printer.Rollout(a.Page(a.Err), s))
			a.Code = 1
			return nil
		case (r == nil || r.Phase == string(service.Done)) && s.Replicas.Ready >= s.Replicas.Want:
			if !f.quiet && !f.parsable {
				fmt.Fprintf(a.Err, "service %s: %d of %s ready\n", s.Name, s.Replicas.Ready, printer.Count(s.Replicas.Want, "replica"))
			}
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}
