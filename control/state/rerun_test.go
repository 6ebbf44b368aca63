package state

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestFailedNodes: each node stands there once for its pool, with the last attempt that failed there,
// as long as the job is kept off it; no more than maxFailed do, and the text of many stays short.
//
// Seen to fail with: nodes that are not taken from earlier attempts; no end of KeepOff; no bound.
func TestFailedNodes(t *testing.T) {
	at := func(n uint32, pool, on string) PastAttempt {
		return PastAttempt{Attempt: n, Started: 1, Ended: int64(n), Nodes: "a[1-9]", Failure: engine.NodeFailure, FailedOn: on, Pool: pool}
	}
	var got []FailedNodes
	for _, p := range []PastAttempt{at(1, "p", "a[1-3]"), at(2, "q", "a2"), at(3, "p", "a2"), at(4, "p", "a[1,3]")} {
		got = withFailed(got, &p, job.RerunExcludeFailed)
	}
	want := []FailedNodes{{Pool: "q", Nodes: "a2", Attempt: 2, Ended: 2}, {Pool: "p", Nodes: "a2", Attempt: 3, Ended: 3}, {Pool: "p", Nodes: "a[1,3]", Attempt: 4, Ended: 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}

	got = nil
	for n, p := range []PastAttempt{at(1, "p", "a1"), at(3, "p", "a2"), at(6, "p", "")} {
		if p.FailedOn != "" {
			p.KeepOff = 5
		}
		if got = withFailed(got, &p, job.RerunAnywhere); len(got) != []int{1, 2, 1}[n] {
			t.Errorf("after attempt %d: %+v", p.Attempt, got)
		}
	}

	got = nil
	for n := range uint32(30) {
		p := at(n+1, "p", hostlist.Compress([]string{fmt.Sprintf("a%d", n+1)}))
		if n == 0 {
			p.FailedOn = fmt.Sprintf("b[1-%d]", maxFailed-28)
		}
		got = withFailed(got, &p, job.RerunExcludeFailed)
	}
	if text := failedText(got); len(got) != 29 || text[:49] != "a[2-10] (earlier attempts failed there), a11 (att" {
		t.Errorf("%d: %s", len(got), text)
	}
}

// TestRowsOfOldFailedNodes: a row of a version that had failed nodes in the attempts before alone
// is read with them, and a row of ours as it was written.
//
// Seen to fail with: nothing taken from the attempts.
func TestRowsOfOldFailedNodes(t *testing.T) {
	p := PastAttempt{Attempt: 1, Started: 1, Ended: 2, Failure: engine.NodeFailure, FailedOn: "a1", Pool: "p"}
	e := &JobRecord{Shared: &SharedSpec{Spec: job.Spec{Rerun: job.RerunExcludeFailed}}, Extra: &JobExtra{}}
	for name, d := range map[string]RowDetail{"old": {Past: []PastAttempt{p}}, "new": {Past: []PastAttempt{p}, FailedOn: []FailedNodes{{Pool: "p", Nodes: "a1", Attempt: 1, Ended: 2}}}} {
		e.Extra.failed = nil
		e.restoreFailed(&d)
		if len(e.Extra.failed) != 1 || e.Extra.failed[0] != (FailedNodes{Pool: "p", Nodes: "a1", Attempt: 1, Ended: 2}) {
			t.Errorf("%s: %+v", name, e.Extra.failed)
		}
	}
}
