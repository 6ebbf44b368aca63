package sacct

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
)

// applyWindow fills in the ends of the window of time that were not given, as Slurm does:
// with -s alone it is this moment, with -j (also beside -s) all time until now, else today.
func (q *query) applyWindow() {
	if q.from.IsZero() && len(q.ids) == 0 {
		q.from = q.Now
		if len(q.states) == 0 {
			y, m, d := q.Now.Date()
			q.from = time.Date(y, m, d, 0, 0, 0, 0, q.Now.Location())
		}
	}
	if q.to.IsZero() && len(q.states) > 0 && !q.from.IsZero() {
		q.to = q.from
	}
	if q.to.IsZero() {
		q.to = q.Now
	}
	if q.to.Equal(q.from) || q.to.Equal(q.Now) {
		q.to = q.to.Add(time.Second) // the second itself counts
	}
}

// statesParam are the states that jobs may have now that were in one of those asked for within
// the window; empty: any.
func (q *query) statesParam() string {
	if len(q.states) == 0 || q.duplicates { // an attempt before the last one may have ended so
		return ""
	}
	list := jobs.NewFilter(q.states).Param()
	for _, s := range q.states {
		switch s {
		case "PENDING", "RUNNING", "SUSPENDED":
			return "" // they may have ended since
		case "CANCELLED":
			list = strings.Join([]string{list, "RUNNING", "SUSPENDED"}, ",") // their processes may live yet
		}
	}
	return list
}

// inWindow reports whether a job was, within the window, in one of the states asked for, or
// there at all where none was.
func (q *query) inWindow(r jobs.Row) bool {
	from, to := int64(0), q.to.Unix()
	if !q.from.IsZero() {
		from = q.from.Unix()
	}
	p := periodOf(r)
	if len(q.states) == 0 {
		return len(q.ids) > 0 || p.eligible < to && (p.ended == 0 || p.ended >= from)
	}
	return slices.ContainsFunc(q.states, func(s string) bool {
		switch s {
		case "PENDING":
			left := p.started
			if left == 0 {
				left = p.ended
			}
			return p.eligible < to && (left == 0 || from < left)
		case "RUNNING":
			return p.started > 0 && p.started < to && (p.ended == 0 || from < p.ended)
		case "SUSPENDED":
			at, until := r.Int(column.SuspendedAt), r.Int(column.ResumedAt)
			if until == 0 {
				until = p.ended
			}
			return at > 0 && at < to && (until == 0 || from < until)
		case "CANCELLED":
			return wasCancelled(r) && p.ended >= from && p.ended <= to
		}
		return jobs.NewFilter([]string{s}).Match(r) && (p.ended == 0 || p.ended >= from && p.ended <= to)
	})
}

// period is when a job waited and ran, Unix seconds; 0: not yet.
type period struct{ eligible, started, ended int64 }

// periodOf is the period of a job. One that was cancelled has ended, although processes of it
// may live; one that waits again has not begun.
func periodOf(r jobs.Row) period {
	p := period{max(r.Int(column.Eligible), r.Int(column.Submitted)), r.Int(column.Started), r.Int(column.Ended)}
	switch {
	case r.Base() == job.Pending:
		p.started, p.ended = 0, 0
	case wasCancelled(r) && p.ended == 0:
		p.ended = r.Now
	}
	return p
}
