package kube

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// gangObject is what is read of the object of a gang: a PodGroup of any kind, or a Workload.
type gangObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase      string             `json:"phase"`
		Conditions []metav1.Condition `json:"conditions"`
		Scheduling []metav1.Condition `json:"schedulingConditions"` // of KAI
	} `json:"status"`
}

// findCondition is the last of a type that has a status. nil: there is none.
func findCondition(all []metav1.Condition, kind string, is metav1.ConditionStatus) *metav1.Condition {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Type == kind && all[i].Status == is {
			return &all[i]
		}
	}
	return nil
}

// gangWords says why a gang has not begun, as its object has it. Empty: it says nothing, or
// the gang has what it needs.
func gangWords(k GangKind, queue string, o *gangObject) string {
	c := o.Status.Conditions
	switch k {
	case Volcano:
		if o.Status.Phase == "Pending" || o.Status.Phase == "" {
			return fmt.Sprintf("waits in Volcano's queue %s, which does not take it in yet: %s", cmp.Or(queue, "default"), cmp.Or(conditionMessage(findCondition(c, "Unschedulable", metav1.ConditionTrue)), "it has no room, or is not open"))
		}
		if o.Status.Phase == "Inqueue" {
			if u := conditionMessage(findCondition(c, "Unschedulable", metav1.ConditionTrue)); u != "" {
				return "Volcano: " + u
			}
		}
	case KAI:
		if u := conditionMessage(findCondition(o.Status.Scheduling, "UnschedulableOnNodePool", metav1.ConditionTrue)); u != "" {
			return fmt.Sprintf("waits in KAI's queue %s: %s", queue, u)
		}
	case Kueue:
		switch {
		case findCondition(c, "Admitted", metav1.ConditionTrue) != nil:
		case findCondition(c, "QuotaReserved", metav1.ConditionTrue) != nil:
			return fmt.Sprintf("has quota of Kueue's queue %s, and waits for its admission checks: %s", queue, cmp.Or(conditionMessage(findCondition(c, "Admitted", metav1.ConditionFalse)), "they have not answered"))
		default:
			return fmt.Sprintf("waits in Kueue's queue %s for quota: %s", queue, cmp.Or(conditionMessage(findCondition(c, "QuotaReserved", metav1.ConditionFalse)), "it was not looked at yet"))
		}
	}
	return ""
}

// conditionMessage is what a condition says. nil: nothing.
func conditionMessage(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return cmp.Or(strings.TrimSpace(c.Message), c.Reason)
}

// watchGangs follows the objects of gangs of a kind in a namespace, once, until the engine is closed.
// What they say of why they wait, e.said has.
func (e *Engine) watchGangs(g *Gang, namespace string) {
	if g == nil || g.Kind == Native || g.Kind == Coscheduling { // their pods say it
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard[namespace] || e.ctx.Err() != nil {
		return
	}
	e.heard[namespace] = true
	s := cluster.Selection{Namespace: namespace, Labels: render.LabelServer + "=" + e.log.server}
	if g.Kind == Kueue {
		s.Labels = "" // it does not give them labels of ours
	}
	kind := g.Kind
	seen := map[string]bool{}
	e.wg.Go(func() {
		cluster.Follow(e.ctx, e.k, g.Resource, s, cluster.Follower[gangObject]{
			Begin: func() { clear(seen) },
			Each: func(o *gangObject, deleted bool) {
				seen[o.Name] = true
				text := ""
				if !deleted {
					text = gangWords(kind, e.cfg.Terms.Queue, o)
				}
				e.noteGangReason(namespace, o.Name, text)
			},
			Listed: func() { e.clearMissingGangs(namespace, seen) },
			Failed: func(err error) { e.cfg.Log.Warn("kubernetes", "gangs", string(kind), "error", err) },
		})
	})
}

// clearMissingGangs takes the end of a list of a namespace: objects that are not in it are gone, and say nothing
// any more.
func (e *Engine) clearMissingGangs(namespace string, seen map[string]bool) {
	e.mu.Lock()
	var gone []string
	for key := range e.said {
		if name, here := strings.CutPrefix(key, namespace+"/"); here && !seen[name] {
			gone = append(gone, name)
		}
	}
	e.mu.Unlock()
	for _, name := range gone {
		e.noteGangReason(namespace, name, "")
	}
}

// noteGangReason takes what a gang's object says.
func (e *Engine) noteGangReason(namespace, name, text string) {
	if !strings.HasPrefix(name, "cox-"+e.log.server+"-") {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := namespace + "/" + name
	if e.said[key] == text {
		return
	}
	if e.said[key] = text; text == "" {
		delete(e.said, key)
	}
	for ref, a := range e.attempts {
		if a.namespace == namespace && render.Name(e.log.server, ref) == name {
			a.wakeUp()
		}
	}
}
