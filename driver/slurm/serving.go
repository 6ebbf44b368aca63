package slurm

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/probe"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// The range from which jobs that serve have their ports where the pool's settings name none.
const (
	FirstServicePort = 20000
	LastServicePort  = 20999
)

var _ engine.EndpointWatcher = (*Engine)(nil)

// WatchEndpoints is engine.EndpointWatcher's. The script of an attempt writes its ports into a file
// beside its lock, and the server looks at them over the network.
func (e *Engine) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	if err := e.board.Watch(ctx, e.ctx.Done(), f); err != nil {
		return err
	}
	return kit.Closed(engineName)
}

// checkServe refuses what cannot be served here of a job that serves.
func (e *Engine) checkServe(s *job.Serve) error {
	if s == nil {
		return nil
	}
	chosen := 0
	for _, p := range s.Ports {
		switch {
		case p.Number == 0:
			chosen++
		case p.Number < firstUserPort:
			return engine.About(fault.New(fault.Unsupported, "port %d of a node is not for programs of users", p.Number).
				Advise("write a number from %d on, or the name alone: then it is chosen", firstUserPort), "ports")
		case e.portsNamed && (p.Number < e.cfg.ServicePorts[0] || p.Number > e.cfg.ServicePorts[1]):
			return engine.About(fault.New(fault.Unsupported, "port %d is outside of the ports of services in pool %s, %d-%d", p.Number, e.cfg.Pool, e.cfg.ServicePorts[0], e.cfg.ServicePorts[1]).
				Advise("write a number of these, or the name alone: then it is chosen"), "ports")
		}
	}
	for name, p := range map[string]*job.Probe{"startup": s.Startup, "readiness": s.Readiness, "liveness": s.Liveness} {
		if p != nil && len(p.Exec) > 0 {
			return engine.About(fault.New(fault.Unsupported, "the %s probe runs a command, and in a pool of Slurm the server probes, over the network", name).
				Advise("write http: or tcp: for it, or name a pool of this machine or of Kubernetes"), "probes."+name+".exec")
		}
	}
	switch {
	case s.Log != job.LogRotation{}:
		return engine.About(fault.New(fault.Unsupported, "output files in a pool of Slurm are not rotated").Advise("leave log out, or have the program do it"), "log")
	case chosen > 0 && e.blind:
		return engine.About(fault.New(fault.Unsupported, "pool %s keeps its locks on its nodes, and has no way to tell the server which ports were chosen", e.cfg.Pool).
			Advise("give each port a number, or have an administrator name a shared directory by the pool's setting shared"), "ports")
	case chosen > script.PortBlock:
		return engine.About(fault.New(fault.Unsupported, "%d ports are to be chosen, and a job in a pool of Slurm can have %d", chosen, script.PortBlock).
			Advise("give the others numbers"), "ports")
	}
	return nil
}

// serveIfRunning begins to look at an attempt that serves, once it runs. The caller holds the lock.
func (e *Engine) serveIfRunning(a *attempt) {
	if a.serving || a.ended || a.stop != nil || a.order == nil || a.order.Job.Spec.Serve == nil || a.report.Phase != engine.Running || e.ctx.Err() != nil {
		return
	}
	a.serving = true
	serve, base, began := a.order.Job.Spec.Serve, a.base, a.report.Started
	if began.IsZero() {
		began = time.Now()
	}
	e.wg.Go(func() { e.watchServing(a, serve, base, began) })
}

// watchServing looks at an attempt until it ends, is to end, or the engine is closed.
func (e *Engine) watchServing(a *attempt, serve *job.Serve, base int, began time.Time) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	go func() {
		select {
		case <-a.halt:
		case <-a.gone:
		case <-ctx.Done():
		}
		cancel()
	}()
	t := &probe.Target{Serve: serve, Began: began}
	for t.Ports == nil || len(t.Hosts) == 0 {
		if ports, err := e.readPorts(ctx, a, serve, base); err == nil {
			t.Ports = ports
		}
		if at := e.servingHost(ctx, a); at != "" {
			t.Hosts = []string{at}
		}
		if t.Ports != nil && len(t.Hosts) > 0 {
			break
		}
		select {
		case <-time.After(e.cfg.Shortest):
		case <-ctx.Done():
			return
		}
	}
	tell := func(s probe.State) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if ctx.Err() != nil || a.ended || a.stop != nil {
			return
		}
		if a.report.Suspended { // it answers nobody
			s = probe.State{Host: s.Host, Why: "it is suspended"}
		}
		e.board.Set(a.endpointsOf(serve, t.Ports, s))
		if s.Dead {
			now := time.Now()
			if err := e.stopAt(a, &stopping{Asked: now, Signal: sigterm, Kill: now.Add(a.order.Grace), Cause: engine.Exited, Reason: s.Why}); err != nil {
				e.cfg.Log.Warn("slurm: end a job whose probe failed", "attempt", a.ref.String(), "error", err)
			}
		}
	}
	if !a.resumed { // of one that was, nothing is said before the first look: it may have been ready all the time
		tell(probe.State{Host: t.Hosts[0]})
	}
	for again := true; again; {
		probe.Watch(ctx, t, tell) // it ends by itself where a probe failed, which does not count of what is suspended
		select {
		case <-time.After(e.cfg.Shortest):
			t.Began = time.Now()
		case <-ctx.Done():
			again = false
		}
	}
}

