package kube

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
)

// publishReport publishes a report if it says something new. The caller holds the lock.
func (e *Engine) publishReport(a *attempt, r engine.Report) {
	r.Version = a.report.Version
	if a.made != nil {
		r.Native = render.Name(e.log.server, a.ref)
	}
	if reflect.DeepEqual(r, a.report) {
		return
	}
	a.report = r
	e.cache.Publish(r)
	e.publishEndpoints(a)
}

// readMembers reads all pods. The caller holds the lock.
func (e *Engine) readMembers(a *attempt, now time.Time) []podstatus.Member {
	out := make([]podstatus.Member, len(a.order.Nodes))
	for i := range out {
		p := a.pods[i]
		if p == nil {
			out[i] = podstatus.Member{Phase: engine.Accepted, Uncertain: true, Why: fmt.Sprintf("pod %s%s is not there any more; nobody can say whether it ended", podName(e, a.ref, i), onNodeText(a.nodeOf(i)))}
			out[i].OnSilence(a.nodeOf(i), e.inventory.KubeletState)
			continue
		}
		out[i] = a.readPod(i, p, now)
		out[i].DoubtRefusal(p.Pod, p.taken, !a.report.Started.IsZero(), a.stop != nil)
		if p.gone && !out[i].Over {
			out[i].Uncertain, out[i].Why = true, fmt.Sprintf("pod %s%s was taken away with its finalizer; nobody can say whether it ended", p.Name, onNodeText(p.Spec.NodeName))
		}
		out[i].OnSilence(p.Spec.NodeName, e.inventory.KubeletState)
	}
	return out
}

