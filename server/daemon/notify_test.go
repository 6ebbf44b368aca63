package daemon

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/notify"
)

// TestLiveJobsKeepLittle: what is kept of a live job is a few bytes without a pointer, and decides the
// same messages as the whole job.
//
// Seen to fail with: a liveJob that has the job's specification; one without its flags.
func TestLiveJobsKeepLittle(t *testing.T) {
	kept := reflect.TypeFor[liveJob]()
	for i := range kept.NumField() {
		if k := kept.Field(i).Type.Kind(); k != reflect.Bool && (k < reflect.Int || k > reflect.Uint64) {
			t.Errorf("%s is a %s: it may lead to more", kept.Field(i).Name, k)
		}
	}
	if kept.Size() > 16 {
		t.Errorf("%d bytes are kept of each live job", kept.Size())
	}
	when := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var jobs []*job.Job
	for _, x := range job.Transitions() {
		for _, flags := range []job.Flags{0, job.Configuring} {
			for _, started := range []time.Time{{}, when} {
				for attempt := range uint32(3) {
					jobs = append(jobs, &job.Job{ID: 7, State: x.From, Flags: flags, Attempt: attempt, Started: started, Spec: &job.Spec{}})
				}
			}
		}
	}
	for _, before := range jobs {
		short := liveJobOf(before).asBefore(before.ID)
		for _, after := range jobs {
			want, got := notify.Decide(notify.Change{Before: before, After: after}), notify.Decide(notify.Change{Before: short, After: after})
			if !slices.Equal(got, want) {
				t.Fatalf("%+v to %+v: %v, want %v", before, after, got, want)
			}
		}
	}
}
