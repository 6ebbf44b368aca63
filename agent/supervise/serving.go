package supervise

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/freeport"
	"github.com/coxswain-sched/coxswain/agent/probe"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// serving is what the head's supervisor has of an attempt that serves (job.Spec.Serve). Only the loop
// touches it.
type serving struct {
	serve *job.Serve
	ports []int
	held  []*freeport.Held
	hosts []string // at which the task may listen

	stopProbes context.CancelFunc // nil: none run
	leaving    bool               // it is being ended, or waits for that
	dead       bool               // a probe says that it has to be ended
}

// numbers are the ports that were chosen.
func (v *serving) numbers() []int {
	if v == nil {
		return nil
	}
	return v.ports
}

func (v *serving) isDead() bool { return v != nil && v.dead }

// close lets others have the ports.
func (v *serving) close() {
	if v == nil {
		return
	}
	if v.stopProbes != nil {
		v.stopProbes()
	}
	for _, h := range v.held {
		h.Release()
	}
}

// choosePorts chooses the ports of the attempt and looks whether the fixed ones are free, in the
// network of the node.
func (s *supervisor) choosePorts() error {
	serve := s.launch.Job.Spec.Serve
	if serve == nil || !s.isHead() || s.launch.Adds != nil {
		return nil
	}
	v := &serving{serve: serve, hosts: s.servingHosts()}
	s.serving = v
	return s.spawner.InNetwork(func() error {
		for i := range serve.Ports {
			p := &serve.Ports[i]
			number := p.Number
			if number == 0 {
				h, err := freeport.Choose()
				if err != nil {
					return fmt.Errorf("port %s on %s: %w", p.Name, s.node.Name, err)
				}
				v.held, number = append(v.held, h), h.Number
			} else if err := s.checkFixedPort(p); err != nil {
				return attempt.ProgramError{Err: err}
			}
			v.ports = append(v.ports, number)
		}
		return nil
	})
}

// servingHosts are the addresses at which the first task may listen: that of the node, and, where the
// node has the machine's network, the loopback address.
func (s *supervisor) servingHosts() []string {
	const loopback = "127.0.0.1"
	at := s.node.Address
	if !s.node.Virtual || at == "" {
		at = loopback
	}
	hosts := []string{at}
	if s.launch.Network == "" && at != loopback {
		hosts = append(hosts, loopback)
	}
	return hosts
}

// checkFixedPort says why the task cannot listen on a port that its job asks for by number.
func (s *supervisor) checkFixedPort(p *job.Port) error {
	at := netip.IPv4Unspecified()
	if s.node.Virtual && s.launch.Network == "" { // others of its kind may have the port at their own addresses
		if own, err := netip.ParseAddr(s.node.Address); err == nil {
			at = own
		}
	}
	if u := s.launch.User; u != nil && u.UID != 0 && p.Number < firstUnprivileged() {
		return fmt.Errorf("port %s: only root may listen on port %d; choose one above %d, or leave the number out", p.Name, p.Number, firstUnprivileged()-1)
	}
	err := freeport.Check(at, p.Number)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		who := freeport.Listener(p.Number)
		if who != "" {
			who = " by " + who
		}
		return fmt.Errorf("port %s: port %d of %s is in use%s; end that program, choose another number, or leave the number out", p.Name, p.Number, s.node.Name, who)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("port %s: this user may not listen on port %d; choose one above %d, or leave the number out", p.Name, p.Number, firstUnprivileged()-1)
	}
	return nil
}

// firstUnprivileged is the lowest port on which everybody may listen.
func firstUnprivileged() int {
	n := 1024
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil {
		_, _ = fmt.Sscan(strings.TrimSpace(string(b)), &n)
	}
	return n
}

