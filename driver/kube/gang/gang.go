package gang

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
)

// Gang is something that the API server has for beginning pods together. That the resource is
// served does not show that a scheduler goes by it: a first gang does.
type Gang struct {
	Kind     render.GangKind
	Resource cluster.Resource
}

// Ability is what it guarantees.
func (g Gang) Ability() engine.GangAbility {
	if g.Kind == render.Kueue {
		return engine.GangApproximate
	}
	return engine.GangStrict
}

// gangKinds are the resources by which each is found, and the versions that are known.
var gangKinds = []struct {
	kind        render.GangKind
	group, name string
	versions    []string
}{
	{render.Native, "scheduling.k8s.io", "podgroups", []string{"v1beta1", "v1alpha3", "v1alpha2"}}, // 1.37, 1.37, 1.36; 1.35 had Workload alone
	{render.Volcano, "scheduling.volcano.sh", "podgroups", []string{"v1beta1"}},
	{render.KAI, "scheduling.run.ai", "podgroups", []string{"v2alpha2"}},
	{render.Coscheduling, "scheduling.x-k8s.io", "podgroups", []string{"v1alpha1"}},
	{render.Kueue, "kueue.x-k8s.io", "workloads", []string{"v1beta2", "v1beta1"}},
}

// Served are those that an API server has, the one that is taken first before the others.
func Served(s cluster.Served) (out []Gang) {
	for _, g := range gangKinds {
		if k, ok := s.Find(g.group, g.name, g.versions...); ok {
			out = append(out, Gang{g.kind, k.Resource})
		}
	}
	return out
}

// Choose returns what begins the pods of a pool together. false: nothing, or Coxswain binds.
func Choose(t *settings.Terms, all []Gang) (Gang, bool) {
	if t.Placed {
		return Gang{}, false
	}
	i := slices.IndexFunc(all, func(g Gang) bool { return (t.Gang == "" || g.Kind == t.Gang) && MissingSettings(t, g.Kind) == "" })
	if i < 0 {
		return Gang{}, false
	}
	return all[i], true
}

// MissingSettings is what the settings of a pool lack for a kind of gang to be used, as they are written;
// empty: nothing. Kueue is never used because it is there: it has to be named.
func MissingSettings(t *settings.Terms, k render.GangKind) string {
	var missing []string
	want := func(has bool, setting string) {
		if !has {
			missing = append(missing, setting)
		}
	}
	switch k {
	case render.KAI:
		want(t.Queue != "", "queue=NAME")
	case render.Coscheduling:
		want(t.Scheduler != "", "scheduler=NAME")
	case render.Kueue:
		want(t.Gang == render.Kueue, "gang=kueue")
		want(t.Approximate, "approximate=true")
		want(t.Queue != "", "queue=NAME")
	}
	return strings.Join(missing, ", ")
}

// OfKind is a gang of a kind in the version that is preferred, whether a cluster has it or
// not.
func OfKind(kind render.GangKind) (Gang, bool) {
	for _, g := range gangKinds {
		if g.kind == kind {
			return Gang{kind, cluster.Resource{Group: g.group, Version: g.versions[0], Name: g.name}}, true
		}
	}
	return Gang{}, false
}

// Kinds are the kinds that are known.
func Kinds() (out []string) {
	for _, g := range gangKinds {
		out = append(out, string(g.kind))
	}
	return out
}

// UnknownVersions are those that are served in versions that are not known.
func UnknownVersions(s cluster.Served) (out []string) {
	for _, g := range gangKinds {
		k, ok := s.Find(g.group, g.name)
		if _, known := s.Find(g.group, g.name, g.versions...); ok && !known && !slices.Contains(out, k.String()) {
			out = append(out, k.String()+" "+k.Version)
		}
	}
	return out
}
