package servertest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Files is an engine's logger: it opens files below a folder and says as whom it was asked to.
type Files struct {
	Dir   string
	Asked chan string
}

func (f *Files) OpenLog(_ context.Context, owner job.Owner, file string) (io.ReadCloser, error) {
	select {
	case f.Asked <- owner.User + " " + file:
	default:
	}
	r, err := os.Open(filepath.Join(f.Dir, filepath.Base(file)))
	if err != nil {
		return nil, fault.New(fault.NotFound, "%w", err)
	}
	return r, nil
}

// Shell is a command that repeats its input in capitals.
type Shell struct{ Got chan engine.ExecRequest }

func (s *Shell) Exec(ctx context.Context, _ engine.Ref, e engine.ExecRequest) (job.ExitCode, error) {
	s.Got <- e
	switch e.Command[0] {
	case "upper":
		b, err := io.ReadAll(e.Stdin)
		if err != nil {
			return job.ExitCode{}, err
		}
		fmt.Fprint(e.Stdout, strings.ToUpper(string(b)))
		fmt.Fprint(e.Stderr, "done")
		return job.ExitCode{Status: 3}, nil
	case "size":
		w := <-e.Resize
		fmt.Fprintf(e.Stdout, "%dx%d", w.Rows, w.Cols)
		return job.ExitCode{}, nil
	case "sleep":
		<-ctx.Done()
		s.Got <- engine.ExecRequest{Command: []string{"stopped"}}
		return job.ExitCode{}, ctx.Err()
	}
	return job.ExitCode{}, fault.New(fault.NotFound, "%s: no such command", e.Command[0]).Advise("look at PATH")
}

// Delegate is an engine that drives another scheduler.
type Delegate struct {
	engine.Engine
	Inv *fleet.Inventory
}

func (e Delegate) Inventory() *fleet.Inventory { return e.Inv }

func (e Delegate) Explain(word string) (what, help string) {
	if word != "JobHeldAdmin" {
		return "", ""
	}
	return "an administrator holds it", "ask them"
}

// receiver is an engine to whose pool directories come with jobs, or not.
type receiver struct {
	engine.Engine
	yes bool
}

func (r receiver) Receives() bool { return r.yes }
