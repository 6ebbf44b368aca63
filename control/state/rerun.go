package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// DefaultKeepOff is for how long a job that runs again is kept off a node whose failure ended an
// attempt of it.
const DefaultKeepOff = 10 * time.Minute

// CoreSpecOf is CoreSpec of one job: with the nodes that it stays on, or is kept off, since earlier
// attempts.
func (s *State) CoreSpecOf(e *JobRecord) *job.Spec {
	spec := s.CoreSpec(e.Shared)
	if e.Extra == nil || len(e.Extra.Past) == 0 || s.DelegatedPools[e.Shared.Spec.Pool] {
		return spec
	}
	switch e.Shared.Spec.Rerun {
	case job.RerunSameNodes:
		return e.stayingSpec(spec)
	case job.RerunExcludeFailed:
		if nodes, _ := e.failedNodes(); len(nodes) > 0 {
			return spec.Excluding(nodes)
		}
		return spec
	}
	return e.avoidingSpec(spec, e.Extra.Past)
}

// stayingSpec is what the job asks for on the nodes that its last attempt had.
func (e *JobRecord) stayingSpec(spec *job.Spec) *job.Spec {
	out := *spec
	out.Groups = slices.Clone(spec.Groups)
	for i := range out.Groups {
		for _, c := range e.Last.Claims {
			if g := &out.Groups[i]; c.Group == i && !slices.Contains(g.NodeList, c.Node) {
				g.NodeList = append(slices.Clip(g.NodeList), c.Node)
			}
		}
	}
	return &out
}

// avoidingSpec is what the job asks for after some attempts, of which nodes failed that it is kept
// off still.
func (e *JobRecord) avoidingSpec(spec *job.Spec, past []PastAttempt) *job.Spec {
	a := job.Avoid{}
	var texts []string
	for i := range past {
		p, last := &past[i], &past[len(past)-1]
		if p.KeepOff == 0 || p.Pool != e.Shared.Spec.Pool || p.Ended+int64(p.KeepOff) <= last.Ended {
			continue
		}
		for _, n := range expandNodes(p.FailedOn) {
			if !slices.Contains(a.Nodes, n) {
				a.Nodes = append(a.Nodes, n)
			}
		}
		a.For = p.KeepOff
		texts = append(texts, failedText(p))
	}
	if len(a.Nodes) == 0 {
		return spec
	}
	out := *spec
	a.Text = strings.Join(texts, ", ")
	out.Avoid = a
	return &out
}

// failedNodes are the nodes on which attempts of the job failed, and which did.
func (e *JobRecord) failedNodes() (nodes []string, text string) {
	var texts []string
	for i := range e.Extra.Past {
		p := &e.Extra.Past[i]
		if p.Failure != engine.JobFailure && p.Failure != engine.NodeFailure || p.Pool != e.Shared.Spec.Pool {
			continue
		}
		failed := expandNodes(p.FailedOn)
		if len(failed) == 0 { // nobody knows on which
			failed = expandNodes(p.Nodes)
		}
		for _, n := range failed {
			if !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
		if len(failed) > 0 {
			texts = append(texts, failedText(p))
		}
	}
	return nodes, strings.Join(texts, ", ")
}

// failedText is "a1 (attempt 1 failed there)".
func failedText(p *PastAttempt) string {
	on := p.FailedOn
	if on == "" {
		on = p.Nodes
	}
	return fmt.Sprintf("%s (attempt %d failed there)", on, p.Attempt)
}

// RerunReason says on which nodes a job that waits has to stay, or which it is kept off, because of
// what it asked for; Code None: neither.
func (s *State) RerunReason(e *JobRecord) reason.Reason {
	if e.Extra == nil || len(e.Extra.Past) == 0 || s.DelegatedPools[e.Shared.Spec.Pool] {
		return reason.Reason{}
	}
	switch e.Shared.Spec.Rerun {
	case job.RerunSameNodes:
		return reason.Reason{Code: reason.SameNodes, Want: fmt.Sprintf("%s (attempt %d ran there)", hostlist.Compress(nodesOf(e.Last.Claims)), e.Extra.Past[len(e.Extra.Past)-1].Attempt)}
	case job.RerunExcludeFailed:
		if _, text := e.failedNodes(); text != "" {
			return reason.Reason{Code: reason.FailedNodes, Want: text}
		}
	}
	return reason.Reason{}
}

// KeepsOff is for how long a job whose attempt ends with a report is kept off the nodes that failed
// it, at most: 0 if no node is to blame, if the job has its own wish, or if the other nodes that
// are up could not run it.
func (s *State) KeepsOff(core *sched.Core, e *JobRecord, r *engine.Report, ended time.Time, most time.Duration) time.Duration {
	if r.Failure != engine.NodeFailure || len(r.FailedOn) == 0 || most <= 0 || e.Shared.Spec.Rerun != job.RerunAnywhere || IsDelegated(e.Last.Claims) {
		return 0
	}
	past := append(slices.Clone(e.ExtraOrZero().Past), PastAttempt{Pool: e.Last.Pool, Ended: ended.UnixNano(), FailedOn: hostlist.Compress(r.FailedOn), KeepOff: most})
	spec := e.avoidingSpec(s.CoreSpec(e.Shared), past)
	if len(spec.Avoid.Nodes) == 0 || !core.FitsUp(spec.Excluding(spec.Avoid.Nodes)) {
		return 0
	}
	return most
}

// FencedUnder lists the nodes of a job's attempt of which a check has failed while it was there: of
// the node as a whole, or of a device that the job has.
func (s *State) FencedUnder(e *JobRecord) (out []string) {
	a := e.Last
	for _, c := range a.allClaims() {
		h := s.Health[fleet.NodeKey{Pool: a.Pool, Name: c.Node}]
		hit := slices.ContainsFunc(h.Fences, func(f fleet.HealthFence) bool {
			return f.Device == nil || slices.ContainsFunc(c.Devices, func(d fleet.DeviceClaim) bool { return d.Index == *f.Device })
		})
		if hit && !slices.Contains(out, c.Node) {
			out = append(out, c.Node)
		}
	}
	return out
}

// OnlyNode is the node of an attempt that has one; nil: it has several, or they are not known.
func (a *Attempt) OnlyNode() []string {
	claims := a.allClaims()
	if IsDelegated(a.Claims) {
		claims = a.seen
	}
	if nodes := nodesOf(claims); len(nodes) == 1 {
		return nodes
	}
	return nil
}

// expandNodes lists the nodes of a host list that Compress made.
func expandNodes(list string) []string {
	if list == "" {
		return nil
	}
	names, err := hostlist.Expand(list)
	if err != nil {
		return nil // a row that somebody else wrote: it has no nodes of ours
	}
	return names
}
