package gang

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Kueue's own kinds, in the versions that are known.
var (
	kueueVersions    = []string{"v1beta2", "v1beta1"}
	TopologyResource = cluster.Resource{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "topologies", Global: true}
	LocalQueues      = cluster.Resource{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "localqueues"}
	ClusterQueues    = cluster.Resource{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "clusterqueues", Global: true}
	Flavors          = cluster.Resource{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "resourceflavors", Global: true}
)

// Topology is what is used of a Topology of Kueue's.
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Levels []struct {
			NodeLabel string `json:"nodeLabel"`
		} `json:"levels"`
	} `json:"spec"`
}

// LevelLabels are those of its levels, from the top down, without the hosts themselves.
func (k *Topology) LevelLabels() (out []string) {
	for _, l := range k.Spec.Levels {
		if l.NodeLabel != corev1.LabelHostname {
			out = append(out, l.NodeLabel)
		}
	}
	return out
}

// Nearness says how near each other the pods of a job are to be, where Kueue is told that, and returns
// the job without what it says of it. What Kueue cannot be told stays.
// labels are the levels' from the top down.
func Nearness(t *settings.Terms, s *job.Spec, labels func() ([]string, error)) (render.Near, *job.Spec, error) {
	if t.Placed || t.Gang != render.Kueue {
		return render.Near{}, s, nil
	}
	out := *s
	out.Groups = slices.Clone(s.Groups)
	hard, wish := out.Within, out.Wish.N
	out.Within, out.Wish = 0, job.Wish{}
	if len(out.Groups) == 1 {
		g := &out.Groups[0]
		hard, wish = innerLevel(hard, g.Within), innerLevel(wish, g.Wishes.Within.N)
		g.Within, g.Wishes.Within = 0, job.Wish{}
		if g.Switches == 1 {
			hard, g.Switches = job.InLeaf, 0
		}
		if g.Wishes.Switches.N == 1 {
			wish, g.Wishes.Switches = job.InLeaf, job.Wish{}
		}
	}
	if hard == 0 && wish == 0 {
		return t.Within, &out, nil
	}
	all, err := labels()
	if err != nil {
		return render.Near{}, nil, err
	}
	if hard != 0 {
		label, err := levelLabel(s, hard, all)
		return render.Near{Label: label}, &out, err
	}
	label, err := levelLabel(s, wish, all)
	return render.Near{Label: label, Wished: true}, &out, err
}

// innerLevel is the inner one of two levels; 0 is none.
func innerLevel(a, b int) int {
	if a < 0 || b < 0 {
		return min(a, b)
	}
	return max(a, b)
}

// levelLabel is the label of a level that a job names.
func levelLabel(s *job.Spec, n int, labels []string) (string, error) {
	refuse := func(advice, format string, args ...any) (string, error) {
		return "", engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", advice), "switches", "constraint")
	}
	if len(labels) == 0 {
		return refuse("an administrator of the pool names them: topology, as Kueue's Topology has them", "which labels say where nodes lie is not known for this pool, and Kueue is told one of them")
	}
	name := s.LevelName(n)
	switch i := slices.IndexFunc(labels, func(l string) bool { return l == name || strings.HasSuffix(l, "/"+name) }); {
	case name != "" && i >= 0:
		return labels[i], nil
	case name != "" || n > len(labels):
		return refuse("ask for one of these, or for a leaf (--switches=1)", "no level %s: those of the pool are %s", levelWord(name, n), strings.Join(labels, ", "))
	case n == job.InLeaf:
		return labels[len(labels)-1], nil
	}
	return labels[n-1], nil
}

func levelWord(name string, n int) string {
	if name != "" {
		return name
	}
	return job.LevelText(n)
}

// Topologies lists them; none where the cluster does not know the kind.
func Topologies(ctx context.Context, c *cluster.Cluster) (out []Topology, err error) {
	served, err := c.Served(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := served.Find(TopologyResource.Group, TopologyResource.Name, kueueVersions...)
	if !ok {
		return nil, nil
	}
	_, err = cluster.List(ctx, c, k.Resource, cluster.Selection{}, func(k *Topology) error {
		out = append(out, *k)
		return nil
	})
	return out, err
}

// QueueTopology is what the jobs of the LocalQueue in a namespace are told of where nodes lie: the Topology of each of
// its flavors that has one, nil if there is none of that name. without are flavors that have none.
func QueueTopology(ctx context.Context, c *cluster.Cluster, served cluster.Served, namespace, queue string) (has map[string]*Topology, without []string, err error) {
	at := func(r cluster.Resource) cluster.Resource {
		if k, ok := served.Find(r.Group, r.Name, kueueVersions...); ok {
			return k.Resource
		}
		return r
	}
	var local struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct{ ClusterQueue string }
	}
	if err := c.Get(ctx, at(LocalQueues), namespace, queue, &local); err != nil {
		return nil, nil, err
	}
	var whole struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			ResourceGroups []struct{ Flavors []struct{ Name string } }
		}
	}
	if err := c.Get(ctx, at(ClusterQueues), "", local.Spec.ClusterQueue, &whole); err != nil {
		return nil, nil, err
	}
	all, err := Topologies(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	has = map[string]*Topology{}
	for _, g := range whole.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			var flavor struct {
				metav1.ObjectMeta `json:"metadata"`
				Spec              struct{ TopologyName string }
			}
			if err := c.Get(ctx, at(Flavors), "", f.Name, &flavor); err != nil {
				return nil, nil, err
			}
			if flavor.Spec.TopologyName == "" {
				without = append(without, f.Name)
				continue
			}
			has[f.Name] = nil
			for i := range all {
				if all[i].Name == flavor.Spec.TopologyName {
					has[f.Name] = &all[i]
				}
			}
		}
	}
	return has, without, nil
}
