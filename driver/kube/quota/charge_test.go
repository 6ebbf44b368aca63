package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func amounts(t *testing.T, text string) corev1.ResourceList {
	t.Helper()
	out := corev1.ResourceList{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		q, err := resource.ParseQuantity(value)
		if err != nil {
			t.Fatal(err)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

// podWith has an initial container and another, which ask for this and have that as limits.
func podWith(ask, limit corev1.ResourceList) *corev1.Pod {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: ask, Limits: limit}}
	return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{c}, Containers: []corev1.Container{c}}}
}

// TestQuotas: what a quota has no room for. What the API server itself says of such pods,
// TestTenancy shows.
func TestQuotas(t *testing.T) {
	same := amounts(t, "cpu=2 memory=1Gi nvidia.com/gpu=4")
	two := []*corev1.Pod{podWith(same, same), podWith(same, same)}
	for name, tt := range map[string]struct {
		hard, used, want string
		others           []*corev1.Pod
		scope            corev1.ResourceQuotaScope
	}{
		"room":                  {hard: "pods=2 limits.cpu=4 cpu=4 requests.nvidia.com/gpu=8", used: "pods=0"},
		"GPUs":                  {hard: "requests.nvidia.com/gpu=8", used: "requests.nvidia.com/gpu=1", want: "requests.nvidia.com/gpu: 8 asked for, 7 of 8 left"},
		"one that is coming":    {hard: "pods=3", used: "pods=0", others: two, want: "pods: 2 asked for, 1 of 3 left"},
		"more than all":         {hard: "count/pods=1", used: "count/pods=0", want: "count/pods: 2 asked for, which is more than all of it, 1; it cannot begin as it is: submit it with less, or have an administrator raise the quota"},
		"made smaller":          {hard: "memory=2Gi", used: "memory=5Gi", want: "memory: 2Gi asked for, nothing of 2Gi left"},
		"of others' objects":    {hard: "configmaps=0", used: "configmaps=9"},
		"not of ours, by scope": {hard: "pods=1", used: "pods=1", scope: corev1.ResourceQuotaScopeBestEffort},
		"ours, by scope":        {hard: "pods=2", used: "pods=1", scope: corev1.ResourceQuotaScopeNotTerminating, want: "pods: 2 asked for, 1 of 2 left"},
		"a scope nobody knows":  {hard: "pods=1", used: "pods=1", scope: "Tuesdays"},
	} {
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts(t, tt.hard)}, Status: corev1.ResourceQuotaStatus{Hard: amounts(t, tt.hard), Used: amounts(t, tt.used)}}
		if tt.scope != "" {
			q.Spec.Scopes = []corev1.ResourceQuotaScope{tt.scope}
		}
		of := map[string]*corev1.ResourceQuota{"": q}
		if got := shortfall(q, chargeAll(of, two)[""], chargeAll(of, tt.others)[""]); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts(t, "pods=9")}}
	if got := shortfall(q, chargeAll(map[string]*corev1.ResourceQuota{"": q}, two)[""], nil); !strings.Contains(got, "not counted yet") {
		t.Errorf("%q", got)
	}
	q.Name, q.Spec.Hard = "team", amounts(t, "limits.memory=1Gi pods=3")
	if got := missingRequest(q, podWith(amounts(t, "cpu=1"), amounts(t, "cpu=1"))); !strings.Contains(got, "quota team wants every pod to say its limits.memory") {
		t.Errorf("%q", got)
	}
	if got := missingRequest(q, two[0]); got != "" {
		t.Errorf("%q", got)
	}
}

// TestLimitRanges: what a limit range fills in, and what it refuses.
func TestLimitRanges(t *testing.T) {
	item := func(kind corev1.LimitType, least, most, def, ratio string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: kind, Min: amounts(t, least), Max: amounts(t, most), Default: amounts(t, def), DefaultRequest: amounts(t, def), MaxLimitRequestRatio: amounts(t, ratio),
		}}}}
	}
	cpu := amounts(t, "cpu=2")
	for name, tt := range map[string]struct {
		r    *corev1.LimitRange
		want string
	}{
		"within":              {item("Container", "cpu=1", "cpu=2", "", "cpu=1"), ""},
		"too much":            {item("Container", "", "cpu=1500m", "", ""), "limit range r: a container may have at most cpu=1500m, and the job's has 2"},
		"too little":          {item("Pod", "cpu=3", "", "", ""), "limit range r: a pod has to have at least cpu=3, and the job's has 2"},
		"a default":           {item("Container", "memory=1Gi", "memory=2Gi", "memory=1Gi", ""), ""},
		"nothing said":        {item("Pod", "", "memory=2Gi", "", ""), "limit range r: a pod may have at most memory=2Gi, and the job does not say how much it needs"},
		"nothing said, ratio": {item("Container", "", "", "", "memory=2"), "limit range r: a container may have a limit of memory of at most 2 times what it asks for, and the job's asks for 0 with a limit of 0"},
		"of claims, not pods": {item("PersistentVolumeClaim", "storage=1Gi", "", "", ""), ""},
	} {
		p := withLimitRangeDefaults(podWith(cpu, cpu), []*corev1.LimitRange{tt.r})
		if got := limitRangeViolation(tt.r, p); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
