package site

import (
	"encoding/json"
	"strings"
)

// Pod is the Kubernetes pod that a node's slurmd runs in.
type Pod struct {
	Namespace string // empty: not said
	Name      string // empty: not said
	Node      string // the Kubernetes node that it is on; empty: not said
	By        string // who says so: "Slinky", "Soperator", "SUNK"
}

// String is the pod for people: "pod slurm/gpu-0 on kube-7 (Slinky)".
func (p Pod) String() string {
	text := "a pod"
	if p.Name != "" {
		text = "pod " + strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
	}
	if p.Node != "" {
		text += " on " + p.Node
	}
	return text + " (" + p.By + ")"
}

// Pod says in which pod the node's slurmd runs, by what the operators that start such pods
// write about them in slurmctld; false: none of them has said anything. What is not written
// there is not filled in, neither from the node's name nor from its features.
//
//   - Slinky's slurm-operator keeps a JSON object as the node's comment: namespace and podName
//     since 0.2, node (the Kubernetes node) since 1.0.
//   - Nebius' Soperator registers nodes under the address POD.SERVICE.NAMESPACE.svc, and with
//     the Kubernetes node as the instance's id (slurmd --instance-id).
//   - CoreWeave's SUNK says nothing of a node that is well; the reasons of its drains begin
//     with "k8s:". On which Kubernetes node it is cannot be known from that.
//
// An administrator can say the same of any node, with Slinky's words:
// scontrol update nodename=N comment='{"namespace":"x","podName":"y","node":"z"}'.
func (n *Node) Pod() (Pod, bool) {
	for _, text := range []string{n.Comment, n.Extra} {
		if p, ok := parsePodNote(text); ok {
			return p, true
		}
	}
	if name, namespace, ok := parseServiceName(n.Address); ok {
		p := Pod{Namespace: namespace, Name: name, By: "Soperator"}
		if kubeName(n.Instance) {
			p.Node = n.Instance
		}
		return p, true
	}
	if strings.HasPrefix(n.Reason, "k8s:") {
		return Pod{By: "SUNK"}, true
	}
	return Pod{}, false
}

// parsePodNote reads what Slinky writes about a pod.
func parsePodNote(text string) (Pod, bool) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return Pod{}, false
	}
	var w struct{ Namespace, PodName, Node string }
	if json.Unmarshal([]byte(text), &w) != nil || !kubeName(w.Namespace) || !kubeName(w.PodName) {
		return Pod{}, false
	}
	p := Pod{Namespace: w.Namespace, Name: w.PodName, By: "Slinky"}
	if kubeName(w.Node) {
		p.Node = w.Node
	}
	return p, true
}

// parseServiceName reads the name that a pod has by a service: POD.SERVICE.NAMESPACE.svc, with or
// without the cluster's domain behind it.
func parseServiceName(address string) (pod, namespace string, ok bool) {
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(address), "."), ".")
	if len(labels) < 4 || labels[3] != "svc" {
		return "", "", false
	}
	for _, l := range labels {
		if !kubeName(l) {
			return "", "", false
		}
	}
	return labels[0], labels[2], true
}

// kubeName reports whether Kubernetes would take a name for a pod or a node: letters in lower
// case, digits, dashes and dots, no more than 253.
func kubeName(s string) bool {
	if s == "" || len(s) > 253 || strings.ContainsAny(s[:1]+s[len(s)-1:], "-.") {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return true
}
