package control

import (
	"sync"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// sharedSpec is what jobs that differ in their own part alone share: the specification of
// the first of them. It is not written any more, but for what the loop notes in it.
type sharedSpec struct {
	spec job.Spec
	key  string    // JSON of the specification without the own part
	def  specDelta // the own part of spec
	refs int       // jobs that have it, and submissions on their way; guarded by sharedSpecs.mu

	judged uint64          // the loop's count of changes of the fleet at which …
	never  []reason.Reason // … this kept it from ever fitting

	folded *job.Spec // what it takes of a pool as a whole; nil: not asked yet; guarded by the state
}

// sharedSpecs hands out one form for equal specifications. It is safe for concurrent use.
type sharedSpecs struct {
	home string // the pool of jobs that name none
	mu   sync.Mutex
	m    map[string]*sharedSpec
}

func newSharedSpecs() *sharedSpecs { return &sharedSpecs{m: map[string]*sharedSpec{}} }

// useSpec returns the form of a specification and its own part. Every use needs a release.
func (fs *sharedSpecs) useSpec(s *job.Spec) (*sharedSpec, specDelta) {
	bare, o := splitSpec(*s)
	f, err := fs.get(string(mustJSON(&bare)), &o, func(into *job.Spec) error { *into = bare; return nil })
	if err != nil {
		panic(err) // a copy does not fail
	}
	return f, o
}

// get returns the form with a key. read makes the specification without an own part
// where the form is new.
func (fs *sharedSpecs) get(key string, o *specDelta, read func(*job.Spec) error) (*sharedSpec, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.m[key]
	if f == nil {
		f = &sharedSpec{key: key, def: *o}
		if err := read(&f.spec); err != nil {
			return nil, err
		}
		f.def.Array = nil
		f.def.applyTo(&f.spec)
		if f.spec.Pool == "" {
			f.spec.Pool = fs.home
		}
		fs.m[key] = f
	}
	f.refs++
	return f, nil
}

// addUses counts one more user of a form that is in use.
func (fs *sharedSpecs) addUses(f *sharedSpec, n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs += n
}

// releaseSpec counts one user less and forgets a form that nobody uses.
func (fs *sharedSpecs) releaseSpec(f *sharedSpec) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs--
	if f.refs == 0 {
		delete(fs.m, f.key)
	}
}

// count is how many specifications are in use.
func (fs *sharedSpecs) count() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.m)
}
