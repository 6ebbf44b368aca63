package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// app is one call of cox: its standard streams, what holds for every command, and
// the exit code that the command leaves.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time
	slurm    func() (string, error) // the binary of Slurm's names

	server   string
	noColour bool
	code     int
}

func newApp() *app {
	return &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now, slurm: namesTarget}
}

// client returns a client of the server that the options and the environment name.
func (a *app) client() (*client.Client, error) {
	return client.New(client.Options{URL: a.server})
}

// page is how text is to be shown on one of the streams.
func (a *app) page(w io.Writer) printer.Page {
	p := printer.Page{Now: a.now(), Zone: time.Local}
	if fd, ok := terminal(w); ok {
		p.Width = 80
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			p.Width = width
		}
		p.Colour = !a.noColour && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	}
	return p
}

// terminal returns the descriptor of a stream that is a terminal.
func terminal(stream any) (fd int, ok bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// onTerminal reports whether a stream is a terminal.
func onTerminal(stream any) bool {
	_, ok := terminal(stream)
	return ok
}

// asks is the RunE of a command that talks to the server.
func (a *app) asks(f func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(cmd, c, args)
	}
}

// needJobs refuses an empty list of jobs with an example.
func needJobs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "which job?").Advise("cox %s 7   (cox queue lists them)", verb)
		}
		return nil
	}
}
