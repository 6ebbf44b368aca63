package account_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
)

// TestCompatRefusesWhatItDoesNotDo: rules that mean nothing where the core decides as
// slurmctld would are refused, each at its place, and are taken without compat.
//
// Seen to fail with: compat not looked at.
func TestCompatRefusesWhatItDoesNotDo(t *testing.T) {
	p := account.Policy{
		Compat:       "slurm",
		Preemption:   account.Preemption{By: []string{"qos"}},
		Partitions:   []account.Partition{{Name: "p"}, {Name: "q", TimeSlice: account.Duration(time.Minute)}},
		Reservations: []account.Reservation{{Name: "r", Start: "2030-01-01T00:00:00Z", Duration: account.Duration(time.Hour)}},
	}
	var got []string
	for _, x := range p.Check() {
		got = append(got, x.Path)
	}
	if diff := cmp.Diff([]string{"reservations", "preemption.by", "partitions[1].time_slice"}, got); diff != "" {
		t.Errorf("refused (-want +got)\n%s", diff)
	}
	p.Compat = ""
	if found := p.Check(); len(found) > 0 {
		t.Errorf("without compat: %+v", found)
	}
}
