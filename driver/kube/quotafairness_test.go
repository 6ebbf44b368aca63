package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-sched/coxswain/driver/kube/quota"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// cpuLimits is an amount of CPU as quotas of limits name it.
func cpuLimits(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse(cpu)}
}

// TestAdmit: one after the other the launches of TestTenancy's turns, with what the cluster counts
// written by hand.
//
// Seen to fail with: nobody waiting for those that come first; those that were let in remembered; those
// that one keeps which comes first said to have room, or never again.
func TestAdmit(t *testing.T) {
	team := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: cpuLimits("400m")}, Status: corev1.ResourceQuotaStatus{Hard: cpuLimits("400m"), Used: cpuLimits("0")}}
	team.Name = "team"
	tn := quota.New("turns")
	tn.SetQuotas(map[string]*corev1.ResourceQuota{"team": team})
	e := &Engine{cfg: Config{Terms: settings.Terms{Namespace: "turns", Placed: true, Image: "i", AgentImage: "a"}}, log: &journal{server: "abcdef"}, tenants: map[string]*quota.Namespace{"turns": tn}, attempts: map[engine.Ref]*attempt{}, room: make(chan struct{}, 1)}
	try := func(id job.ID, cpu int, ahead ...job.ID) string {
		t.Helper()
		take := amount.Vector{CPU: amount.Amount(cpu)}
		o := &order{
			Job:    &job.Job{ID: id, Spec: &job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}, Owner: job.Owner{UID: 1, GID: 1}}},
			Claims: []fleet.Claim{{Node: "n1", Tasks: 1, Take: take}}, Nodes: []render.Node{{Node: fleet.Node{Name: "n1", Capacity: take}}}, Namespace: "turns",
		}
		ref := engine.Ref{Allocation: uint64(id), Attempt: 1}
		if err := e.reserveQuota(ref, o, ahead); err != nil {
			if fault.KindOf(err) != fault.Exhausted {
				t.Fatal(err)
			}
			return err.Error()
		}
		e.attempts[ref] = &attempt{ref: ref, namespace: "turns", order: o}
		return ""
	}
	used := func(cpu string) { // and all that was on its way is counted
		for id := range job.ID(9) {
			tn.Counted(engine.Ref{Allocation: uint64(id), Attempt: 1}, nil)
		}
		team.Status.Used = cpuLimits(cpu)
	}
	is := func(got, want string) {
		t.Helper()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	later := time.Duration(0)
	room := func(want ...job.ID) {
		t.Helper()
		got, any := e.jobsWithRoom(time.Now().Add(later))
		if slices.Sort(got); any || !slices.Equal(got, want) {
			t.Fatalf("there is room for %v, %v; want %v", got, any, want)
		}
	}
	is(try(1, 200), "")
	used("200m")
	is(try(2, 400), "quota team of namespace turns: limits.cpu: 400m asked for, 200m of 400m left")
	is(try(3, 100, 2), "quota team of namespace turns: limits.cpu: 100m asked for, and job 2 comes first, which waits for 400m")
	room() // what is left job 3 may not have …
	later = time.Minute
	room(3) // … unless job 2 is not launched any more
	later = 0
	is(try(4, 100), "")
	used("300m")
	delete(e.attempts, engine.Ref{Allocation: 4, Attempt: 1})
	delete(e.attempts, engine.Ref{Allocation: 1, Attempt: 1})
	used("0")
	room(2)
	is(try(3, 100, 2), "and job 2 comes first")
	is(try(2, 400), "")
	is(try(3, 100), "limits.cpu: 100m asked for, 0 of 400m left")
	room()
	is(try(5, 100, 2, 3), "0 of 400m left")
	used("0") // none of them was told that another comes first
	room(3, 5)
	is(try(5, 100, 2, 3), "") // there is enough for both
	is(try(3, 100), "")
	room()
}

// TestWhoWaitsNoLonger: one that was told to wait, and is not launched any more, is forgotten, and
// one that begins because the quotas are gone at once: nobody waits who keeps all others tried.
//
// Seen to fail with: nobody forgotten; those that begin without quotas not forgotten.
func TestWhoWaitsNoLonger(t *testing.T) {
	team := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: cpuLimits("1")}, Status: corev1.ResourceQuotaStatus{Hard: cpuLimits("1"), Used: cpuLimits("1")}}
	tn := quota.New("turns")
	tn.SetQuotas(map[string]*corev1.ResourceQuota{"team": team})
	e := &Engine{cfg: Config{Terms: settings.Terms{Namespace: "turns", Placed: true, Image: "i", AgentImage: "a"}}, log: &journal{server: "abcdef"}, tenants: map[string]*quota.Namespace{"turns": tn}, attempts: map[engine.Ref]*attempt{}, room: make(chan struct{}, 1)}
	try := func(id job.ID) error {
		take := amount.Vector{CPU: 1000}
		return e.reserveQuota(engine.Ref{Allocation: uint64(id), Attempt: 1}, &order{
			Job:    &job.Job{ID: id, Spec: &job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}, Owner: job.Owner{UID: 1, GID: 1}}},
			Claims: []fleet.Claim{{Node: "n1", Tasks: 1, Take: take}}, Nodes: []render.Node{{Node: fleet.Node{Name: "n1", Capacity: take}}}, Namespace: "turns",
		}, nil)
	}
	for id := range job.ID(2) {
		if err := try(id + 1); fault.KindOf(err) != fault.Exhausted {
			t.Fatal(err)
		}
	}
	tn.SetQuotas(map[string]*corev1.ResourceQuota{})
	if err := try(1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		gone time.Duration
		any  bool
	}{{0, true}, {14 * time.Minute, true}, {16 * time.Minute, false}} {
		if jobs, any := e.jobsWithRoom(time.Now().Add(tt.gone)); any != tt.any || slices.Contains(jobs, 1) {
			t.Errorf("%s later there may be room for %v, for anybody: %v", tt.gone, jobs, any)
		}
	}
}
