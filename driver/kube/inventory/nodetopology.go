package inventory

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// Places are the labels that say where a node lies where the settings name none, from the top
// down. Those of a line mean the same; a node has the first of them that it has.
var Places = [][]string{
	{corev1.LabelTopologyRegion},
	{corev1.LabelTopologyZone},
	{"network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter"},
	{"network.topology.nvidia.com/spine"},
	{"network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block"},
	{"network.topology.nvidia.com/accelerator", "nvidia.com/gpu.clique"}, // NVLink over several nodes
}

// topologyLevels are the labels of paths in this cluster: those that a node of the pool has. The
// host's own name is no level.
func topologyLevels(t *settings.Terms, nodes []corev1.Node) [][]string {
	all := Places
	if len(t.Topology) > 0 {
		all = nil
		for _, l := range t.Topology {
			if l != corev1.LabelHostname {
				all = append(all, []string{l})
			}
		}
	}
	var out [][]string
	for _, names := range all {
		for i := range nodes {
			if t.SelectsNode(&nodes[i]) && firstOf(nodes[i].Labels, names...) != "" {
				out = append(out, names)
				break
			}
		}
	}
	return out
}

// nodePath is where a node lies. Below a level that it has no label for nothing is known: the
// same name there could be another place.
func nodePath(n *corev1.Node, levels [][]string) (path []string) {
	for _, names := range levels {
		v := firstOf(n.Labels, names...)
		if v == "" {
			break
		}
		path = append(path, v)
	}
	return path
}