// startProbes begins to look whether the first task is well.
func (s *supervisor) startProbes() {
	v := s.serving
	if v == nil || v.leaving {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.stopProbes = cancel
	s.tellServes(attempt.Serves{Host: v.hosts[0]})
	target := &probe.Target{Serve: v.serve, Hosts: v.hosts, Ports: v.ports, Began: time.Now(), Exec: s.execProbe(), Owns: s.ownsPort}
	go probe.Watch(ctx, target, func(p probe.State) {
		s.events <- func() { s.probed(ctx, p) }
	})
}

// probed takes what the probes say. The loop of the slot calls it, also for an attempt that has ended.
func (s *supervisor) probed(ctx context.Context, p probe.State) {
	v := s.serving
	if ctx.Err() != nil || v.leaving || s.now != s || s.resting {
		return
	}
	s.tellServes(attempt.Serves{Host: p.Host, Ready: p.Ready, Began: p.Began, Why: p.Why})
	if p.Dead {
		v.dead = true
		s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: engine.Exited, text: p.Why})
	}
}

// tellServes says what is seen of an attempt that serves. It is not journaled: who connects gets the
// state, and nobody needs it after the supervisor's end.
func (s *supervisor) tellServes(v attempt.Serves) {
	r := attempt.Record{Kind: attempt.KindServes, Ref: s.launch.Ref, Time: time.Now(), Serves: &v, Unsaved: s.state.Unsaved}
	s.state.Apply(r)
	s.control.queueRecord(r)
}

// pauseProbes takes the attempt out of traffic while its processes are suspended, and looks anew when
// they go on.
func (s *supervisor) pauseProbes(on bool) {
	v := s.serving
	switch {
	case v == nil || v.leaving || v.stopProbes == nil:
	case on:
		v.stopProbes()
		s.tellServes(attempt.Serves{Host: s.state.Serves.Host, Why: "it is suspended"})
	default:
		s.startProbes()
	}
}

// stopServing takes the attempt out of traffic, and ends its probes.
func (s *supervisor) stopServing(why string) {
	v := s.serving
	if v == nil || v.leaving {
		return
	}
	v.leaving = true
	if v.stopProbes == nil {
		return
	}
	v.stopProbes()
	if now := s.state.Serves; now != nil && !v.dead {
		s.tellServes(attempt.Serves{Host: now.Host, Why: why})
	}
}

// stopAttempt ends the node's part once requests had time to end: another order without that time
// does it at once.
func (s *supervisor) stopAttempt(e endOrder, drain time.Duration) {
	if drain <= 0 || s.state.Phase != engine.Running || s.state.Held || s.launch.Job.Spec.Serve == nil {
		s.endAttempt(e)
		return
	}
	s.stopServing("it is being ended")
	if at := time.Now().Add(drain); s.due.drain.IsZero() || at.Before(s.due.drain) {
		s.due.drain = at
	}
	if s.draining == nil {
		s.draining = &e
	}
}

// endDrain goes on with an end whose time for requests is over.
func (s *supervisor) endDrain() { s.endAttempt(*s.draining) }

// execProbe runs the command of a probe as cox exec does: in the environment of the first task, and in
// its container.
func (s *supervisor) execProbe() func(context.Context, []string) error {
	if !slices.ContainsFunc([]*job.Probe{s.serving.serve.Startup, s.serving.serve.Readiness, s.serving.serve.Liveness}, func(p *job.Probe) bool {
		return p != nil && len(p.Exec) > 0
	}) {
		return nil
	}
	var rank *int
	if s.launch.Job.Spec.Program.Kind == job.Direct {
		rank = new(int)
	}
	socket, id, number := s.StepSocket(), s.launch.Job.ID, max(s.launch.Ref.Attempt, 1)
	return func(ctx context.Context, command []string) error {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		x := wire.Exec{Socket: socket, Job: id, Attempt: number, Args: command, Rank: rank, Files: [3]*os.File{null, null, null}}
		code, why, err := x.Run(ctx, func() {})
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s has not ended in time", command[0])
		case err != nil:
			return err
		case why != "":
			return fmt.Errorf("%s: %s", command[0], why)
		case !code.OK():
			return fmt.Errorf("%s ended with exit code %s", command[0], code)
		}
		return nil
	}
}
