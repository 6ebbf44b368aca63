package state

import (
	"cmp"
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

// maxFailed bounds the nodes that are kept of a job as failed, for pools whose nodes come and go.
// The attempts before the last ones are forgotten beyond it.
const maxFailed = 8192

// FailedNodes are nodes on which an attempt of a job failed and which its next ones are kept off.
// Names are a format on disk.
type FailedNodes struct {
	Pool    string        `json:"pool"`
	Nodes   string        `json:"nodes"`   // a host list
	Attempt uint32        `json:"attempt"` // the last one that failed there
	Ended   int64         `json:"ended"`
	KeepOff time.Duration `json:"keep_off,omitempty"` // so long after Ended; 0: always
}

// CoreSpecOf is CoreSpec of one job: with the nodes that it stays on, or is kept off, since earlier
// attempts.
func (s *State) CoreSpecOf(e *JobRecord) *job.Spec {
	spec := s.CoreSpec(e.Shared)
	if e.Extra == nil || s.DelegatedPools[e.Shared.Spec.Pool] {
		return spec
	}
	switch e.Shared.Spec.Rerun {
	case job.RerunSameNodes:
		if len(e.Extra.Past) == 0 {
			return spec
		}
		return e.stayingSpec(spec)
	case job.RerunExcludeFailed:
		if nodes, _ := e.failedNodes(); len(nodes) > 0 {
			return spec.Excluding(nodes)
		}
		return spec
	}
	return e.avoidingSpec(spec, e.Extra.failed)
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
func (e *JobRecord) avoidingSpec(spec *job.Spec, failed []FailedNodes) *job.Spec {
	a := job.Avoid{}
	var off []FailedNodes
	for i := range failed {
		f := &failed[i]
		if f.KeepOff == 0 || f.Pool != e.Shared.Spec.Pool {
			continue
		}
		a.Nodes = append(a.Nodes, expandNodes(f.Nodes)...)
		a.For, a.Until = f.KeepOff, max(a.Until, f.Ended+int64(f.KeepOff))
		off = append(off, *f)
	}
	if len(a.Nodes) == 0 {
		return spec
	}
	out := *spec
	a.Text = failedText(off)
	out.Avoid = a
	return &out
}

// failedNodes are the nodes on which attempts of the job failed, and which did.
func (e *JobRecord) failedNodes() (nodes []string, text string) {
	failed := slices.DeleteFunc(slices.Clone(e.Extra.failed), func(f FailedNodes) bool { return f.Pool != e.Shared.Spec.Pool })
	return namesOf(failed), failedText(failed)
}

func namesOf(failed []FailedNodes) (nodes []string) {
	for i := range failed {
		nodes = append(nodes, expandNodes(failed[i].Nodes)...)
	}
	return nodes
}

// failedText is "a1 (attempt 1 failed there), a2 (attempt 2 failed there)", of nodes of one pool.
func failedText(failed []FailedNodes) string {
	var texts []string
	if more := len(failed) - maxPast; more > 0 {
		texts = append(texts, hostlist.Compress(namesOf(failed[:more]))+" (earlier attempts failed there)")
		failed = failed[more:]
	}
	for i := range failed {
		texts = append(texts, fmt.Sprintf("%s (attempt %d failed there)", failed[i].Nodes, failed[i].Attempt))
	}
	return strings.Join(texts, ", ")
}

// restoreFailed reads the failed nodes of a row. Rows of versions that had them in the attempts
// before alone are read with those.
func (e *JobRecord) restoreFailed(d *RowDetail) {
	e.Extra.failed = d.FailedOn
	for i := range d.Past {
		if len(d.FailedOn) == 0 {
			e.noteFailed(&d.Past[i])
		}
	}
}

// noteFailed keeps the nodes on which an attempt failed, as long as the job is kept off them.
func (e *JobRecord) noteFailed(p *PastAttempt) {
	m := e.EnsureExtra()
	m.failed = withFailed(m.failed, p, e.Shared.Spec.Rerun)
}

// withFailed are the nodes that a job is kept off after one more attempt. Each stands there once,
// with the last attempt that failed there; those whose time is over are left out.
func withFailed(failed []FailedNodes, p *PastAttempt, rerun job.Rerun) (out []FailedNodes) {
	on := ""
	switch {
	case rerun == job.RerunExcludeFailed && (p.Failure == engine.NodeFailure || p.Failure == engine.JobFailure && p.Started != 0):
		on = cmp.Or(p.FailedOn, p.Nodes) // nobody knows on which of them
	case rerun == job.RerunAnywhere && p.KeepOff > 0:
		on = p.FailedOn
	}
	add := expandNodes(on)
	count := len(add)
	for i := len(failed) - 1; i >= 0; i-- {
		f := failed[i]
		if f.KeepOff > 0 && f.Ended+int64(f.KeepOff) <= p.Ended {
			continue
		}
		nodes := expandNodes(f.Nodes)
		if f.Pool == p.Pool {
			nodes = slices.DeleteFunc(nodes, func(n string) bool { return slices.Contains(add, n) })
		}
		if count += len(nodes); count > maxFailed {
			break
		}
		if len(nodes) > 0 {
			f.Nodes = hostlist.Compress(nodes)
			out = append(out, f)
		}
	}
	slices.Reverse(out)
	if len(add) > 0 {
		out = append(out, FailedNodes{Pool: p.Pool, Nodes: on, Attempt: p.Attempt, Ended: p.Ended, KeepOff: p.KeepOff})
	}
	return out
}

// RerunReason says on which nodes a job that waits has to stay, or which it is kept off, because of
// what it asked for; Code None: neither.
func (s *State) RerunReason(e *JobRecord) reason.Reason {
	if e.Extra == nil || s.DelegatedPools[e.Shared.Spec.Pool] {
		return reason.Reason{}
	}
	switch e.Shared.Spec.Rerun {
	case job.RerunSameNodes:
		if len(e.Extra.Past) == 0 {
			return reason.Reason{}
		}
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
	p := PastAttempt{Pool: e.Last.Pool, Ended: ended.UnixNano(), FailedOn: hostlist.Compress(r.FailedOn), KeepOff: most}
	spec := e.avoidingSpec(s.CoreSpec(e.Shared), withFailed(e.ExtraOrZero().failed, &p, job.RerunAnywhere))
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
