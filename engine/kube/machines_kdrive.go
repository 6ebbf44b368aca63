package kube

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/fleet"
)

// Survey is what a pool knows of its cluster's nodes. It is safe for concurrent use.
type Survey struct {
	cluster *cluster.Cluster
	terms   Terms
	server  string // value of LabelServer on what is ours

	mu       sync.Mutex
	machines []Machine // of the last look; nil: there was none
}

// NewSurvey begins one; nobody is asked yet.
func NewSurvey(c *cluster.Cluster, t Terms, server string) *Survey {
	return &Survey{cluster: c, terms: t, server: server}
}

// Nodes lists the nodes of the pool.
func (s *Survey) Nodes(ctx context.Context) ([]fleet.Node, error) {
	all, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(all))
	for i := range all {
		out[i] = all[i].Node
	}
	return out, nil
}

func (s *Survey) look(ctx context.Context) ([]Machine, error) {
	var nodes []corev1.Node
	if _, err := cluster.List(ctx, s.cluster, cluster.Nodes, cluster.Selection{}, func(n *corev1.Node) error {
		nodes = append(nodes, *n)
		return nil
	}); err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	if _, err := cluster.List(ctx, s.cluster, cluster.Pods, cluster.Selection{}, func(p *corev1.Pod) error {
		pods = append(pods, *p)
		return nil
	}); err != nil {
		return nil, err
	}
	all := machines(&s.terms, nodes, pods, func(p *corev1.Pod) bool { return p.Labels[LabelServer] == s.server })
	s.mu.Lock()
	s.machines = all
	s.mu.Unlock()
	return all, nil
}

// Machine is a node of the last look; there is one before the first answer. false: the pool
// has none of that name.
func (s *Survey) Machine(ctx context.Context, name string) (Machine, bool, error) {
	s.mu.Lock()
	all := s.machines
	s.mu.Unlock()
	if all == nil {
		var err error
		if all, err = s.look(ctx); err != nil {
			return Machine{}, false, err
		}
	}
	for _, m := range all {
		if m.Node.Name == name {
			return m, true, nil
		}
	}
	return Machine{}, false, nil
}
