package podagent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/probe"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A job with a startup probe has it done by its supervisor, since the kubelet's own waits for the start barrier.
// Until it has passed, the kubelet is told that the job is not ready, and that it lives: its probes of
// these two go through Serves.

// The words of Serves.
const (
	WordReady = "ready" // fails until the startup probe has passed
	WordAlive = "alive" // passes until then
)

// noteServing notes, for the kubelet's probes, that the startup probe has passed.
func (m *member) noteServing() {
	if m.servingNoted {
		return
	}
	err := os.WriteFile(m.at.servingFile(), nil, 0o600)
	if m.servingNoted = err == nil; err != nil {
		fmt.Fprintf(os.Stderr, "cox-pod: %s\n", err)
	}
}

// Serves is `cox-pod serves`: a probe (JSON of a job.Probe) of the job in this pod, once its startup probe has
// passed. nil: it passed.
func Serves(at Place, index, word, text string) error {
	var p job.Probe
	if err := json.Unmarshal([]byte(text), &p); err != nil || word != WordReady && word != WordAlive {
		return fault.New(fault.Invalid, "serves: %s with %.100q is no probe", word, text)
	}
	if _, err := os.Lstat(at.servingFile()); err != nil {
		if word == WordAlive {
			return nil
		}
		return fault.New(fault.Conflict, "the startup probe has not passed")
	}
	if len(p.Exec) > 0 {
		return Probe(at, index, p.Exec)
	}
	plan, err := at.readPlan()
	if err != nil {
		return err
	}
	s := plan.Job.Spec.Serve
	if s == nil {
		return fault.New(fault.Invalid, "the job does not serve")
	}
	t := &probe.Target{Serve: s, Hosts: at.ownHosts()}
	for i := range s.Ports {
		t.Ports = append(t.Ports, s.Ports[i].Number)
	}
	if err := probe.Look(context.Background(), t, &p); err != nil {
		return fault.New(fault.Conflict, "%w", err)
	}
	return nil
}

// ownHosts are the addresses of this pod, at which others reach it; the loopback address where it knows none.
func (p Place) ownHosts() []string {
	if p.Listen != "" {
		return []string{p.Listen}
	}
	name, err := os.Hostname()
	if err != nil {
		return []string{"127.0.0.1"}
	}
	found, err := net.LookupHost(name) // the kubelet puts it into /etc/hosts
	found = slices.DeleteFunc(found, func(a string) bool { ip := net.ParseIP(a); return ip == nil || ip.IsLoopback() })
	if err != nil || len(found) == 0 {
		return []string{"127.0.0.1"}
	}
	return found
}
