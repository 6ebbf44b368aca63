package jobs

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// TestPriority: Slurm's 0 is a held job's alone, so a job that is first or has nice has at least 1.
//
// Seen to fail with: the number as it is.
func TestPriority(t *testing.T) {
	w := new(Want)
	w.Add(PriorityColumns...)
	const lines = "0\t\n-50\tREQUEUED\n7\tREQUEUED,HELD\n100\t\n9007199254740992\t\n"
	table, err := fastclient.NewTable([]byte(lines), len(PriorityColumns))
	if err != nil {
		t.Fatal(err)
	}
	rows := New(table, w, time.Unix(0, 0))
	for i, want := range []int64{1, 1, 0, 100, 4294967294} {
		if got := rows.Row(i).Priority(); got != want {
			t.Errorf("priority %s is shown as %d, want %d", rows.Row(i).Raw(column.Priority), got, want)
		}
	}
}
