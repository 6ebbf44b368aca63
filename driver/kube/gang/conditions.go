package gang

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// Object is what is read of the object of a gang: a PodGroup of any kind, or a Workload.
type Object struct {
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

// WaitReason says why a gang has not begun, as its object has it. Empty: it says nothing, or
// the gang has what it needs.
func WaitReason(k render.GangKind, queue string, o *Object) string {
	c := o.Status.Conditions
	switch k {
	case render.Volcano:
		if o.Status.Phase == "Pending" || o.Status.Phase == "" {
			return fmt.Sprintf("waits in Volcano's queue %s, which does not take it in yet: %s", cmp.Or(queue, "default"), cmp.Or(conditionMessage(findCondition(c, "Unschedulable", metav1.ConditionTrue)), "it has no room, or is not open"))
		}
		if o.Status.Phase == "Inqueue" {
			if u := conditionMessage(findCondition(c, "Unschedulable", metav1.ConditionTrue)); u != "" {
				return "Volcano: " + u
			}
		}
	case render.KAI:
		if u := conditionMessage(findCondition(o.Status.Scheduling, "UnschedulableOnNodePool", metav1.ConditionTrue)); u != "" {
			return fmt.Sprintf("waits in KAI's queue %s: %s", queue, u)
		}
	case render.Kueue:
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
