package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
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
	all := Gangs(every())
	for _, c := range []struct {
		terms settings.Terms
		of    []Gang
		want  GangKind
		wants string // of the kind that is set
	}{
		{settings.Terms{}, all, Native, ""},
		{settings.Terms{Placed: true}, all, "", ""},
		{settings.Terms{}, all[1:], Volcano, ""},
		{settings.Terms{}, all[2:], "", ""},                                    // KAI without a queue, coscheduling without a scheduler, Kueue
		{settings.Terms{Queue: "q"}, all[2:], KAI, ""},                         //
		{settings.Terms{Scheduler: "s"}, all[2:], Coscheduling, ""},            //
		{settings.Terms{Queue: "q", Approximate: true}, all[4:], "", ""},       // not named
		{settings.Terms{Gang: Kueue, Queue: "q"}, all, "", "approximate=true"}, // no consent
		{settings.Terms{Gang: Kueue, Approximate: true}, all, "", "queue=NAME"},
		{settings.Terms{Gang: Kueue, Approximate: true, Queue: "q"}, all, Kueue, ""},
		{settings.Terms{Gang: KAI}, all, "", "queue=NAME"},
		{settings.Terms{Gang: Volcano}, all[:1], "", ""},
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
		kind  GangKind
		phase string
		has   []metav1.Condition
		want  string
	}{
		{Volcano, "", nil, "waits in Volcano's queue q, which does not take it in yet: it has no room, or is not open"},
		{Volcano, "Pending", []metav1.Condition{is("Unschedulable", "True", "queue resource quota insufficient")}, "waits in Volcano's queue q, which does not take it in yet: queue resource quota insufficient"},
		{Volcano, "Inqueue", nil, ""},
		{Volcano, "Inqueue", []metav1.Condition{is("Unschedulable", "True", "old"), is("Unschedulable", "True", "5/5 tasks in gang unschedulable")}, "Volcano: 5/5 tasks in gang unschedulable"},
		{Volcano, "Running", []metav1.Condition{is("Unschedulable", "True", "old")}, ""},
		{KAI, "", nil, ""},
		{KAI, "", []metav1.Condition{is("UnschedulableOnNodePool", "True", "no node has 8 GPUs")}, "waits in KAI's queue q: no node has 8 GPUs"},
		{Kueue, "", nil, "waits in Kueue's queue q for quota: it was not looked at yet"},
		{Kueue, "", []metav1.Condition{is("QuotaReserved", "False", "2 more needed")}, "waits in Kueue's queue q for quota: 2 more needed"},
		{Kueue, "", []metav1.Condition{is("QuotaReserved", "True", "")}, "has quota of Kueue's queue q, and waits for its admission checks: they have not answered"},
		{Kueue, "", []metav1.Condition{is("QuotaReserved", "True", ""), is("Admitted", "True", "")}, ""},
	} {
		var o gangObject
		o.Status.Phase, o.Status.Conditions, o.Status.Scheduling = c.phase, c.has, c.has
		if got := gangWords(c.kind, "q", &o); got != c.want {
			t.Errorf("%s %q %v: %q", c.kind, c.phase, c.has, got)
		}
	}
}
