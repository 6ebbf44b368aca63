package inventory

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
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

// TopologyLabels is the labels that say where nodes lie, from the top down: those of the settings, or of
// a Topology of Kueue's that they name, or if they name nothing of the only one that the cluster
// has, if it may be seen. None: Places.
func (s *Inventory) TopologyLabels(ctx context.Context) ([]string, error) {
	name, named := "", false
	if len(s.terms.Topology) > 0 {
		if name, named = strings.CutPrefix(s.terms.Topology[0], settings.KueueTopology); !named {
			return slices.DeleteFunc(slices.Clone(s.terms.Topology), func(l string) bool { return l == corev1.LabelHostname }), nil
		}
	}
	s.mu.Lock()
	labels, at := s.levels, s.leveled
	s.mu.Unlock()
	if time.Since(at) < refreshAfter {
		return labels, nil
	}
	all, err := gang.Topologies(ctx, s.cluster)
	switch {
	case err != nil && (named || fault.KindOf(err) != fault.Permission):
		return nil, err
	case named:
		all = slices.DeleteFunc(all, func(k gang.Topology) bool { return name != "" && k.Name != name })
		if len(all) != 1 {
			return nil, fault.New(fault.NotFound, "setting topology: of %d Topologies of Kueue's it names none", len(all)).Advise("kubectl get topologies.kueue.x-k8s.io shows them; write kueue:NAME")
		}
	}
	labels = nil
	if len(all) == 1 {
		labels = all[0].LevelLabels()
	}
	s.mu.Lock()
	s.levels, s.leveled = labels, time.Now()
	s.mu.Unlock()
	return labels, nil
}
