package podstatus

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// PendingReason says why the cluster's scheduler gives the pods of an attempt no nodes; empty: it has
// said nothing, or they have them.
func PendingReason(members []Member) string {
	text, without := "", 0
	for _, m := range members {
		if !m.Placed {
			without++
		}
		if m.waiting == "" { // nothing was said of it yet
			continue
		}
		if s := parseSchedulerMessage(m.waiting); text == "" || s.nodes && !strings.HasPrefix(text, "of ") {
			text = s.text
		}
	}
	if n := len(members); text != "" && n > 1 {
		each := fmt.Sprintf("for its %d pods, which begin together", n)
		if without < n {
			each = fmt.Sprintf("for %d of its %d pods", without, n)
		}
		return "Kubernetes' scheduler has no nodes " + each + ": " + text
	}
	if text == "" {
		return ""
	}
	return "Kubernetes' scheduler has no node for it: " + text
}

// said is what a scheduler says of a pod, in our words.
type said struct {
	text  string
	nodes bool // it says what is wrong with the nodes
}

var (
	nodesSaid = regexp.MustCompile(`^0/(\d+) nodes are available: (.*)$`)
	countSaid = regexp.MustCompile(`^(\d+) (.*)$`)
)

// parseSchedulerMessage reads the message of a pod's condition PodScheduled. What is not known is said as it
// stands.
func parseSchedulerMessage(message string) said {
	message, _, _ = strings.Cut(message, ", preemption: ") // whom it could displace is said of each node
	message, _, _ = strings.Cut(message, " preemption: ")
	message = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(message), "no new claims to deallocate"), "still not schedulable"), " ")
	message = strings.TrimSuffix(strings.TrimSpace(message), ".")
	switch {
	case message == "no nodes available to schedule pods":
		return said{text: "it knows no nodes"}
	case strings.HasPrefix(message, "pod group is unschedulable"), strings.Contains(message, "waiting for minCount pods from a gang"), strings.HasSuffix(message, " optimistic rejection in PostFilter"): // coscheduling's
		return said{text: "not all pods find one"}
	}
	m := nodesSaid.FindStringSubmatch(message)
	if m == nil {
		return said{text: message}
	}
	var out []string
	for part := range strings.SplitSeq(m[2], ", ") {
		if c := countSaid.FindStringSubmatch(part); c != nil {
			out = append(out, c[1]+" "+nodeShortage(c[2], c[1] == "1"))
			continue
		}
		if n := len(out); n > 0 { // a comma in what was said
			out[n-1] += ", " + part
			continue
		}
		out = append(out, part)
	}
	nodes := m[1] + " nodes: "
	if m[1] == "1" {
		nodes = "1 node: "
	}
	return said{"of " + nodes + strings.Join(out, ", "), true}
}

// nodeShortage is what a scheduler says of nodes, in our words.
func nodeShortage(what string, one bool) string {
	has, is, misses := "have", "are", "miss"
	if one {
		has, is, misses = "has", "is", "misses"
	}
	if r, ok := strings.CutPrefix(what, "Insufficient "); ok {
		return has + " too little " + cmp.Or(map[string]string{"ephemeral-storage": "disk"}[r], r)
	}
	what = strings.TrimPrefix(what, "node(s) ")
	if r, ok := strings.CutPrefix(what, "had untolerated taint "); ok {
		return has + " a taint that the pool does not tolerate " + r
	}
	switch what {
	case "had untolerated taint(s)":
		return has + " a taint that the pool does not tolerate"
	case "didn't match pod anti-affinity rules":
		return has + " a pod of this job already"
	case "didn't match Pod's node affinity/selector":
		return misses + " a label of the pool's node_selector"
	case "cannot allocate all claims":
		return has + " too few free devices of those that are asked for"
	case "were unschedulable":
		return is + " cordoned"
	}
	if what == "Too many pods" {
		return has + " as many pods as the kubelet takes"
	}
	return what
}