// endpointsOf is what is seen of an attempt that serves.
func (a *attempt) endpointsOf(serve *job.Serve, ports []int, s probe.State) engine.Endpoints {
	out := engine.Endpoints{Ref: a.ref, Job: a.job, Ready: s.Ready, Failed: s.Why}
	for i, n := range ports {
		out.List = append(out.List, engine.Endpoint{Port: serve.Ports[i].Name, Host: s.Host, Number: n})
	}
	return out
}

// stopServing takes an attempt out of traffic. The caller holds the lock.
func (e *Engine) stopServing(a *attempt) {
	if a.order == nil || a.order.Job.Spec.Serve == nil || a.ended {
		return
	}
	now, known := e.board.Of(a.ref)
	if known && !now.Ready {
		return
	}
	if !known {
		now = engine.Endpoints{Ref: a.ref, Job: a.order.Job.ID}
	}
	now.Ready, now.Failed = false, "it is being ended"
	e.board.Set(now)
}

// readPorts are the ports of an attempt, as its script wrote them down. Only who wrote that the attempt
// began is believed.
func (e *Engine) readPorts(ctx context.Context, a *attempt, serve *job.Serve, base int) ([]int, error) {
	fixed := make([]int, len(serve.Ports))
	for i, p := range serve.Ports {
		fixed[i] = p.Number
	}
	if !slices.Contains(fixed, 0) {
		return fixed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	told, begun := baseName(a.guard.PortFile(base)), baseName(a.guard.Begun(base))
	marks, err := e.cfg.Room.Look(ctx, []string{told, begun})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	writer := a.hint.writer
	e.mu.Unlock()
	var mark *lockdir.Mark
	for i := range marks {
		switch m := &marks[i]; m.Name {
		case told:
			mark = m
		case begun:
			writer = cmp.Or(writer, m.Owner)
		}
	}
	if mark == nil || writer == "" || mark.Owner != writer {
		return nil, errNoPorts
	}
	words := strings.Fields(mark.Text)
	if len(words) != len(serve.Ports) {
		return nil, errNoPorts
	}
	within, out := a.portRange(e.cfg.ServicePorts), make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > 65535 || fixed[i] != 0 && n != fixed[i] {
			return nil, errNoPorts
		}
		if fixed[i] == 0 && (n < within[0] || n > within[1]) {
			return nil, errNoPorts
		}
		out[i] = n
	}
	return out, nil
}

// portRange is from where an attempt chose its ports: what the settings named when it was launched.
func (a *attempt) portRange(now [2]int) [2]int {
	switch {
	case a.order.Ports != [2]int{}:
		return a.order.Ports
	case a.resumed: // the journal does not say
		return [2]int{firstUserPort, 65535}
	}
	return now
}

// firstUserPort is the first port on which programs of users may listen.
const firstUserPort = 1024

var errNoPorts = errors.New("its ports are not known yet")

// servingHost is the address of the node on which the script of an attempt runs, as Slurm has it; empty:
// it is not known yet.
func (e *Engine) servingHost(ctx context.Context, a *attempt) string {
	e.mu.Lock()
	name := ""
	if len(a.report.Nodes) > 0 {
		name = a.report.Nodes[0].Node
	}
	known := len(e.seen.nodes) > 0
	e.mu.Unlock()
	if name == "" {
		return ""
	}
	if !known {
		_, _ = e.listNodes(ctx) // the name serves where it fails
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.seen.nodes {
		if n := &e.seen.nodes[i]; n.Name == name {
			return cmp.Or(n.Address, name)
		}
	}
	return name
}
