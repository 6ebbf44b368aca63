package cli

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

// App is one call of cox: its standard streams, the flags of every command, and the
// exit code that the command leaves.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time

	Server   string // --server
	NoColour bool   // --no-color
	Code     int    // the exit code, if no error decides it

	// SubmitFile hands a file of work to the server, as cox submit does; dry: it only checks. It is set by the
	// commands that submit.
	SubmitFile func(cmd *cobra.Command, file string, data []byte, dry bool, format Format) error

	list printer.ListOptions
}

// New returns the application of this process.
func New() *App {
	return &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now}
}

// Client returns a client of the server that the options and the environment name.
func (a *App) Client() (*client.Client, error) {
	return client.New(client.Options{URL: a.Server})
}

// Page says how to print text on one of the streams: width, colours, time.
func (a *App) Page(w io.Writer) printer.Page {
	p := printer.Page{Now: a.Now(), Zone: time.Local, ListOptions: a.list}
	if fd, ok := TerminalFd(w); ok {
		p.Width = 80
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			p.Width = width
		}
		p.Colour = !a.NoColour && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	}
	return p
}

// TerminalFd returns the descriptor of a stream that is a terminal.
func TerminalFd(stream any) (fd int, ok bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	_, ok := TerminalFd(stream)
	return ok
}

// WithServer is the RunE of a command that talks to the server. Words of the command line that
// name jobs come as numbers of jobs.
func (a *App) WithServer(f func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		defer c.Close()
		words, err := a.resolveJobs(cmd, c, args)
		if err != nil {
			return err
		}
		return f(cmd, c, words)
	}
}

// RequireJobs refuses an empty list of jobs with an example.
func RequireJobs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "cox %s needs a job", verb).Advise("for example: cox %s 7, cox %s NAME or cox %s last (cox queue lists the jobs)", verb, verb, verb)
		}
		return nil
	}
}
