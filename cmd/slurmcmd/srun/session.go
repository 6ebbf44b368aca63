package srun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
)

// queuedAfter is how long a job may wait before srun says so.
const queuedAfter = 300 * time.Millisecond

// endLimit is how long srun waits for the server to say that the job has ended, once its
// step has.
const endLimit = 10 * time.Second

// session is a job that srun stays with.
type session struct {
	*slurmcmd.Command
	addr     address.Address
	line     *line
	pool     string // of --clusters: names joined by commas; empty: any
	client   *fastclient.Client
	listener *holder.Listener // nil: the job runs its step itself
	id       string
	tested   bool // --test-only: there is no job
	queued   bool // it was said that the job waits

	helpers sync.WaitGroup // of signals and output
}

// jobEnd is what the server says of a job that has ended.
type jobEnd struct {
	job fastclient.Value
	err error
}

// knock is a holder that was accepted, or why not.
type knock struct {
	held *holder.Held
	err  error
}

// listen makes the socket that the job's holder connects to.
func (s *session) listen() (err error) {
	if s.listener, err = holder.Listen(); err != nil {
		return fmt.Errorf("make a socket for the job's first node: %w", err)
	}
	return nil
}

func (s *session) close() {
	if s.listener != nil {
		s.listener.Close()
	}
}

// awaitJob waits for the allocation and runs the step in it, or stays with a job that runs its
// step itself, to the end.
func (s *session) awaitJob() error {
	stop := s.catchSignals()
	defer stop()
	ended := make(chan jobEnd, 1)
	go func() {
		v, err := slurmcmd.Wait(s.client, s.id)
		ended <- jobEnd{v, err}
	}()
	knocks := make(chan knock, 1)
	if s.listener != nil {
		go func() {
			h, err := s.listener.Accept()
			knocks <- knock{h, err}
		}()
	} else {
		s.helpers.Go(s.followOutput)
	}
	queued := time.After(queuedAfter)
	starting := false // the job has nodes of this machine, and its holder is waited for
	var late <-chan time.Time
	if s.line.immediate > 0 {
		late = time.After(s.line.immediate)
	}
	for {
		select {
		case k := <-knocks:
			stop()
			if k.err != nil {
				return k.err
			}
			return s.runStep(k.held, ended)
		case e := <-ended:
			s.helpers.Wait()
			if e.err == nil {
				s.sayEnd(e.job)
			}
			return e.err
		case <-queued:
			state, pool := s.sayQueued()
			switch {
			case state == "" || state == "PENDING":
				queued = time.After(5 * time.Second)
			case s.listener == nil: // its output is followed already
			case isElsewhere(pool) && s.line.terminal:
				if err := slurmcmd.ChangeJob(fastclient.New(s.addr), s.id, api.VerbCancel, 0); err != nil {
					return err
				}
				return errNoTerminal
			case isElsewhere(pool) || starting:
				s.helpers.Go(s.followOutput) // nobody knocked: the job runs its step itself
			default: // its nodes are of this machine, and a busy machine starts a holder slowly
				starting, queued = true, time.After(startLimit)
			}
		case <-late:
			if err := s.giveUpWaiting(); err != nil {
				return err
			}
		}
	}
}

// runStep runs the command as a step of the allocation, in this process.
func (s *session) runStep(h *holder.Held, ended <-chan jobEnd) error {
	if s.queued && !s.line.quiet {
		s.Sayf("job %s has been allocated resources", s.id)
	}
	in, err := inputFile(s.In)
	if err != nil {
		return err
	}
	call := &stepsrun.Invocation{
		Alloc: h.Alloc, Args: append(append(s.line.step[:len(s.line.step):len(s.line.step)], "--"), s.line.command...),
		Environ: env.Allocation(h.Alloc, s.Environ()), Stdio: step.Stdio{In: in, Out: s.Raw, Err: s.Err},
	}
	code, how := call.Run()
	s.Code = code
	if err := h.End(how); err != nil {
		s.Errorf("end job %s: %v", s.id, err)
	}
	select {
	case <-ended: // how the job ended was said by its step
	case <-time.After(endLimit):
	}
	return nil
}

