package inventory

import (
	"context"
	"maps"
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

// Inventory is what a pool knows of its cluster: nodes, what others hold of them, and what is
// listed at before the pool is added. It is safe for concurrent use.
type Inventory struct {
	cluster *cluster.Cluster
	terms   settings.Terms
	server  string // value of render.LabelServer on what is ours; empty: nothing is

	refreshing sync.Mutex  // one Refresh at a time
	numbers    dra.Numbers // of DRA's devices; under refreshing

	mu           sync.Mutex // guards what the last Refresh has found
	machines     []Machine  // sorted by name; nil: there was none
	listed       time.Time  // when
	use          map[string]nodeUsage
	used         time.Time                // when use and holders were read
	holders      map[string][]ClaimHolder // the pods that have claims of the paths, by namespace and name
	volumes      []VolumeTopology         // the claims of the paths
	kubelets     podstatus.Kubelets       // also of a Refresh that failed after the nodes were listed
	reserved     []ReservedNode
	levels       []string       // labels of Kueue's Topology; nil: there is none
	leveled      time.Time      // when that was read
	unoffered    map[string]int // devices of DRA that no node has, by the reason
	wrongClasses []error        // device classes that cannot be had
}

// New returns the inventory of a pool of which nothing is known yet. server is the value of
// render.LabelServer on the pods that are ours; empty: none are.
func New(c *cluster.Cluster, t settings.Terms, server string) *Inventory {
	return &Inventory{cluster: c, terms: t, server: server, numbers: dra.Numbers{}}
}

// refreshAfter is how long facts are kept that only users look at, or that hardly change: what others
// hold where another scheduler chooses the nodes, and volumes.
const refreshAfter = 5 * time.Minute

// Nodes lists the nodes of the pool.
func (s *Inventory) Nodes(ctx context.Context) ([]fleet.Node, error) {
	all, err := s.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(all))
	for i := range all {
		out[i] = all[i].Node
	}
	return out, nil
}

// Refresh lists the nodes and, now and then, what pods hold of them.
func (s *Inventory) Refresh(ctx context.Context) ([]Machine, error) {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	var nodes []corev1.Node
	asked := time.Now()
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
	use, used, holders, had := s.use, s.used, s.holders, s.volumes
	s.mu.Unlock()
	if s.terms.Placed || time.Since(used) > refreshAfter {
		fresh, by, err := s.readUsage(ctx)
		switch {
		case err == nil:
			use, used, holders = fresh, time.Now(), by
		case s.terms.Placed || fault.KindOf(err) != fault.Permission:
			return nil, err
		}
	}
	terms := s.terms
	if terms.Topology, _ = s.TopologyLabels(ctx); terms.Topology == nil { // what is wrong with it, the check says
		s.mu.Lock()
		terms.Topology = s.levels
		s.mu.Unlock()
	}
	stock, err := s.devicesOf(ctx)
	if err != nil {
		return nil, err
	}
	all := readNodes(&terms, nodes, use)
	for i := range all {
		for k := range all[i].Health {
			all[i].Health[k].At = asked
		}
	}
	attachDRADevices(&terms, all, stock, s.numbers)
	volumes, err := s.readVolumes(ctx, had)
	if err != nil {
		return nil, err
	}
	applyVolumeTopologies(&terms, all, nodes, volumes, holders)
	if all == nil {
		all = []Machine{} // nil stands for no list
	}
	s.mu.Lock()
	s.machines, s.use, s.used, s.listed, s.reserved = all, use, used, time.Now(), findReserved(&s.terms, nodes)
	s.volumes, s.holders = volumes, holders
	if s.wrongClasses, s.unoffered = nil, nil; stock != nil {
		s.wrongClasses = stock.Wrong
		if none := stock.Trays[""]; none != nil {
			s.unoffered = none.Withheld
		}
	}
	s.mu.Unlock()
	return all, nil
}

// readUsage sums up what pods hold, in chunks: the pods themselves are not reserved.
func (s *Inventory) readUsage(ctx context.Context) (out map[string]nodeUsage, holders map[string][]ClaimHolder, err error) {
	err = cluster.Unbroken(func() error {
		out, holders = map[string]nodeUsage{}, map[string][]ClaimHolder{}
		_, err := cluster.List(ctx, s.cluster, cluster.Pods, cluster.Selection{Fields: "status.phase!=Succeeded,status.phase!=Failed"}, func(p *corev1.Pod) error {
			addPodUse(&s.terms, out, p, s.isOurPod)
			addClaimHolders(&s.terms, holders, p, s.isOurPod(p))
			return nil
		})
		return err
	})
	return out, holders, err
}

// isOurPod reports whether a pod is of this server's jobs.
func (s *Inventory) isOurPod(p *corev1.Pod) bool {
	return s.server != "" && p.Labels[render.LabelServer] == s.server
}

// LastNodes are the nodes as last listed; without a list it makes one.
func (s *Inventory) LastNodes(ctx context.Context) ([]Machine, error) {
	s.mu.Lock()
	all := s.machines
	s.mu.Unlock()
	if all != nil {
		return all, nil
	}
	return s.Refresh(ctx)
}

// HasStrictGroups reports whether all nodes can keep pods to the groups that are named for them.
func (s *Inventory) HasStrictGroups(ctx context.Context) (bool, error) {
	all, err := s.LastNodes(ctx)
	return len(all) > 0 && !slices.ContainsFunc(all, func(m Machine) bool { return !m.Strict }), err
}

// Machine is a node as last listed. false: the pool has none of that name.
func (s *Inventory) Machine(ctx context.Context, name string) (Machine, bool, error) {
	all, err := s.LastNodes(ctx)
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
func (s *Inventory) noteKubelets(all []corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kubelets = podstatus.ReadKubelets(all, time.Now())
}

// KubeletState is what the last list of the nodes showed of a kubelet.
func (s *Inventory) KubeletState(node string) podstatus.Kubelet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kubelets.State(node, time.Now())
}

// ReservedNodes are the nodes of the last list that are the pool's, or bear its taint. It is not
// written to.
func (s *Inventory) ReservedNodes() []ReservedNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved
}

// KnownNodes are the pool's nodes as last listed, sorted by name; nil: there was no list. It is not
// written to.
func (s *Inventory) KnownNodes() []Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machines
}

// Unoffered says why devices are not offered: classes that cannot be had, and how many devices no node
// has, by the reason.
func (s *Inventory) Unoffered() (classes []error, devices map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrongClasses, maps.Clone(s.unoffered)
}

// RememberDevices keeps the numbers of devices that a launch was given.
func (s *Inventory) RememberDevices(nodes []render.Node) {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	s.numbers.Remember(nodes)
}
