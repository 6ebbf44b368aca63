package srun

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// joinJob runs a step in a job that runs, for --jobid and SLURM_JOB_ID. Where the job's nodes are
// of this machine, the step's code runs in this process, else on the job's first node.
func joinJob(c *slurmcmd.Command, job string, args []string) error {
	in, err := inputFile(c.In)
	if err != nil {
		return err
	}
	a, err := Allocation(job)
	switch {
	case errors.Is(err, errSiteNodes) && asksTerminal(args):
		return joinWithTerminal(c, job, args)
	case errors.Is(err, fs.ErrNotExist) && asksTerminal(args):
		return fault.New(fault.Unsupported, "--pty needs nodes of this machine").Advise("cox shell %s opens a shell in the job", job)
	case errors.Is(err, fs.ErrNotExist):
		addr, err := address.Find("", "")
		if err != nil {
			return err
		}
		code, err := fastclient.New(addr).Exec(job, append([]string{"srun"}, args...), in, c.Raw, c.Err)
		c.Code = code.Shell()
		return err
	case err != nil:
		return err
	}
	call := &stepsrun.Invocation{Alloc: a, Args: args, Environ: env.Allocation(a, c.Environ()), Stdio: step.Stdio{In: in, Out: c.Raw, Err: c.Err}}
	c.Code, _ = call.Run()
	return nil
}

// joinWithTerminal runs a step in a job of a Slurm pool, by the srun of the site, on this terminal.
func joinWithTerminal(c *slurmcmd.Command, job string, args []string) error {
	in, ok := c.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return fault.New(fault.Invalid, "--pty needs a terminal, and standard input is none").Advise("leave --pty out")
	}
	addr, err := address.Find("", "")
	if err != nil {
		return err
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("set the terminal up: %w", err)
	}
	defer term.Restore(int(in.Fd()), old) //nolint:errcheck // there is nothing to do about it
	changed, sizes := make(chan os.Signal, 1), make(chan api.Window)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		defer close(sizes)
		for range changed {
			select {
			case sizes <- windowSize(in):
			case <-done:
			}
		}
	})
	code, err := fastclient.New(addr).ExecTerminal(job, append([]string{"srun"}, args...), c.Getenv("TERM"), windowSize(in), sizes, in, c.Raw)
	signal.Stop(changed)
	close(done)
	close(changed)
	following.Wait()
	c.Code = code.Shell()
	return err
}

// windowSize is the size of a terminal.
func windowSize(f *os.File) api.Window {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return api.Window{Rows: 24, Cols: 80}
	}
	return api.Window{Rows: w.Row, Cols: w.Col}
}

// asksTerminal reports whether --pty is among srun's options.
func asksTerminal(args []string) bool {
	scan := getopt.New(srunopt.Table{}, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.Found:
			if srunopt.All()[it.Index].Name() == "pty" {
				return true
			}
		case getopt.End, getopt.Terminator, getopt.Plain:
			return false
		}
	}
}

// errSiteNodes says that the nodes of a job are those of a Slurm cluster, where steps are its own.
var errSiteNodes = fmt.Errorf("its nodes are a Slurm cluster's: %w", fs.ErrNotExist)

// Allocation is that of another job of this machine, fs.ErrNotExist for a job of another machine. A
// job that is being started on its nodes is waited for.
func Allocation(job string) (*step.Alloc, error) {
	addr, err := address.Find("", "")
	if err != nil {
		return nil, err
	}
	file, err := allocFile(addr, job)
	switch {
	case slurmcmd.IsNotFound(err):
		return nil, slurmcmd.Textf("Unable to confirm allocation for job %s: Invalid job id specified", job)
	case err != nil:
		return nil, err
	}
	return step.Load(file)
}

// startLimit is how long a job that has its nodes may take to run on them.
const startLimit = 10 * time.Second

// allocFile asks the first node of a job for the name of its allocation's file. A job that
// is being started on its nodes is waited for.
func allocFile(addr address.Address, job string) (string, error) {
	idle := 0 // answers in a row that the job does not run
	for limit := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
		var out, errs bytes.Buffer
		code, err := fastclient.New(addr).Exec(job, []string{"/bin/sh", "-c", `printf %s "$` + step.AllocVariable + `"`}, nil, &out, &errs)
		isEarly := fault.KindOf(err) == fault.Conflict && time.Now().Before(limit)
		if idle++; isEarly && isRunning(addr, job) {
			idle = 0
		}
		switch {
		case isEarly && idle < 3:
		case err != nil:
			return "", err
		case code.OK() && out.Len() == 0:
			return "", errSiteNodes
		case !code.OK():
			return "", slurmcmd.Textf("Unable to confirm allocation for job %s: its first node does not name it %s", job, errs.String())
		default:
			return out.String(), nil
		}
	}
}

// isRunning reports whether a job has its nodes.
func isRunning(addr address.Address, job string) bool {
	c := fastclient.New(addr)
	defer c.Close()
	v, err := c.JSON("GET", "/v1/jobs/"+fastclient.Segment(job), nil)
	return err == nil && v.Get("state").Text() == "RUNNING"
}
