package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a namespace's quotas and limit ranges mean for pods of ours. All here is a function of
// what it is given. Where the API server knows better, as it does of scopes that are not known
// here, it has the last word.

// withLimitRangeDefaults is a pod as the limit ranges of its namespace make it: containers that do not say
// how much they have get what these say.
func withLimitRangeDefaults(p *corev1.Pod, ranges []*corev1.LimitRange) *corev1.Pod {
	out := p.DeepCopy()
	fill := func(to *corev1.ResourceList, from corev1.ResourceList) {
		for name, q := range from {
			if _, ok := (*to)[name]; !ok {
				if *to == nil {
					*to = corev1.ResourceList{}
				}
				(*to)[name] = q
			}
		}
	}
	for _, c := range allContainers(out) {
		for _, r := range ranges {
			for _, i := range r.Spec.Limits {
				if i.Type == corev1.LimitTypeContainer {
					fill(&c.Resources.Limits, i.Default)
					fill(&c.Resources.Requests, i.DefaultRequest)
				}
			}
		}
	}
	return out
}

// allContainers are all of a pod, the initial ones first.
func allContainers(p *corev1.Pod) (out []*corev1.Container) {
	for i := range p.Spec.InitContainers {
		out = append(out, &p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		out = append(out, &p.Spec.Containers[i])
	}
	return out
}

// podTotal is what a pod has of what its containers have: all of those that run together, or as
// much as an initial one, if that is more.
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

// quotaCharge is what a pod takes of quotas, by their names for it.
func quotaCharge(p *corev1.Pod) corev1.ResourceList {
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

// isComputeResource are resources that quotas count in requests and in limits.
func isComputeResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// quotaCoversPod reports whether a quota counts a pod. false: it does not, or nobody here can say.
func quotaCoversPod(q *corev1.ResourceQuota, p *corev1.Pod) bool {
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

// quotaShortfall says which of a quota's amounts have no room for what pods take beside what others of
// ours will take, and what is to be done where waiting does not help; empty: it has room.
func quotaShortfall(q *corev1.ResourceQuota, want, coming corev1.ResourceList) string {
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

// remainingText is an amount of which there may be less than nothing: a quota that was made smaller.
func remainingText(q resource.Quantity) string {
	if q.Sign() < 0 {
		return "nothing"
	}
	return q.String()
}

// missingQuotaRequest says what a quota wants to be told of a pod and is not; empty: nothing.
func missingQuotaRequest(q *corev1.ResourceQuota, p *corev1.Pod) string {
	if !quotaCoversPod(q, p) {
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

// limitRangeViolation says by which limit range a pod is not let in; empty: by none.
func limitRangeViolation(r *corev1.LimitRange, p *corev1.Pod) string {
	for _, i := range r.Spec.Limits {
		switch i.Type {
		case corev1.LimitTypeContainer:
			for _, c := range allContainers(p) {
				if why := limitItemViolation(&i, c.Resources.Requests, c.Resources.Limits); why != "" {
					return fmt.Sprintf("limit range %s: a container %s", r.Name, why)
				}
			}
		case corev1.LimitTypePod:
			if why := limitItemViolation(&i, podTotal(p, containerRequests), podTotal(p, containerLimits)); why != "" {
				return fmt.Sprintf("limit range %s: a pod %s", r.Name, why)
			}
		}
	}
	return ""
}

// limitItemViolation compares amounts with an item of a limit range.
func limitItemViolation(i *corev1.LimitRangeItem, ask, limit corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(i.Min)) {
		least := i.Min[name]
		if q, ok := ask[name]; !ok {
			return fmt.Sprintf("has to have at least %s=%s, and the job does not say how much it needs", name, least.String())
		} else if q.Cmp(least) < 0 {
			return fmt.Sprintf("has to have at least %s=%s, and the job's has %s", name, least.String(), q.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Max)) {
		most := i.Max[name]
		q, ok := limit[name]
		if !ok {
			return fmt.Sprintf("may have at most %s=%s, and the job does not say how much it needs", name, most.String())
		}
		if n := ask[name]; n.Cmp(q) > 0 {
			q = n
		}
		if q.Cmp(most) > 0 {
			return fmt.Sprintf("may have at most %s=%s, and the job's has %s", name, most.String(), q.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.MaxLimitRequestRatio)) {
		most, a, l := i.MaxLimitRequestRatio[name], ask[name], limit[name]
		if a.AsApproximateFloat64() <= 0 || l.AsApproximateFloat64() <= 0 || l.AsApproximateFloat64()/a.AsApproximateFloat64() > most.AsApproximateFloat64() {
			return fmt.Sprintf("may have a limit of %s of at most %s times what it asks for, and the job's asks for %s with a limit of %s", name, most.String(), a.String(), l.String())
		}
	}
	return ""
}

// quotaHasGrown reports whether a quota has more room for something than it had.
func quotaHasGrown(was, is *corev1.ResourceQuota) bool {
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
