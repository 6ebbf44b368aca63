package account_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// TestTaken: what a QOS says of how its jobs make room goes before what the partition says, but
// where partitions alone give the right.
func TestTaken(t *testing.T) {
	p := &account.Policy{
		QOS: []account.QOS{{Name: "cut", PreemptMode: "cancel"}, {Name: "plain"}},
		Partitions: []account.Partition{
			{Name: "saves", PreemptMode: "checkpoint"},
			{Name: "plain"},
			{Name: "turns", PreemptMode: "cancel", TimeSlice: account.Duration(time.Minute)},
		},
	}
	for _, k := range []struct {
		qos, partition, all, want string
		by                        []string
	}{
		{"cut", "saves", "off", "cancel", []string{"qos"}},
		{"cut", "saves", "off", "cancel", []string{"partition", "qos"}},
		{"cut", "saves", "off", "cancel", []string{"priority"}},
		{"cut", "saves", "off", "checkpoint", []string{"partition"}},
		{"cut", "plain", "", "cancel", []string{"partition"}},
		{"plain", "saves", "cancel", "checkpoint", []string{"qos"}},
		{"plain", "plain", "cancel", "cancel", []string{"qos"}},
		{"plain", "plain", "", "requeue", []string{"qos"}},
		{"none", "none", "", "requeue", nil},
		{"cut", "turns", "", "suspend", []string{"qos"}},
	} {
		p.Preemption = account.Preemption{By: k.by, Mode: k.all}
		if got := p.Taken(k.qos, k.partition); got != k.want {
			t.Errorf("%+v: %s", k, got)
		}
	}
}
