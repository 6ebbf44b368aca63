package salloc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Times of a session.
const (
	leaseTime  = 60 * time.Second // after which an allocation ends whose salloc is gone
	renewEvery = leaseTime / 4
	firstLook  = 20 * time.Millisecond // for the start of an allocation elsewhere; then ever later
	lastLook   = time.Second
	queueSay   = 300 * time.Millisecond // after which salloc says that it waits
	holderTime = 30 * time.Second       // that the first node has to connect in
	endTime    = 10 * time.Second       // that the server has to end the allocation in
)

// session is an allocation that salloc stays with.
type session struct {
	*slurmcmd.Command
	addr     address.Address
	line     *line
	pool     string           // of --clusters: names joined by commas; empty: any
	listener *holder.Listener // nil: the allocation has no holder that connects
	held     *holder.Held     // nil: it has not connected
	id       string
	queued   bool // it was said that the allocation waits
}

// jobEnd is what the server says of an allocation that has ended.
type jobEnd struct {
	job fastclient.Value
	err error
}

// knock is a holder that was accepted, or why not.
type knock struct {
	held *holder.Held
	err  error
}

// listen makes the socket that the holder connects to.
func (s *session) listen() (err error) {
	if s.listener, err = holder.Listen(); err != nil {
		return fmt.Errorf("make a socket for the first node: %w", err)
	}
	return nil
}

func (s *session) close() {
	if s.listener != nil {
		s.listener.Close()
	}
}

// say writes a line unless salloc is to be quiet.
func (s *session) say(format string, v ...any) {
	if !s.line.quiet {
		s.Sayf(format, v...)
	}
}

// serve waits for the allocation, runs the command in it, and gives it back.
func (s *session) serve() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !s.line.noShell {
		go s.renewLease(ctx)
	}
	ended := make(chan jobEnd, 1)
	go func() { ended <- s.awaitEnd() }()
	granted, err := s.awaitGrant(ended)
	if err != nil || !granted {
		return err
	}
	if s.queued {
		s.say("job %s has been allocated resources", s.id)
	}
	s.say("Granted job allocation %s", s.id)
	if s.line.bell {
		fmt.Fprint(s.Err, "\a")
	}
	if s.line.noShell {
		return nil
	}
	environ, err := s.commandEnviron()
	if err != nil {
		s.giveBack(job.ExitCode{Status: 1}, ended)
		return err
	}
	signals := make(chan os.Signal, 8) // before the command can be heard of
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	p, err := startProgram(s.line.command, environ, s.In, s.Raw, s.Err)
	if err != nil {
		s.giveBack(job.ExitCode{Status: 1}, ended)
		return err
	}
	s.Code = s.stayWith(p, signals, ended)
	return nil
}

// stayWith waits for the end of the command, and gives the allocation back. When the allocation is
// taken away, the command is told. The result is salloc's exit code.
func (s *session) stayWith(p *program, signals <-chan os.Signal, ended chan jobEnd) int {
	revoked := false
	for {
		select {
		case sig := <-signals:
			p.forwardSignal(sig.(syscall.Signal))
		case e := <-ended:
			revoked = true
			s.sayRevoked(e)
			p.revoke(s.line.kill)
			ended = nil
		case status := <-p.exited:
			if !revoked {
				s.say("Relinquishing job allocation %s", s.id)
				s.giveBack(exitCode(status), ended)
			}
			return shellCode(status)
		}
	}
}

// sayRevoked says that the nodes are gone.
func (s *session) sayRevoked(e jobEnd) {
	switch {
	case e.err != nil:
		s.Errorf("job allocation %s: %v", s.id, e.err)
	case e.job.Get("state").Text() == "TIMEOUT":
		s.say("Job %s has exceeded its time limit and its allocation has been revoked.", s.id)
	default:
		why := ""
		if message := e.job.Get("message").Text(); message != "" {
			why = " (" + message + ")"
		}
		s.say("Job allocation %s has been revoked.%s", s.id, why)
	}
}

// awaitGrant waits until the allocation has its nodes; false: it ended before, as was said.
func (s *session) awaitGrant(ended <-chan jobEnd) (bool, error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	knocks := make(chan knock, 1)
	if s.listener != nil {
		go func() {
			h, err := s.listener.Accept()
			knocks <- knock{h, err}
		}()
	}
	var late <-chan time.Time
	if s.line.immediate > 0 {
		late = time.After(s.line.immediate)
	}
	began, pause := time.Now(), firstLook
	var running time.Time // since when the allocation has nodes of this machine
	look := time.After(pause)
	for {
		select {
		case k := <-knocks:
			s.held = k.held
			return true, k.err
		case e := <-ended:
			s.sayRevoked(e)
			s.Code = 1
			return false, nil
		case <-signals: // a second one finds the allocation cancelled
			if err := slurmcmd.ChangeJob(fastclient.New(s.addr), s.id, api.VerbCancel, 0); err != nil {
				return false, err
			}
		case <-late:
			if err := s.CancelWaiting(fastclient.New(s.addr), s.id); err != nil {
				return false, err
			}
		case <-look:
			pause = min(2*pause, lastLook)
			look = time.After(pause)
			granted, err := s.lookForGrant(began, &running)
			if granted || err != nil {
				return granted, err
			}
		}
	}
}