// onNodeText is a pod's node, for people; empty: nobody knows which.
func onNodeText(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// reportProgress reports how far an attempt is. The caller holds the lock.
func (e *Engine) reportProgress(a *attempt, members []podstatus.Member, over int) error {
	r := a.report
	phase, began, begun := engine.Running, time.Time{}, over == 0
	r.Uncertain = false
	all, several := make([]engine.NodeReport, 0, len(members)), a.mayShareNode()
	for i, m := range members {
		if !m.Manifest || !m.Over {
			phase = min(phase, m.Phase)
		}
		begun = begun && m.Phase == engine.Running
		if m.Began.After(began) {
			began = m.Began
		}
		if m.Uncertain {
			r.Uncertain = true
			r.Message = m.Why
		}
		all = onNode(all, engine.NodeReport{Node: a.nodeOf(i), Phase: m.Phase, Message: m.Why}, several)
	}
	if a.order.work != nil {
		began, begun = manifestBegan(members)
	}
	if r.Nodes = nil; len(all) > 0 {
		r.Nodes = all
	}
	if a.report.Uncertain && !r.Uncertain { // it is seen again
		r.Message = ""
	}
	text := cmp.Or(a.volumes.missing, e.said[a.namespace+"/"+render.Name(e.log.server, a.ref)], podstatus.PendingReason(members), manifestTrouble(members))
	if r.Phase == engine.Accepted && a.stop == nil && !r.Uncertain {
		if text != "" || r.Message == a.said.waiting {
			r.Message = text
		}
		a.said.waiting = text
	}
	for _, m := range members {
		if o := m.Outcome; o != nil && !o.Started.IsZero() { // its begin was not seen
			begun, began = true, o.Started
			break
		}
	}
	if !begun && slices.ContainsFunc(members, func(m podstatus.Member) bool { return m.Unsaid }) { // of that one it cannot be seen any more
		if i := slices.IndexFunc(members, func(m podstatus.Member) bool { return !m.Over && m.Phase == engine.Running }); i >= 0 {
			begun, began = true, members[i].Began
		}
	}
	if begun && r.Started.IsZero() {
		if !e.cfg.Terms.Placed {
			a.on = make([]string, len(members))
			for i := range a.on {
				a.on[i] = a.nodeOf(i)
			}
		}
		if err := e.log.Append(&entry{Kind: started, Ref: a.ref, Time: began, Nodes: a.on}); err != nil {
			return err
		}
		r.Started, r.Message = began.Round(0), ""
		before := r // as it was when it began; what was said of its end since stays
		before.Phase, before.Nodes = max(engine.Running, r.Phase), slices.Clone(r.Nodes)
		for i := range before.Nodes {
			before.Nodes[i].Phase = engine.Running
		}
		before.Files = []string{e.logs.fileOf(a.ref)}
		before.Tasks = a.batchReport(&before, true)
		if a.order.work != nil {
			before.Tasks = e.podReports(a, &before, members)
		}
		e.publishReport(a, before)
		r.Phase, r.Files, r.Tasks = before.Phase, before.Files, before.Tasks // a member may show less by now
	}
	if over > 0 && a.order.work == nil || a.stop != nil {
		phase = engine.Ending
	}
	if over == len(members) {
		return nil // the end says it all
	}
	if phase == engine.Ending && r.Phase < phase && a.stop == nil {
		if err := e.log.Append(&entry{Kind: waning, Ref: a.ref}); err != nil {
			return err
		}
	}
	r.Phase = max(r.Phase, phase)
	if a.order.work != nil && r.Phase == engine.Running {
		r.Tasks = e.podReports(a, &r, members)
		if !r.Uncertain {
			r.Message = manifestTrouble(members)
		}
	}
	r.Suspended = r.Suspended && r.Phase == engine.Running
	if a.stop != nil && !r.Uncertain {
		r.Message = a.stop.Reason
	}
	e.publishReport(a, r)
	return nil
}

// mayShareNode reports whether a node may have more than one of an attempt's pods.
func (a *attempt) mayShareNode() bool {
	return !a.chosen || a.order.Job.Spec.PodPerTask()
}

// onNode adds to the report of an attempt's nodes what is known of one of its pods. A node with
// several is as far as the one that is least far; a pod without a node is of none.
func onNode(all []engine.NodeReport, r engine.NodeReport, several bool) []engine.NodeReport {
	if r.Node == "" {
		return all
	}
	if several {
		for i := range all {
			if n := &all[i]; n.Node == r.Node {
				n.Phase, n.Message, n.Lost = min(n.Phase, r.Phase), cmp.Or(n.Message, r.Message), n.Lost || r.Lost
				return all
			}
		}
	}
	return append(all, r)
}

// nodeOf is the node of a member; empty: it has none yet. The caller holds the lock.
func (a *attempt) nodeOf(i int) string {
	if p := a.pods[i]; p != nil && p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	switch {
	case a.chosen:
		return a.order.Nodes[i].Name
	case i < len(a.on):
		return a.on[i]
	}
	return "" // nobody knows yet
}

// isNodeSilent reports whether the kubelet of a member's node did not answer when the nodes were listed last.
func (e *Engine) isNodeSilent(a *attempt, i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.inventory.KubeletState(a.nodeOf(i))
	return v == podstatus.KubeletSilent || v == podstatus.KubeletOff
}

// batchReport is the batch script's part of a report.
func (a *attempt) batchReport(r *engine.Report, running bool) []engine.TaskReport {
	t := engine.TaskReport{Step: engine.BatchStep, Node: a.nodeOf(0), Running: running, Started: r.Started}
	if len(r.Files) > 0 {
		t.Log = r.Files[0]
	}
	if !running {
		t.Ended, t.Cause, t.Exit = r.Ended, r.Cause, r.Exit
	}
	return []engine.TaskReport{t}
}

// finishAttempt reports the end, once it is in the journal. All members are over.
func (e *Engine) finishAttempt(a *attempt, members []podstatus.Member) error {
	e.mu.Lock()
	stop := a.stop
	ran := !a.report.Started.IsZero()
	e.mu.Unlock()
	e.keepLog(a)
	if err := e.deallocateClaims(a); err != nil {
		return err
	}
	w := a.endOf(members, stop.asStop(), ran)
	e.mu.Lock()
	defer e.mu.Unlock()
	r := a.report
	r.Phase, r.Gone, r.Uncertain, r.Suspended, r.Cause, r.Exit, r.Message, r.Ended = engine.Ended, true, false, false, w.Cause, w.Exit, w.Message, w.Ended
	if w.Saved != nil {
		r.Saved = w.Saved
	}
	if r.Ended.IsZero() {
		r.Ended = time.Now().Round(0)
	}
	if r.Ended.Before(r.Started) {
		r.Ended = r.Started
	}
	r.Nodes = nil
	for i := range a.order.Nodes {
		r.Nodes = onNode(r.Nodes, engine.NodeReport{Node: a.nodeOf(i), Phase: engine.Ended, Lost: r.Cause == engine.NodeLost && i < len(members) && members[i].Cause == engine.NodeLost}, a.mayShareNode())
	}
	r.Tasks, r.Used = nil, w.Used.Renamed(a.nodesOfPods(e.log.server))
	switch {
	case a.order.work != nil && ran:
		r.Tasks = e.podReports(a, &r, members)
	case ran:
		r.Tasks = a.taskReports(e.log.server, &r, w.Tasks)
	}
	if err := e.log.Append(&entry{Kind: ended, Ref: a.ref, Digest: a.digest, Namespace: a.namespace, Report: &r}); err != nil {
		return err
	}
	e.dropSecrets(a.ref)
	e.publishReport(a, r)
	a.ended = true
	e.board.Drop(a.ref)
	e.releaseQuota(a.namespace, a.ref)
	e.notifyClaimsReleased(a.namespace)
	e.notifyPodCapacity()
	for _, p := range a.pods {
		if !p.gone {
			e.graves[graveOf(p.Pod)] = p.Pod
		}
	}
	e.countPods(a, false)
	a.order, a.pods = nil, nil
	e.wakeCleanup()
	return nil
}

// nodesOfPods are the nodes of the attempt's pods, by the pods' names.
func (a *attempt) nodesOfPods(server string) map[string]string {
	names := map[string]string{}
	for i := range a.order.Nodes {
		names[render.PodName(server, a.ref, i)] = a.nodeOf(i)
	}
	return names
}

// taskReports are those of the outcome, the script first, with the nodes' names.
func (a *attempt) taskReports(server string, r *engine.Report, said []engine.TaskReport) []engine.TaskReport {
	names := a.nodesOfPods(server)
	out := slices.Clone(said)
	slices.SortStableFunc(out, func(x, y engine.TaskReport) int {
		return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Rank, y.Rank))
	})
	if len(out) == 0 || out[0].Step != engine.BatchStep {
		out = append(a.batchReport(r, false), out...)
	}
	for i := range out {
		out[i].Node, out[i].Running = cmp.Or(names[out[i].Node], out[i].Node), false
	}
	if len(r.Files) > 0 {
		out[0].Log = r.Files[0]
	}
	return out
}
