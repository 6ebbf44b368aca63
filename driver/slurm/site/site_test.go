package site_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// Words are those of "JOB STATE CODES" in squeue's and sacct's manuals.
func TestParseState(t *testing.T) {
	for text, want := range map[string]site.Word{
		"PENDING":            {State: site.Pending},
		"RUNNING":            {State: site.Running},
		"CONFIGURING":        {State: site.Running},
		"COMPLETING":         {Completing: true},
		"CANCELLED by 1000":  {State: site.Cancelled, By: "1000"},
		"CANCELLED+":         {State: site.Cancelled},
		"OUT_OF_MEMORY":      {State: site.OutOfMemory},
		"REQUEUED":           {State: site.Pending},
		"REQUEUE_HOLD":       {State: site.Pending, Held: true},
		"SPECIAL_EXIT":       {State: site.Pending, Held: true},
		"STOPPED":            {State: site.Suspended},
		" NODE_FAIL        ": {State: site.NodeFailed},
	} {
		if got, ok := site.ParseState(text); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "RUNNIN", "done"} {
		if got, ok := site.ParseState(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, s := range []site.State{site.Pending, site.Running, site.Suspended} {
		if s.Final() {
			t.Errorf("%s has ended", s)
		}
	}
}