// inputFile is standard input as a file, which it is unless a caller put something else in its
// place.
func inputFile(in io.Reader) (*os.File, error) {
	if f, ok := in.(*os.File); ok {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, in)
		_ = w.Close()
	}()
	return r, nil
}

// giveUpWaiting cancels a job that still waits, for --immediate.
func (s *session) giveUpWaiting() error {
	c := fastclient.New(s.addr)
	defer c.Close()
	err := s.CancelWaiting(c, s.id)
	if code, bad := strconv.Atoi(s.Getenv("SLURM_EXIT_IMMEDIATE")); bad == nil && errors.Is(err, slurmcmd.ErrBusy) {
		s.Errorf("%v", err)
		s.Code = code
		return nil
	}
	return err
}

// catchSignals passes signals on to a job that has no step here, until stop is called, as
// often as it likes.
func (s *session) catchSignals() (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	var passing sync.WaitGroup
	passing.Go(func() {
		for sig := range signals {
			s.passSignal(sig.(syscall.Signal))
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(signals)
		passing.Wait()
	})
}

// passSignal sends a signal to the job; an interrupt or a request to end cancels it.
func (s *session) passSignal(sig syscall.Signal) {
	c := fastclient.New(s.addr)
	defer c.Close()
	verb := api.VerbSignal
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		verb = api.VerbCancel
	}
	if err := slurmcmd.ChangeJob(c, s.id, verb, sig); err != nil {
		s.Errorf("pass on %v: %v", sig, err)
	} else if sig == syscall.SIGINT {
		s.Sayf("job %s is being cancelled", s.id)
	}
}

// sayEnd takes the exit code of a job that ran its step itself, or none, and says what went
// wrong where that is no matter of the command's own exit code.
func (s *session) sayEnd(v fastclient.Value) {
	s.Code = slurmcmd.ExitCode(v)
	state, message := v.Get("state").Text(), v.Get("message").Text()
	switch {
	case state == "COMPLETED" || s.line.quiet:
	case message != "":
		s.Errorf("job %s %s: %s", s.id, state, message)
	case state != "FAILED": // else its tasks have spoken
		s.Errorf("job %s: %s", s.id, state)
	}
}

// followOutput copies the output through the API, over a connection of its own.
func (s *session) followOutput() {
	if unread, _ := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCINQ); s.In == io.Reader(os.Stdin) && unread > 0 && !s.line.quiet {
		s.Sayf("warning: job %s does not get srun's standard input: it runs on another machine; use --input with a file there", s.id)
	}
	c := fastclient.New(s.addr)
	defer c.Close()
	r, err := c.Get(fastclient.Query("/v1/jobs/"+s.id+"/logs", "follow", "true"), "text/plain")
	if err == nil {
		_, err = io.Copy(s.Raw, r)
	}
	if err != nil {
		s.Errorf("the output of job %s: %v", s.id, err)
	}
}

// isElsewhere reports whether the nodes of a pool are not the server's own.
func isElsewhere(pool string) bool { return pool != "" && pool != "local" }

// sayQueued says once that the job waits, and why. It returns the job's state, "" if it is not
// known, and its pool.
func (s *session) sayQueued() (state, pool string) {
	c := fastclient.New(s.addr)
	defer c.Close()
	v, err := c.JSON("GET", "/v1/jobs/"+s.id, nil)
	if err != nil {
		return "", ""
	}
	state, pool = v.Get("state").Text(), v.Get("pool").Text()
	if state != "PENDING" || s.line.quiet || s.queued {
		return state, pool
	}
	why := ""
	if v.Has("why") {
		why = ": " + slurmcmd.ReasonText(v.Get("why"))
	}
	s.queued = true
	s.Sayf("job %s queued and waiting for resources%s", s.id, why)
	return state, pool
}

// locked is a writer that several goroutines share.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes whole.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
