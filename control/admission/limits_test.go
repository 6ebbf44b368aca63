package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func hours(n int) *account.Duration {
	d := account.Duration(n) * account.Duration(time.Hour)
	return &d
}

var limited = &account.Policy{
	Accounts: []account.Account{{Name: "lab", Limits: account.Limits{Wall: hours(8), Group: account.TRES{"cpu": resource.CPUs(16)}}}},
	QOS: []account.QOS{
		{Name: "short", Limits: account.Limits{Wall: hours(1)}},
		{Name: "strict", Flags: []string{"deny_on_limit"}, Limits: account.Limits{Job: account.TRES{"node": 2}}},
		{Name: "long", Limits: account.Limits{Wall: hours(30)}, Flags: []string{"partition_time_limit"}},
	},
	Partitions: []account.Partition{{Name: "cpu", MaxTime: *hours(4)}},
	Licenses:   []account.License{{Name: "matlab", Count: 2}},
}

// TestLimitsAtTheDoor: what one job may not have is refused with the limit, whose it is
// and what to do; a job without a time limit gets the longest that it may have.
func TestLimitsAtTheDoor(t *testing.T) {
	r := (&Rules{}).Under(limited)
	for _, tt := range []struct {
		name        string
		change      func(*job.Spec)
		time        time.Duration
		wrong, also string
	}{
		{name: "the account's", time: 8 * time.Hour},
		{name: "the QOS's is nearer", change: func(s *job.Spec) { s.QOS = "short" }, time: time.Hour},
		{name: "the partition's holds beside it", change: func(s *job.Spec) { s.Partitions = []string{"cpu"} }, time: 4 * time.Hour},
		{name: "but for a QOS that lifts it", change: func(s *job.Spec) { s.Partitions, s.QOS = []string{"cpu"}, "long" }, time: 30 * time.Hour},
		{name: "too long", change: func(s *job.Spec) { s.TimeLimit = 9 * time.Hour }, wrong: "one job of account lab may take at most 08:00:00 (AssocMaxWallDurationPerJobLimit)", also: "ask for less time"},
		{name: "too long, less will do", change: func(s *job.Spec) { s.TimeLimit, s.TimeMin = 9*time.Hour, time.Hour }, time: 8 * time.Hour},
		{name: "a QOS that refuses", change: func(s *job.Spec) { s.QOS, s.Groups[0].Nodes = "strict", job.Range{Min: 3, Max: 3} }, wrong: "QOSMaxNodePerJobLimit", also: "ask for less"},
		{name: "a group limit is one of a job for it", change: func(s *job.Spec) { s.QOS, s.Groups[0].PerNode.CPU = "strict", resource.CPUs(17) }, wrong: "AssocGrpCpuLimit"},
		{name: "others wait", change: func(s *job.Spec) { s.Groups[0].PerNode.CPU = resource.CPUs(17) }, time: 8 * time.Hour},
		{name: "licences", change: func(s *job.Spec) { s.Licenses = "matlab:2" }, time: 8 * time.Hour},
		{name: "more than there are", change: func(s *job.Spec) { s.Licenses = "matlab:3" }, wrong: "the site has 2 of matlab", also: "at most"},
		{name: "unknown", change: func(s *job.Spec) { s.Licenses = "fluent" }, wrong: "there is no licence fluent", also: "matlab"},
		{name: "alternatives of which one is not known", change: func(s *job.Spec) { s.Licenses = "matlab|fluent" }, wrong: "there is no licence fluent"},
		{name: "alternatives of which one would do", change: func(s *job.Spec) { s.Licenses = "matlab:3|matlab:2" }, time: 8 * time.Hour},
		{name: "alternatives of which none would do", change: func(s *job.Spec) { s.Licenses = "matlab:4|matlab:3" }, wrong: "the site has 2 of matlab"},
		{name: "all and one of them", change: func(s *job.Spec) { s.Licenses = "matlab,matlab|matlab" }, wrong: "asks for all (,) and for one of them (|)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &job.Spec{Account: "lab", Owner: job.Owner{User: "anna"}, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}}}}
			if tt.change != nil {
				tt.change(s)
			}
			switch err := r.Apply(s); {
			case tt.wrong == "" && (err != nil || s.TimeLimit != tt.time):
				t.Errorf("%v, limit %s, want %s", err, s.TimeLimit, tt.time)
			case tt.wrong != "" && (err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(fault.Remedy(err), tt.also) || fault.Remedy(err) == ""):
				t.Errorf("%v: %v, %s; want %s, %s", fault.KindOf(err), err, fault.Remedy(err), tt.wrong, tt.also)
			}
		})
	}
	s := &job.Spec{Licenses: "matlab"}
	if err := (&Rules{}).Apply(s); err == nil || !strings.Contains(err.Error(), "counts no licences") {
		t.Errorf("a site without licences: %v", err)
	}
}
