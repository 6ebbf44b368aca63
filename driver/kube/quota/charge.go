package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// allContainers lists a pod's containers, init containers first.
func allContainers(p *corev1.Pod) (out []*corev1.Container) {
	for i := range p.Spec.InitContainers {
		out = append(out, &p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		out = append(out, &p.Spec.Containers[i])
	}
	return out
}

// podTotal adds up what a pod's containers have: the sum of those that run together, or the
// amount of an init container where that is larger.
func podTotal(p *corev1.Pod, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range p.Spec.Containers {
		addTo(out, of(&p.Spec.Containers[i]))
	}
	for i := range p.Spec.InitContainers {
		for name, q := range of(&p.Spec.InitContainers[i]) {
			if has := out[name]; q.Cmp(has) > 0 {
				out[name] = q
			}
		}
	}
	return out
}

func addTo(sum, more corev1.ResourceList) {
	for name, q := range more {
		has := sum[name].DeepCopy()
		has.Add(q)
		sum[name] = has
	}
}

func containerRequests(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }
func containerLimits(c *corev1.Container) corev1.ResourceList   { return c.Resources.Limits }

// podCharge is what a pod takes of quotas, keyed by the names that quotas use.
func podCharge(p *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	out := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, q := range podTotal(p, containerRequests) {
		if isComputeResource(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			out[name] = q
		}
		out["requests."+name] = q
	}
	for name, q := range podTotal(p, containerLimits) {
		if isComputeResource(name) {
			out["limits."+name] = q
		}
	}
	return out
}

// isComputeResource reports whether quotas count a resource both in requests and in limits.
func isComputeResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// coversPod reports whether a quota counts a pod. false: it does not, or its scope is unknown here.
func coversPod(q *corev1.ResourceQuota, p *corev1.Pod) bool {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, s := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	for _, s := range all {
		if !matchesScope(s, p) {
			return false
		}
	}
	return true
}

func matchesScope(s corev1.ScopedResourceSelectorRequirement, p *corev1.Pod) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return p.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return p.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort:
		some := false
		for _, c := range allContainers(p) {
			for name := range c.Resources.Requests {
				some = some || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			}
			for name := range c.Resources.Limits {
				some = some || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			}
		}
		return some == (s.ScopeName == corev1.ResourceQuotaScopeNotBestEffort)
	case corev1.ResourceQuotaScopePriorityClass:
		has := p.Spec.PriorityClassName
		switch s.Operator {
		case corev1.ScopeSelectorOpExists:
			return has != ""
		case corev1.ScopeSelectorOpDoesNotExist:
			return has == ""
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(s.Values, has)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(s.Values, has)
		}
	}
	return false
}

// shortfall says which of a quota's amounts have no room for the pods beside what other pods of
// ours will take, and what helps where waiting does not; empty: the quota has room.
func shortfall(q *corev1.ResourceQuota, want, coming corev1.ResourceList) string {
	if _, any := want[corev1.ResourcePods]; !any {
		return ""
	}
	var out []string
	mend := ""
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		n, ok := want[name]
		if !ok {
			continue
		}
		hard, counted := q.Status.Hard[name]
		if !counted {
			out = append(out, fmt.Sprintf("%s: the cluster has not counted yet what is used", name))
			continue
		}
		left := hard.DeepCopy()
		left.Sub(q.Status.Used[name])
		left.Sub(coming[name])
		switch {
		case n.Cmp(hard) > 0:
			out = append(out, fmt.Sprintf("%s: %s asked for, which is more than all of it, %s", name, n.String(), hard.String()))
			mend = "; it cannot begin as it is: submit it with less, or have an administrator raise the quota"
		case n.Cmp(left) > 0:
			out = append(out, fmt.Sprintf("%s: %s asked for, %s of %s left", name, n.String(), remainingText(left), hard.String()))
		}
	}
	return strings.Join(out, "; ") + mend
}

// remainingText prints an amount that can be below zero: the quota may have been made smaller.
func remainingText(q resource.Quantity) string {
	if q.Sign() < 0 {
		return "nothing"
	}
	return q.String()
}

// missingRequest names the request or limit that a quota requires and the pod lacks; empty: none.
func missingRequest(q *corev1.ResourceQuota, p *corev1.Pod) string {
	if !coversPod(q, p) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		of, plainName := containerRequests, name
		if n, ok := strings.CutPrefix(string(name), "limits."); ok {
			of, plainName = containerLimits, corev1.ResourceName(n)
		} else if n, ok := strings.CutPrefix(string(name), "requests."); ok {
			plainName = corev1.ResourceName(n)
		}
		if plainName != corev1.ResourceCPU && plainName != corev1.ResourceMemory {
			continue
		}
		for _, c := range allContainers(p) {
			if _, ok := of(c)[plainName]; !ok {
				return fmt.Sprintf("quota %s wants every pod to say its %s, and the job does not say how much %s it needs", q.Name, name, plainName)
			}
		}
	}
	return ""
}

// hasGrown reports whether a quota has more room than before, for any of its amounts.
func hasGrown(was, is *corev1.ResourceQuota) bool {
	if was == nil {
		return true // it may have counted by now
	}
	for name := range was.Spec.Hard {
		if _, ok := is.Spec.Hard[name]; !ok {
			return true
		}
	}
	for name, hard := range is.Status.Hard {
		before, ok := was.Status.Hard[name]
		used, usedBefore := is.Status.Used[name], was.Status.Used[name]
		if !ok || hard.Cmp(before) > 0 || used.Cmp(usedBefore) < 0 {
			return true
		}
	}
	return false
}
