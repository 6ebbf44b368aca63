package site

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Few is how many jobs are always read anew: somebody acts on them.
const Few = 8

// stale is how long the record of a job counts whose state has not changed; with a few
// seconds more, by its number, so that not all are read at once.
const stale = 15 * time.Second

// Records are jobs as they were last read, for a way into a cluster that tells the states of
// many numbers for less than their records. It is safe for concurrent use.
type Records struct {
	mu  sync.Mutex
	was map[uint32]record
}

// record is a job as it was read, with its components.
type record struct {
	jobs  []Job
	words string // its state, with flags, as the list of states has it
	read  time.Time
}

// Jobs are the jobs with the numbers, as Site.Jobs has them: their states are asked for, and
// of those whose state has changed, or was read long ago, the record. states leaves out what
// slurmctld does not know; what it says of a number, flags and components included, is
// compared and not understood. full reads records, with the components of each.
func (r *Records) Jobs(ctx context.Context, ids []uint32,
	states func(context.Context, []uint32) (map[uint32]string, error), full func(context.Context, []uint32) ([]Job, error),
) ([]Job, error) {
	words, err := states(ctx, ids)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out, read := r.knownJobs(words, now)
	if len(read) == 0 {
		return out, nil
	}
	fresh, err := full(ctx, read)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range read {
		a := record{words: words[id], read: now}
		for i := range fresh {
			if fresh[i].ID == id || fresh[i].Het == id {
				a.jobs = append(a.jobs, fresh[i])
			}
		}
		r.was[id] = a
	}
	return append(out, fresh...), nil
}

// knownJobs are the records that still count, and the numbers of the others.
func (r *Records) knownJobs(words map[uint32]string, now time.Time) (out []Job, read []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.was == nil {
		r.was = map[uint32]record{}
	}
	for id, a := range r.was {
		if now.Sub(a.read) > 4*stale {
			delete(r.was, id)
		}
	}
	for id, w := range words {
		if a, ok := r.was[id]; ok && a.words == w && now.Sub(a.read) < stale+time.Duration(id%8)*time.Second {
			out = append(out, a.jobs...)
		} else {
			read = append(read, id)
		}
	}
	slices.Sort(read)
	return out, read
}
