package control

import (
	"sync"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// form is what jobs that differ in their own part alone share: the specification of
// the first of them. It is not written any more, but for what the loop notes in it.
type form struct {
	spec job.Spec
	key  string // JSON of the specification without the own part
	def  own    // the own part of spec
	refs int    // jobs that have it, and submissions on their way; guarded by forms.mu

	judged uint64          // the loop's count of changes of the fleet at which …
	never  []reason.Reason // … this kept it from ever fitting

	folded *job.Spec // what it takes of a pool as a whole; nil: not asked yet; guarded by state.mu
}

// forms hands out one form for equal specifications. It is safe for concurrent use.
type forms struct {
	home string // the pool of jobs that name none
	mu   sync.Mutex
	m    map[string]*form
}

func newForms() *forms { return &forms{m: map[string]*form{}} }

// use returns the form of a specification and its own part. Every use needs a release.
func (fs *forms) use(s *job.Spec) (*form, own) {
	bare, o := split(*s)
	f, err := fs.get(string(mustJSON(&bare)), &o, func(into *job.Spec) error { *into = bare; return nil })
	if err != nil {
		panic(err) // a copy does not fail
	}
	return f, o
}

// get returns the form with a key. read makes the specification without an own part
// where the form is new.
func (fs *forms) get(key string, o *own, read func(*job.Spec) error) (*form, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.m[key]
	if f == nil {
		f = &form{key: key, def: *o}
		if err := read(&f.spec); err != nil {
			return nil, err
		}
		f.def.Array = nil
		f.def.into(&f.spec)
		if f.spec.Pool == "" {
			f.spec.Pool = fs.home
		}
		fs.m[key] = f
	}
	f.refs++
	return f, nil
}

// again counts one more user of a form that is in use.
func (fs *forms) again(f *form, n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs += n
}

// release counts one user less and forgets a form that nobody uses.
func (fs *forms) release(f *form) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.refs--
	if f.refs == 0 {
		delete(fs.m, f.key)
	}
}
