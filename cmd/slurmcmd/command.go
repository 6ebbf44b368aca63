package slurmcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Version is what the commands print for -V: the Slurm whose manual they follow.
const Version = "slurm 24.11 (coxswain)"

// Release is the same as Slurm writes it where programs read it.
const Release = "24.11.0"

// Stdio are the streams of a command, and where it finds its environment and server.
// Nil fields are those of the process.
type Stdio struct {
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Environ []string                           // NAME=VALUE
	Server  func() (*fastclient.Client, error) // nil: the one that package address finds
	Now     func() time.Time
}

// Command is a running command.
type Command struct {
	Name   string
	In     io.Reader
	Out    *bufio.Writer // written out by Exit
	Raw    io.Writer     // what Out writes to
	Err    io.Writer
	Now    time.Time
	Code   int // exit code so far
	env    []string
	server func() (*fastclient.Client, error)
	client *fastclient.Client

	chosen  clusterChoice
	cluster string   // the name of the server's cluster, once it is known …
	pools   []string // … and those of its pools
}

// Begin makes a command of its streams.
func Begin(name string, s Stdio) *Command {
	c := &Command{Name: name, In: s.In, Err: s.Err, env: s.Environ, server: s.Server}
	if c.In == nil {
		c.In = os.Stdin
	}
	if c.Err == nil {
		c.Err = os.Stderr
	}
	if s.Out == nil {
		s.Out = os.Stdout
	}
	c.Raw = s.Out
	c.Out = bufio.NewWriterSize(s.Out, 32<<10)
	if c.env == nil {
		c.env = os.Environ()
	}
	if c.server == nil {
		c.server = fastclient.Find
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	c.Now = s.Now()
	return c
}

// Environ is the environment, NAME=VALUE.
func (c *Command) Environ() []string { return c.env }

// Getenv returns a variable, or "".
func (c *Command) Getenv(name string) string {
	v, _ := c.LookupEnv(name)
	return v
}

// LookupEnv returns a variable, and whether it is set.
func (c *Command) LookupEnv(name string) (string, bool) {
	for i := len(c.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.env[i], name); ok && v != "" && v[0] == '=' {
			return v[1:], true
		}
	}
	return "", false
}

// Client is the connection to the server, made at the first call.
func (c *Command) Client() (*fastclient.Client, error) {
	if c.client == nil {
		cl, err := c.server()
		if err != nil {
			return nil, err
		}
		c.client = cl
	}
	return c.client, nil
}

// Errorf writes "NAME: error: …" and a newline.
func (c *Command) Errorf(format string, args ...any) {
	fmt.Fprintf(c.Err, c.Name+": error: "+format+"\n", args...)
}

// Sayf writes "NAME: …" and a newline to the standard error.
func (c *Command) Sayf(format string, args ...any) {
	fmt.Fprintf(c.Err, c.Name+": "+format+"\n", args...)
}

// SayWarning writes a warning of a submission: its place, its option and its message.
func (c *Command) SayWarning(w fastclient.Value) {
	text := strings.TrimSpace(w.Get("option").Text() + " " + w.Get("message").Text())
	c.Sayf("warning: %s%s", Place(w.Get("file").Text(), int(w.Get("line").Int())), text)
}

// PlainError is an error that is printed without the command's name in front, as
// Slurm has a few.
type PlainError struct{ Text string }

// Error is the text.
func (e *PlainError) Error() string { return e.Text }

// Fail reports an error, where it was in a file and what to do about it, and makes
// the exit code 1.
func (c *Command) Fail(err error) {
	c.Code = 1
	var usage *UsageError
	if errors.As(err, &usage) {
		usage.printUsage(c)
		return
	}
	var plain *PlainError
	if errors.As(err, &plain) {
		fmt.Fprintln(c.Err, plain.Text)
		return
	}
	var e *api.Error
	if errors.As(err, &e) && len(e.Errors) > 0 {
		for _, p := range e.Errors {
			c.Errorf("%s%s", Place(p.File, p.Line), p.Message)
			c.printRemedy(p.Remedy)
		}
		return
	}
	c.Errorf("%v", err)
	if e != nil {
		c.printRemedy(e.Remedy)
		return
	}
	c.printRemedy(fault.Remedy(err))
}

func (c *Command) printRemedy(remedy string) {
	if remedy != "" {
		c.Sayf("  %s", remedy)
	}
}

// Place is "FILE:LINE: ", as far as these are known.
func Place(file string, line int) string {
	switch {
	case file == "" && line == 0:
		return ""
	case line == 0:
		return file + ": "
	case file == "":
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Finish reports what a command came to and ends it: its exit code.
func (c *Command) Finish(err error) int {
	if err != nil {
		c.Fail(err)
	}
	return c.Exit()
}

// Told prints what the command was asked about itself: a text, if it is to, else its
// version, if that. It reports whether it was asked either.
func (c *Command) Told(help bool, text string, version bool) bool {
	switch {
	case help:
		c.Out.WriteString(text)
	case version:
		c.Out.WriteString(Version + "\n")
	}
	return help || version
}

// Exit writes out what was printed, closes the connection and returns the exit code.
// A reader that went away is no error.
func (c *Command) Exit() int {
	if c.client != nil {
		c.client.Close()
	}
	_ = c.Out.Flush()
	return c.Code
}

// IsNotFound reports whether the server said that there is no such thing.
func IsNotFound(err error) bool { return fault.KindOf(err) == fault.NotFound }
