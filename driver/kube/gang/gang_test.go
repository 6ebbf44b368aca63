package gang

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// every is a cluster that has all gangs.
func every() cluster.Served {
	var out cluster.Served
	for _, g := range gangKinds {
		out = append(out, cluster.Kind{Resource: cluster.Resource{Group: g.group, Version: g.versions[0], Name: g.name}})
	}
	return out
}

// TestChoose: what is taken is what the settings let be used; Kueue never by discovery.
func TestChoose(t *testing.T) {
	all := Served(every())
	for _, c := range []struct {
		terms settings.Terms
		of    []Gang
		want  render.GangKind
		wants string // of the kind that is set
	}{
		{settings.Terms{}, all, render.Native, ""},
		{settings.Terms{Placed: true}, all, "", ""},
		{settings.Terms{}, all[1:], render.Volcano, ""},
		{settings.Terms{}, all[2:], "", ""},                                           // KAI without a queue, coscheduling without a scheduler, Kueue
		{settings.Terms{Queue: "q"}, all[2:], render.KAI, ""},                         //
		{settings.Terms{Scheduler: "s"}, all[2:], render.Coscheduling, ""},            //
		{settings.Terms{Queue: "q", Approximate: true}, all[4:], "", ""},              // not named
		{settings.Terms{Gang: render.Kueue, Queue: "q"}, all, "", "approximate=true"}, // no consent
		{settings.Terms{Gang: render.Kueue, Approximate: true}, all, "", "queue=NAME"},
		{settings.Terms{Gang: render.Kueue, Approximate: true, Queue: "q"}, all, render.Kueue, ""},
		{settings.Terms{Gang: render.KAI}, all, "", "queue=NAME"},
		{settings.Terms{Gang: render.Volcano}, all[:1], "", ""},
	} {
		g, ok := Choose(&c.terms, c.of)
		if g.Kind != c.want || ok != (c.want != "") {
			t.Errorf("%+v of %v: %v", c.terms, c.of, g)
		}
		if w := MissingSettings(&c.terms, c.terms.Gang); w != c.wants {
			t.Errorf("%+v wants %q", c.terms, w)
		}
	}
}

// TestGangWords: why a gang waits, from what its object says.
func TestGangWords(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, text string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: text, Reason: "R"}
	}
	for _, c := range []struct {
		kind  render.GangKind
		phase string
		has   []metav1.Condition
		want  string
	}{
		{render.Volcano, "", nil, "waits in Volcano's queue q, which does not take it in yet: it has no room, or is not open"},
		{render.Volcano, "Pending", []metav1.Condition{is("Unschedulable", "True", "queue resource quota insufficient")}, "waits in Volcano's queue q, which does not take it in yet: queue resource quota insufficient"},
		{render.Volcano, "Inqueue", nil, ""},
		{render.Volcano, "Inqueue", []metav1.Condition{is("Unschedulable", "True", "old"), is("Unschedulable", "True", "5/5 tasks in gang unschedulable")}, "Volcano: 5/5 tasks in gang unschedulable"},
		{render.Volcano, "Running", []metav1.Condition{is("Unschedulable", "True", "old")}, ""},
		{render.KAI, "", nil, ""},
		{render.KAI, "", []metav1.Condition{is("UnschedulableOnNodePool", "True", "no node has 8 GPUs")}, "waits in KAI's queue q: no node has 8 GPUs"},
		{render.Kueue, "", nil, "waits in Kueue's queue q for quota: it was not looked at yet"},
		{render.Kueue, "", []metav1.Condition{is("QuotaReserved", "False", "2 more needed")}, "waits in Kueue's queue q for quota: 2 more needed"},
		{render.Kueue, "", []metav1.Condition{is("QuotaReserved", "True", "")}, "has quota of Kueue's queue q, and waits for its admission checks: they have not answered"},
		{render.Kueue, "", []metav1.Condition{is("QuotaReserved", "True", ""), is("Admitted", "True", "")}, ""},
	} {
		var o Object
		o.Status.Phase, o.Status.Conditions, o.Status.Scheduling = c.phase, c.has, c.has
		if got := WaitReason(c.kind, "q", &o); got != c.want {
			t.Errorf("%s %q %v: %q", c.kind, c.phase, c.has, got)
		}
	}
}

// TestGangs: which are found, in which version, and which one is taken.
func TestGangs(t *testing.T) {
	kind := func(group, version, name string) cluster.Kind {
		return cluster.Kind{Resource: cluster.Resource{Group: group, Version: version, Name: name}}
	}
	served := cluster.Served{
		kind("kueue.x-k8s.io", "v1beta1", "workloads"), kind("kueue.x-k8s.io", "v1beta2", "workloads"),
		kind("scheduling.run.ai", "v3", "podgroups"), kind("scheduling.volcano.sh", "v1beta1", "podgroups"),
		kind("scheduling.k8s.io", "v1alpha2", "podgroups"), kind("scheduling.k8s.io", "v1beta1", "podgroups"), kind("scheduling.k8s.io", "v1", "priorityclasses"),
	}
	var got []string
	for _, g := range Served(served) {
		got = append(got, string(g.Kind)+" "+g.Resource.Version+" "+string(g.Ability()))
	}
	if d := cmp.Diff([]string{"native v1beta1 strict", "volcano v1beta1 strict", "kueue v1beta2 approximate"}, got); d != "" {
		t.Error(d)
	}
	if got := UnknownVersions(served); !slices.Equal(got, []string{"podgroups.scheduling.run.ai v3"}) {
		t.Errorf("%q", got)
	}
	for _, x := range []struct {
		terms settings.Terms
		want  render.GangKind
	}{{settings.Terms{}, render.Native}, {settings.Terms{Gang: render.Volcano}, render.Volcano}, {settings.Terms{Gang: render.KAI}, ""}, {settings.Terms{Placed: true}, ""}} {
		if g, ok := Choose(&x.terms, Served(served)); g.Kind != x.want || ok != (x.want != "") {
			t.Errorf("%+v: %+v", x.terms, g)
		}
	}
}
