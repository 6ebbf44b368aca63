package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// Filter selects jobs for Scan.
type Filter struct {
	After job.ID   // only larger numbers
	Live  bool     // only jobs that have not ended
	Users []string // only jobs of these; empty: of everybody
	// Whole fills Spec.Source.Given and Spec.Provenance too, which takes longer.
	Whole bool
}

// Scan calls f for the jobs in memory, ascending by number, until it returns
// false. The view is valid during the call only. No disk is waited for. Jobs leave
// memory some minutes after their end (Config.Keep); History has them.
func (c *Control) Scan(fl Filter, f func(*View) bool) {
	views, _, err := c.Jobs(context.Background())
	if err != nil {
		return
	}
	for i := range views {
		v := &views[i]
		if v.Job.ID <= fl.After || fl.Live && v.Job.State.Final() ||
			len(fl.Users) > 0 && !slices.Contains(fl.Users, v.Job.Spec.Owner.User) {
			continue
		}
		if !f(v) {
			return
		}
	}
}

// Find returns one task of an array by its index.
func (c *Control) Find(ctx context.Context, array job.ID, task uint32) (View, error) {
	for _, id := range c.Tasks(array) {
		v, err := c.Job(ctx, id)
		if err != nil {
			return View{}, err
		}
		if v.Job.Array != nil && v.Job.Array.Job == array && v.Job.Array.Index == task {
			return v, nil
		}
	}
	return View{}, fault.New(fault.NotFound, "there is no job %d_%d", array, task)
}

// Tasks lists the numbers of all tasks in memory of an array; of a job that is no
// array its own; nil if it is not in memory.
func (c *Control) Tasks(id job.ID) (out []job.ID) {
	c.Scan(Filter{After: id - 1}, func(v *View) bool {
		if v.Job.ID != id && (v.Job.Array == nil || v.Job.Array.Job != id) {
			return false
		}
		out = append(out, v.Job.ID)
		return true
	})
	return out
}

// Why is everything that keeps a job waiting.
type Why struct {
	Reasons  []reason.Reason // the first blocker first; none for a job that does not wait
	Since    time.Time       // when the first became the first
	StartsBy time.Time       // promised by the scheduler; zero: nothing is promised
}

// Why lists every gate that keeps a job waiting.
func (c *Control) Why(ctx context.Context, id job.ID) (Why, error) {
	rs, err := c.Reasons(ctx, id)
	w := Why{Reasons: rs}
	if len(rs) > 0 && rs[0].Since > 0 {
		w.Since = time.Unix(rs[0].Since, 0)
	}
	return w, err
}

// Estimate is when and where a job would start if it were submitted now.
type Estimate struct {
	Start   time.Time // zero: nobody can tell
	Nodes   []string
	Reasons []reason.Reason // why not now
}

// Estimate says what would become of a job without keeping anything of it.
func (c *Control) Estimate(context.Context, *job.Spec) (Estimate, error) {
	return Estimate{}, fault.New(fault.Unsupported, "an estimate is not built yet")
}

// History calls f for the jobs of the store that the query asks for, newest first,
// until it returns false. next is the Below of the next page; 0 at the end.
func (c *Control) History(context.Context, store.Query, func(*View) bool) (next uint64, err error) {
	return 0, fault.New(fault.Unsupported, "history is not built yet")
}

// Audit calls f for the journal records that somebody asked for, oldest first.
func (c *Control) Audit(context.Context, store.RecordQuery, func(store.Record) error) error {
	return fault.New(fault.Unsupported, "the audit is not built yet")
}

// Backup copies the store into a new folder while it is used, and returns the
// number of the last record of the journal that is certain to be in the copy.
func (c *Control) Backup(context.Context, string) (seq uint64, err error) {
	return 0, fault.New(fault.Unsupported, "backup is not built yet")
}

// Blob returns a script or an environment by its hash.
func (c *Control) Blob(ctx context.Context, hash string) ([]byte, error) {
	return c.cfg.Store.Blob(ctx, hash)
}

// SplitEnv takes an environment blob apart.
func SplitEnv(b []byte) []string { return splitEnv(b) }
