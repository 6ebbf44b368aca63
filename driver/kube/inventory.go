package kube

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Survey is what a pool knows of its cluster: nodes, what others hold of them, and what is
// looked at before the pool is added. It is safe for concurrent use.
type Survey struct {
	cluster *cluster.Cluster
	terms   settings.Terms
	server  string // value of render.LabelServer on what is ours; empty: nothing is

	looking  sync.Mutex // one look at a time
	mu       sync.Mutex
	machines []Machine // of the last look, sorted by name; nil: there was none
	use      map[string]using
	used     time.Time           // when use was looked at
	held     map[string][]holder // with use: which pods have claims of the paths, by namespace and name
	ties     []tie               // of the last look
	kubelets podstatus.Kubelets  // of the last list of the nodes
	kept     []keptNode          // of the last look: that are the pool's, or bear its taint
	looked   time.Time           // at the nodes
	numbers  dra.Numbers         // of DRA's devices; under looking
	astray   map[string]int      // of the last look: devices of DRA that no node has, by the reason why they are not offered
	wrong    []error             // of the last look: classes of DRA that are not to be had
	levels   []string            // labels of Kueue's Topology; nil: there is none
	leveled  time.Time           // when that was looked at
}

// NewSurvey begins one; nobody is asked yet.
func NewSurvey(c *cluster.Cluster, t settings.Terms, server string) *Survey {
	if t.Namespace == "" {
		t.Namespace = c.Namespace()
	}
	return &Survey{cluster: c, terms: t, server: server, numbers: dra.Numbers{}}
}

// slow is how long what others hold is gone by where another scheduler chooses the nodes: it
// is shown there, and nothing is placed by it.
const slow = 5 * time.Minute

// Nodes lists the nodes of the pool.
func (s *Survey) Nodes(ctx context.Context) ([]fleet.Node, error) {
	all, err := s.surveyNodes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(all))
	for i := range all {
		out[i] = all[i].Node
	}
	return out, nil
}

// surveyNodes asks for the nodes and, now and then, for what pods hold of them.
func (s *Survey) surveyNodes(ctx context.Context) ([]Machine, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	var nodes []corev1.Node
	if err := cluster.Unbroken(func() error {
		nodes = nil
		_, err := cluster.List(ctx, s.cluster, cluster.Nodes, cluster.Selection{}, func(n *corev1.Node) error {
			nodes = append(nodes, *n)
			return nil
		})
		return err
	}); err != nil {
		return nil, err
	}
	s.noteKubelets(nodes)
	s.mu.Lock()
	use, used, held, had := s.use, s.used, s.held, s.ties
	s.mu.Unlock()
	if s.terms.Placed || time.Since(used) > slow {
		fresh, by, err := s.readUsage(ctx)
		switch {
		case err == nil:
			use, used, held = fresh, time.Now(), by
		case s.terms.Placed || fault.KindOf(err) != fault.Permission:
			return nil, err
		}
	}
	terms := s.terms
	if terms.Topology, _ = s.topologyLabels(ctx); terms.Topology == nil { // what is wrong with it, the look says
		s.mu.Lock()
		terms.Topology = s.levels
		s.mu.Unlock()
	}
	stock, err := s.devicesOf(ctx)
	if err != nil {
		return nil, err
	}
	all := readNodes(&terms, nodes, use)
	attachDRADevices(&terms, all, stock, s.numbers)
	ties, err := s.askTies(ctx, had)
	if err != nil {
		return nil, err
	}
	applyAllVolumeTies(&terms, all, nodes, ties, held)
	if all == nil {
		all = []Machine{} // there was a look
	}
	s.mu.Lock()
	s.machines, s.use, s.used, s.looked, s.kept = all, use, used, time.Now(), keptOf(&s.terms, nodes)
	s.ties, s.held = ties, held
	if s.wrong, s.astray = nil, nil; stock != nil {
		s.wrong = stock.Wrong
		if none := stock.Trays[""]; none != nil {
			s.astray = none.Withheld
		}
	}
	s.mu.Unlock()
	return all, nil
}

// readUsage sums up what pods hold, in chunks: the pods themselves are not kept.
func (s *Survey) readUsage(ctx context.Context) (out map[string]using, held map[string][]holder, err error) {
	err = cluster.Unbroken(func() error {
		out, held = map[string]using{}, map[string][]holder{}
		_, err := cluster.List(ctx, s.cluster, cluster.Pods, cluster.Selection{Fields: "status.phase!=Succeeded,status.phase!=Failed"}, func(p *corev1.Pod) error {
			addPodUse(&s.terms, out, p, s.isOurs)
			addClaimHolders(&s.terms, held, p, s.isOurs(p))
			return nil
		})
		return err
	})
	return out, held, err
}

func (s *Survey) isOurs(p *corev1.Pod) bool {
	return s.server != "" && p.Labels[render.LabelServer] == s.server
}

// lastNodes are the nodes of the last look; there is one before the first answer.
func (s *Survey) lastNodes(ctx context.Context) ([]Machine, error) {
	s.mu.Lock()
	all := s.machines
	s.mu.Unlock()
	if all != nil {
		return all, nil
	}
	return s.surveyNodes(ctx)
}

// hasStrictGroups reports whether all nodes can keep pods to the groups that are named for them.
func (s *Survey) hasStrictGroups(ctx context.Context) (bool, error) {
	all, err := s.lastNodes(ctx)
	return len(all) > 0 && !slices.ContainsFunc(all, func(m Machine) bool { return !m.Strict }), err
}

// Machine is a node of the last look. false: the pool has none of that name.
func (s *Survey) Machine(ctx context.Context, name string) (Machine, bool, error) {
	all, err := s.lastNodes(ctx)
	if err != nil {
		return Machine{}, false, err
	}
	i, ok := slices.BinarySearchFunc(all, name, func(m Machine, name string) int { return strings.Compare(m.Node.Name, name) })
	if !ok {
		return Machine{}, false, nil
	}
	return all[i], true, nil
}

// noteKubelets keeps what a list of the nodes shows of their kubelets, whatever fails afterwards.
func (s *Survey) noteKubelets(all []corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kubelets = podstatus.ReadKubelets(all, time.Now())
}

// kubeletState is what the last list of the nodes showed of a kubelet.
func (s *Survey) kubeletState(node string) podstatus.Kubelet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kubelets.State(node, time.Now())
}
