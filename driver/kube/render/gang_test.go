package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestGangs: the names, marks and specs by which each kind knows a gang, as its own sources have
// them (Volcano 1.14 apis/scheduling/v1beta1, KAI 0.13 pkg/apis/scheduling/v2alpha2 and
// pkg/podgrouper, k8s.io/api scheduling/v1alpha2 of 1.36 and v1beta1 of 1.37,
// scheduler-plugins apis/scheduling/v1alpha1, Kueue 0.19 jobs/pod/constants).
func TestGangs(t *testing.T) {
	all := `"minResources":{"cpu":"2","memory":"2Gi","nvidia.com/gpu":"2"}`
	for _, c := range []struct {
		kind                     GangKind
		version                  string // of its API, where that makes a difference
		scheduler, group         string
		labels, notes            map[string]string
		named                    string // the scheduler, where the settings name one
		noOwner, schedulingGroup bool
	}{
		{kind: "", scheduler: "", group: ""},
		{kind: Native, version: "v1alpha2", group: `{"schedulingPolicy":{"gang":{"minCount":2}},"disruptionMode":"PodGroup","priorityClassName":"jobs"}`, schedulingGroup: true},
		{kind: Native, version: "v1beta1", group: `{"schedulingPolicy":{"gang":{"minCount":2}},"disruptionMode":{"all":{}},"priorityClassName":"jobs"}`, schedulingGroup: true},
		{
			kind: Volcano, scheduler: "volcano", group: `{"minMember":2,` + all + `,"queue":"q","priorityClassName":"jobs"}`,
			notes: map[string]string{"scheduling.k8s.io/group-name": "cox-abc123-12-3"},
		},
		{
			kind: KAI, scheduler: "kai-scheduler", group: `{"minMember":2,"queue":"q","priorityClassName":"jobs"}`, noOwner: true,
			labels: map[string]string{"kai.scheduler/queue": "q"},
			notes:  map[string]string{"pod-group-name": "cox-abc123-12-3", Root: "uid-1"},
		},
		{
			kind: Coscheduling, scheduler: "plugins", named: "plugins", group: `{"minMember":2,` + all + `}`,
			labels: map[string]string{"scheduling.x-k8s.io/pod-group": "cox-abc123-12-3"},
		},
		{
			kind: Kueue, labels: map[string]string{"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "cox-abc123-12-3"},
			notes: map[string]string{
				"kueue.x-k8s.io/pod-group-total-count": "2", "kueue.x-k8s.io/retriable-in-group": "false",
				"kueue.x-k8s.io/pod-group-pod-index-label": "coxswain.sh/index",
			},
		},
	} {
		t.Run(string(c.kind)+c.version, func(t *testing.T) {
			a := sample()
			a.Placed, a.Gang, a.Queue, a.Scheduler = false, c.kind, "q", c.named
			for i, p := range a.Pods("uid-1") {
				if p.Spec.SchedulerName != c.scheduler || (p.Spec.SchedulingGroup != nil) != c.schedulingGroup {
					t.Errorf("scheduler %q, group %v", p.Spec.SchedulerName, p.Spec.SchedulingGroup)
				}
				if d := cmp.Diff([]corev1.PodSchedulingGate{{Name: Gate}}, p.Spec.SchedulingGates); d != "" {
					t.Errorf("gates: %s", d)
				}
				if (len(p.OwnerReferences) == 0) != c.noOwner {
					t.Errorf("owners: %v", p.OwnerReferences)
				}
				if d := cmp.Diff(c.notes, p.Annotations); d != "" {
					t.Errorf("annotations: %s", d)
				}
				for k := range a.objectLabels() {
					delete(p.Labels, k)
				}
				delete(p.Labels, LabelIndex)
				delete(p.Labels, LabelPlugged)
				want := c.labels
				if want == nil {
					want = map[string]string{}
				}
				if d := cmp.Diff(want, p.Labels); d != "" {
					t.Errorf("labels of pod %d: %s", i, d)
				}
			}
			g := a.Group("uid-1", c.version)
			if g == nil {
				if c.group != "" {
					t.Error("there is no group")
				}
				return
			}
			text, err := json.Marshal(g.Spec)
			if err != nil || string(text) != c.group {
				t.Errorf("group: %s %v", text, err)
			}
			if g.Name != "cox-abc123-12-3" || g.Namespace != "jobs" || g.Kind != "PodGroup" || g.OwnerReferences[0].UID != "uid-1" || g.Labels[LabelServer] != "abc123" {
				t.Errorf("%+v", g)
			}
			if c.kind == KAI && g.Labels["kai.scheduler/queue"] != "q" {
				t.Errorf("labels of the group: %v", g.Labels)
			}
		})
	}
}
