package quota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestTurns: who may take of a quota while others wait for it that come before him. The cluster's
// own counting, and who comes before whom, are TestTenancy's and control's.
//
// Seen to fail with: time limits not compared; what the first waiters want not added up.
func TestTurns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	in := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return now.Add(d)
	}
	for name, tt := range map[string]struct {
		used, coming string
		ours         map[string]time.Duration // what they hold, and when they end; 0: nobody knows
		before       []string
		want         string
		lasts        time.Duration // 0: nobody knows
		says         string
	}{
		"nobody waits":                {used: "cpu=6", want: "cpu=2"},
		"room for both":               {used: "cpu=3 pods=7", before: []string{"cpu=3 pods=1"}, want: "cpu=2 pods=1"},
		"another amount":              {used: "cpu=6", before: []string{"cpu=4"}, want: "memory=1Gi"},
		"what is left is for another": {used: "cpu=6", before: []string{"cpu=4"}, want: "cpu=1", says: "cpu: 1 asked for, and job 11 comes first, which waits for 4"},
		"what is on its way counts":   {used: "cpu=2", coming: "cpu=2", before: []string{"cpu=3"}, want: "cpu=2", says: "cpu: 2 asked for, and job 11 comes first, which waits for 3"},
		"for the second of two":       {used: "cpu=1", before: []string{"cpu=3", "cpu=3"}, want: "cpu=2", says: "cpu: 2 asked for, and job 12 comes first, which waits for 3"},
		"ends in time": {
			used: "cpu=6", ours: map[string]time.Duration{"cpu=3": time.Hour, "cpu=2": 2 * time.Hour},
			before: []string{"cpu=6"}, want: "cpu=2", lasts: 2 * time.Hour,
		},
		"ends too late": {
			used: "cpu=6", ours: map[string]time.Duration{"cpu=4": time.Hour, "cpu=2": 3 * time.Hour},
			before: []string{"cpu=6"}, want: "cpu=2", lasts: 2 * time.Hour, says: "cpu: 2 asked for, and job 11 comes first, which waits for 6",
		},
		"may never end": {
			used: "cpu=6", ours: map[string]time.Duration{"cpu=4": time.Hour},
			before: []string{"cpu=4"}, want: "cpu=2", says: "cpu: 2 asked for, and job 11 comes first, which waits for 4",
		},
		"nobody knows when there is room": {
			used: "cpu=6", ours: map[string]time.Duration{"cpu=6": 0},
			before: []string{"cpu=4"}, want: "cpu=2", lasts: time.Minute, says: "cpu: 2 asked for, and job 11 comes first, which waits for 4",
		},
	} {
		hard := amounts(t, "cpu=8 memory=16Gi pods=9")
		v := &view{ResourceQuota: &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: amounts(t, tt.used)}}, coming: amounts(t, tt.coming)}
		v.Name = "team"
		for held, ends := range tt.ours {
			v.ours = append(v.ours, holding{amounts(t, held), in(ends)})
		}
		var before []*waiter
		for i, w := range tt.before {
			before = append(before, &waiter{name: []string{"11", "12"}[i], want: map[string]corev1.ResourceList{"team": amounts(t, w)}})
		}
		if _, got := v.mustYieldTo(amounts(t, tt.want), before, now, in(tt.lasts)); got != tt.says {
			t.Errorf("%s: %q, want %q", name, got, tt.says)
		}
	}
}

// TestHopeless: nobody waits for a job for which there is no room whatever of ours ends, once that
// is so for a while; as soon as there could be, others wait for it again.
//
// Seen to fail with: nobody ever hopeless; hopeless at once.
func TestHopeless(t *testing.T) {
	hard := amounts(t, "requests.nvidia.com/gpu=8")
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: amounts(t, "requests.nvidia.com/gpu=6")}}
	v := &view{ResourceQuota: quota, ours: []holding{{counts: amounts(t, "requests.nvidia.com/gpu=4")}}}
	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		want string
		gone time.Duration
		now  bool
	}{
		{"6", 0, true}, {"6", time.Hour, true}, // 2 are others'
		{"7", 0, true}, {"7", hopelessAfter - 1, true}, {"7", hopelessAfter, false}, {"7", time.Hour, false},
	} {
		w := &waiter{want: map[string]corev1.ResourceList{"team": amounts(t, "requests.nvidia.com/gpu="+tt.want)}}
		at := &Namespace{waiters: map[job.ID]*waiter{7: w}}
		views := map[string]*view{"team": v}
		at.jobsAhead(views, 8, []job.ID{6, 7}, now)
		got := at.jobsAhead(views, 8, []job.ID{6, 7}, now.Add(tt.gone))
		if (len(got) == 1) != tt.now {
			t.Errorf("one that wants %s, %s later: others wait for %d", tt.want, tt.gone, len(got))
		}
		if own := at.jobsAhead(views, 7, []job.ID{7}, now); len(own) > 0 {
			t.Errorf("it waits for itself")
		}
	}
}