// lookForGrant asks the server for the state of an allocation, and says once that it waits. True:
// it runs, and no holder of it will connect.
func (s *session) lookForGrant(began time.Time, running *time.Time) (bool, error) {
	c := fastclient.New(s.addr)
	defer c.Close()
	v, err := c.JSON("GET", "/v1/jobs/"+s.id, nil)
	if err != nil {
		return false, nil // who waits for the end says what is wrong
	}
	switch v.Get("state").Text() {
	case "PENDING":
		if !s.queued && time.Since(began) > queueSay {
			s.queued = true
			s.say("Pending job allocation %s", s.id)
			why := ""
			if v.Has("why") {
				why = ": " + slurmcmd.ReasonText(v.Get("why"))
			}
			s.say("job %s queued and waiting for resources%s", s.id, why)
		}
	case "RUNNING":
		if s.listener == nil || !isOfThisMachine(v.Get("pool").Text()) {
			return true, nil
		}
		if running.IsZero() {
			*running = time.Now()
		}
		if time.Since(*running) > holderTime {
			return false, slurmcmd.Textf("the first node of job %s did not connect to this process within %s", s.id, holderTime)
		}
	}
	return false, nil
}

// isOfThisMachine reports whether the nodes of a pool are the server's own.
func isOfThisMachine(pool string) bool { return pool == "" || pool == "local" }

// awaitEnd waits for the end of the allocation. A server that does not answer, as while it is
// restarted, is asked again.
func (s *session) awaitEnd() jobEnd {
	said := false
	for {
		c := fastclient.New(s.addr)
		v, err := slurmcmd.Wait(c, s.id)
		c.Close()
		if fault.KindOf(err) != fault.Unavailable {
			return jobEnd{v, err}
		}
		if !said {
			s.say("the server does not answer: the allocation is kept, and asked for again")
			said = true
		}
		time.Sleep(lastLook)
	}
}

// renewLease renews the lease until ctx ends. Failures are of no matter: the next renewal may
// arrive, and the end of the allocation is waited for elsewhere.
func (s *session) renewLease(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c := fastclient.New(s.addr)
			_, _ = c.JSON("POST", "/v1/jobs/"+fastclient.Segment(s.id)+"/lease", nil)
			c.Close()
		}
	}
}

// commandEnviron is the environment of the command: this process's with the variables of the
// allocation.
func (s *session) commandEnviron() ([]string, error) {
	if s.held != nil {
		own := env.Allocation(s.held.Alloc, s.Environ())
		return slices.DeleteFunc(own, func(v string) bool { name, _, _ := strings.Cut(v, "="); return isOfNode(name) }), nil
	}
	var out, errs bytes.Buffer
	code, err := fastclient.New(s.addr).Exec(s.id, []string{"/bin/sh", "-c", "tr '\\0' '\\n' </proc/self/environ"}, nil, &out, &errs)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the variables of job %s: %w", s.id, err)
	case !code.OK():
		return nil, slurmcmd.Textf("the variables of job %s: %s", s.id, strings.TrimSpace(errs.String()))
	}
	var set []string
	for _, v := range strings.Split(out.String(), "\n") {
		if name, _, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, "SLURM_") && !isOfNode(name) {
			set = append(set, v)
		}
	}
	// On the nodes of a Slurm cluster the number is that of the cluster; srun here asks by ours.
	return env.Override(s.Environ(), append(set, "SLURM_JOB_ID="+s.id, "SLURM_JOBID="+s.id)), nil
}

// isOfNode reports whether a variable is about the node or the step of the process that has it.
func isOfNode(name string) bool {
	return strings.HasPrefix(name, "SLURM_STEP") || strings.HasPrefix(name, "SLURM_SRUN") || strings.HasPrefix(name, "SLURM_TOPOLOGY") ||
		slices.Contains([]string{"SLURMD_NODENAME", "SLURM_CPUS_ON_NODE", "SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_EXPORT_ENV"}, name)
}

// giveBack ends the allocation, and waits a while for the server to say so.
func (s *session) giveBack(how job.ExitCode, ended <-chan jobEnd) {
	var err error
	if s.held != nil {
		err = s.held.End(how)
	} else {
		err = s.endElsewhere(how)
	}
	if err != nil {
		s.Errorf("end job %s: %v", s.id, err)
		return
	}
	select {
	case <-ended:
	case <-time.After(endTime):
		s.Errorf("job %s has not ended yet: see squeue -j %s", s.id, s.id)
	}
}

// endElsewhere ends an allocation whose holder is on another machine: by a command beside the
// holder, or where the engine has none, by a cancel.
func (s *session) endElsewhere(how job.ExitCode) error {
	var out bytes.Buffer
	code, err := fastclient.New(s.addr).Exec(s.id, []string{"cox", holder.Command, holder.EndWord, fmt.Sprint(how.Shell())}, nil, &out, &out)
	if err == nil && code.OK() {
		return nil
	}
	return slurmcmd.ChangeJob(fastclient.New(s.addr), s.id, api.VerbCancel, 0)
}
