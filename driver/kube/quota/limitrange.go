package quota

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// withLimitRangeDefaults returns a copy of a pod with the defaults that the limit ranges of its
// namespace give to containers that state no requests or limits.
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

// limitRangeViolation says why a limit range refuses a pod; empty: it does not.
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

// limitItemViolation compares requests and limits with one item of a limit range.
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
