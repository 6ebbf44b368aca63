package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var rules = Rules{
	Partitions: []Partition{
		{Name: "cpu", TimeLimit: 0},
		{Name: "gpu", Default: true, TimeLimit: 48 * time.Hour, DefaultTime: time.Hour},
		{Name: "short", TimeLimit: 30 * time.Minute},
	},
	Accounts: []Account{{"nlp", []string{"anna", "ben"}}, {"vision", []string{"anna"}}},
	MaxArray: 1000,
}

func spec(user string, change func(*job.Spec)) *job.Spec {
	s := &job.Spec{Owner: job.Owner{User: user}}
	if change != nil {
		change(s)
	}
	return s
}

func TestWhatIsLeftOpenIsFilledIn(t *testing.T) {
	tests := []struct {
		name      string
		in        *job.Spec
		partition string
		account   string
		limit     time.Duration
	}{
		{"nothing asked", spec("anna", nil), "gpu", "nlp", time.Hour},
		{"no limit at all", spec("ben", func(s *job.Spec) { s.Partitions = []string{"cpu"} }), "cpu", "nlp", 0},
		{"the partition's longest", spec("ben", func(s *job.Spec) { s.Partitions = []string{"short"} }), "short", "nlp", 30 * time.Minute},
		{"asked for", spec("anna", func(s *job.Spec) { s.Account, s.TimeLimit = "vision", 48*time.Hour }), "gpu", "vision", 48 * time.Hour},
		{"the longest of several", spec("anna", func(s *job.Spec) {
			s.Partitions, s.TimeLimit = []string{"short", "gpu"}, 2*time.Hour
		}), "short", "nlp", 2 * time.Hour},
		{"less will do", spec("anna", func(s *job.Spec) { s.TimeLimit, s.TimeMin = 72*time.Hour, time.Hour }), "gpu", "nlp", 48 * time.Hour},
	}
	for _, tt := range tests {
		if err := rules.Apply(tt.in); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.in.Partitions[0] != tt.partition || tt.in.Account != tt.account || tt.in.TimeLimit != tt.limit {
			t.Errorf("%s: got %v %s %s, want %s %s %s", tt.name, tt.in.Partitions, tt.in.Account, tt.in.TimeLimit, tt.partition, tt.account, tt.limit)
		}
	}
}

func TestWhatMayNotBeAskedFor(t *testing.T) {
	tests := []struct {
		in           *job.Spec
		kind         fault.Kind
		text, remedy string
	}{
		{spec("anna", func(s *job.Spec) { s.Partitions = []string{"gpux"} }), fault.Invalid, "--partition=gpux: there is no such partition", "partitions here: cpu, gpu, short"},
		{spec("ben", func(s *job.Spec) { s.Account = "vision" }), fault.Permission, "ben may not use it", "your accounts: nlp"},
		{spec("ben", func(s *job.Spec) { s.Account = "vison" }), fault.Invalid, "no such account", "your accounts: nlp"},
		{spec("eve", nil), fault.Permission, "eve has no account here", "accounts in cox.yaml"},
		{spec("anna", func(s *job.Spec) { s.TimeLimit = 72 * time.Hour }), fault.Invalid, "--time=3-00:00:00: partition gpu allows at most 2-00:00:00", "ask for less"},
		{spec("anna", func(s *job.Spec) {
			s.Array = &job.ArraySpec{Text: "0-1000", Indices: make([]uint32, 1001)}
		}), fault.Invalid, "1001 tasks are more", "split it"},
	}
	for _, tt := range tests {
		err := rules.Apply(tt.in)
		if err == nil || fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || !strings.Contains(fault.Remedy(err), tt.remedy) {
			t.Errorf("got %v (%s; %s), want %s: %s; %s", err, fault.KindOf(err), fault.Remedy(err), tt.kind, tt.text, tt.remedy)
		}
	}
}

func TestNoRulesLetEverythingThrough(t *testing.T) {
	s := spec("eve", func(s *job.Spec) { s.Partitions, s.Account = []string{"any"}, "some" })
	if err := (&Rules{}).Apply(s); err != nil || s.Partitions[0] != "any" || s.TimeLimit != 0 {
		t.Errorf("%v %+v", err, s)
	}
}

// TestPartitionsOfAnotherPool: rules of one pool say nothing of the partitions of another.
func TestPartitionsOfAnotherPool(t *testing.T) {
	r := rules
	r.Pool = "local"
	for _, parts := range [][]string{nil, {"main"}} {
		s := spec("anna", func(s *job.Spec) { s.Pool, s.Partitions = "slurm-b", parts })
		if err := r.Apply(s); err != nil || len(s.Partitions) != len(parts) || s.TimeLimit != 0 || s.Account != "nlp" {
			t.Errorf("%v: got %v, limit %v, account %s, %v", parts, s.Partitions, s.TimeLimit, s.Account, err)
		}
	}
	for _, pool := range []string{"", "local"} {
		s := spec("anna", func(s *job.Spec) { s.Pool = pool })
		if err := r.Apply(s); err != nil || len(s.Partitions) != 1 || s.Partitions[0] != "gpu" {
			t.Errorf("pool %q: got %v, %v", pool, s.Partitions, err)
		}
	}
}
