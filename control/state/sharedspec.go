package state

import (
	"sync"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// SharedSpec is what jobs that differ in their own part alone share: the specification of
// the first of them. It is not written any more, but for what the loop notes in it.
type SharedSpec struct {
	Spec job.Spec
	Key  string    // JSON of the specification without the own part
	Def  SpecDelta // the own part of spec
	refs int       // jobs that have it, and submissions on their way; guarded by sharedSpecs.mu

	Judged uint64          // the loop's count of changes of the fleet at which …
	Never  []reason.Reason // … this kept it from ever fitting

	folded *job.Spec // what it takes of a pool as a whole; nil: not asked yet; guarded by the state
}

// SharedSpecs hands out one form for equal specifications. It is safe for concurrent use.
type SharedSpecs struct {
	Home string // the pool of jobs that name none
	mu   sync.Mutex
	m    map[string]*SharedSpec
}

func NewSharedSpecs() *SharedSpecs { return &SharedSpecs{m: map[string]*SharedSpec{}} }

// UseSpec returns the form of a specification and its own part. Every use needs a release.
func (fs *SharedSpecs) UseSpec(s *job.Spec) (*SharedSpec, SpecDelta) {
	bare, o := SplitSpec(*s)
	f, err := fs.get(string(MustJSON(&bare)), &o, func(into *job.Spec) error { *into = bare; return nil })
	if err != nil {
		panic(err) // a copy does not fail
	}
	return f, o
}

// get returns the form with a key. read makes the specification without an own part
// where the form is new.
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

// addUses counts one more user of a form that is in use.
func (fs *SharedSpecs) addUses(f *SharedSpec, n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs += n
}

// ReleaseSpec counts one user less and forgets a form that nobody uses.
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
