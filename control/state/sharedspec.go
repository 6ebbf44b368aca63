package state

import (
	"sync"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// SharedSpec is the specification that jobs share which differ only in their SpecDelta: that of
// the first of them. Nobody writes it any more, except for the fields in which the loop notes
// something.
type SharedSpec struct {
	Spec job.Spec
	Key  string    // JSON of the specification without the delta
	Def  SpecDelta // the delta of Spec itself
	refs int       // jobs that have it, and submissions on their way; guarded by sharedSpecs.mu

	Judged uint64          // the loop's count of changes of the fleet at which …
	Never  []reason.Reason // … this kept it from ever fitting

	folded *job.Spec // what it takes of a pool as a whole; nil: not asked yet; guarded by the state
}

// SharedSpecs hands out one SharedSpec for equal specifications. It is safe for concurrent use.
type SharedSpecs struct {
	Home string // the pool of jobs that name none
	mu   sync.Mutex
	m    map[string]*SharedSpec
}

// NewSharedSpecs returns an empty set.
func NewSharedSpecs() *SharedSpecs { return &SharedSpecs{m: map[string]*SharedSpec{}} }

// UseSpec splits a specification into its shared part and its delta. Each use needs a
// ReleaseSpec.
func (fs *SharedSpecs) UseSpec(s *job.Spec) (*SharedSpec, SpecDelta) {
	bare, o := SplitSpec(*s)
	f, err := fs.get(string(MustJSON(&bare)), &o, func(into *job.Spec) error { *into = bare; return nil })
	if err != nil {
		panic(err) // a copy does not fail
	}
	return f, o
}

// get returns the shared specification with a key. read fills in a new one, without a delta.
func (fs *SharedSpecs) get(key string, o *SpecDelta, read func(*job.Spec) error) (*SharedSpec, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.m[key]
	if f == nil {
		f = &SharedSpec{Key: key, Def: *o}
		if err := read(&f.Spec); err != nil {
			return nil, err
		}
		f.Def.Array = nil
		f.Def.applyTo(&f.Spec)
		if f.Spec.Pool == "" {
			f.Spec.Pool = fs.Home
		}
		fs.m[key] = f
	}
	f.refs++
	return f, nil
}

// addUses counts n more users of a shared specification that is in use.
func (fs *SharedSpecs) addUses(f *SharedSpec, n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs += n
}

// ReleaseSpec counts one user less and drops a shared specification that nobody uses.
func (fs *SharedSpecs) ReleaseSpec(f *SharedSpec) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs--
	if f.refs == 0 {
		delete(fs.m, f.Key)
	}
}

// Count is how many specifications are in use.
func (fs *SharedSpecs) Count() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.m)
}
