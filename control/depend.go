package control

import (
	"iter"
	"slices"

	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
)

// depends knows who waits for whom.
type depends struct {
	on   map[job.ID][]job.ID  // job or array → jobs that depend on it and have not ended
	past map[job.ID]*past     // of these jobs and arrays: what left memory
	name map[nameKey][]*entry // jobs that have not ended, once somebody asked for singleton; nil before
}

// past is what is known of a job or an array beside what is in memory: by index of
// the task, 0 for a job alone.
type past map[uint32]eligible.Fate

type nameKey struct{ user, name string }

func newDepends() depends {
	return depends{on: map[job.ID][]job.ID{}, past: map[job.ID]*past{}}
}

// key is the number by which others may depend on a job as a whole.
func (e *entry) key() job.ID {
	if e.array != nil {
		return e.array.first
	}
	return e.id
}

func (e *entry) dependency() *job.Dependency {
	if e.more == nil {
		return nil
	}
	return e.more.depends
}

// singleton reports whether it waits for earlier jobs of its name.
func (e *entry) singleton() bool {
	d := e.dependency()
	return d != nil && slices.ContainsFunc(d.Clauses, func(c job.DependencyClause) bool { return c.Kind == job.Singleton })
}

func (e *entry) fate() eligible.Fate {
	f := eligible.Fate{State: e.state, Started: e.began()}
	if e.state.Final() {
		f.Ended = e.end()
	}
	return f
}

func (d *depends) nameOf(e *entry) nameKey {
	var s job.Spec
	e.form.unpack(e.owned, false, &s)
	return nameKey{s.Owner.User, s.Name}
}

// add notes what a job that has not ended depends on.
func (d *depends) add(e *entry) {
	if e.state.Final() {
		return
	}
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = append(d.name[key], e)
	}
	for _, id := range prerequisites(e.dependency()) {
		d.on[id] = append(d.on[id], e.id)
	}
}

// remove takes that back.
func (d *depends) remove(e *entry) {
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = slices.DeleteFunc(d.name[key], func(o *entry) bool { return o == e })
		if len(d.name[key]) == 0 {
			delete(d.name, key)
		}
	}
	for _, id := range prerequisites(e.dependency()) {
		d.on[id] = slices.DeleteFunc(d.on[id], func(o job.ID) bool { return o == e.id })
		if len(d.on[id]) == 0 {
			delete(d.on, id)
			delete(d.past, id)
		}
	}
}

// prerequisites lists the jobs and arrays that a dependency names, each once.
func prerequisites(d *job.Dependency) (out []job.ID) {
	if d == nil {
		return nil
	}
	for _, c := range d.Clauses {
		for _, ref := range c.Jobs {
			if !slices.Contains(out, ref.Job) {
				out = append(out, ref.Job)
			}
		}
	}
	return out
}

// changed has those asked anew who depend on a job whose state has changed.
func (d *depends) changed(s *state, e *entry) {
	for _, id := range d.on[e.key()] {
		s.regate(s.jobs[id])
	}
	if e.array != nil {
		for _, id := range d.on[e.id] {
			s.regate(s.jobs[id])
		}
	}
	d.named(s, e)
}

// named has the jobs asked anew that wait for others of a job's name.
func (d *depends) named(s *state, e *entry) {
	if d.name == nil {
		return
	}
	for _, o := range d.name[d.nameOf(e)] {
		if o.singleton() {
			s.regate(o)
		}
	}
}

// forget keeps the fate of a job that leaves memory for those who depend on it.
func (d *depends) forget(e *entry) {
	if len(d.on[e.key()]) > 0 {
		d.remember(e.key(), e.index, e.fate())
	}
	if e.array != nil && len(d.on[e.id]) > 0 {
		d.remember(e.id, 0, e.fate())
	}
}

func (d *depends) remember(id job.ID, index uint32, f eligible.Fate) {
	if d.past[id] == nil {
		d.past[id] = &past{}
	}
	(*d.past[id])[index] = f
}

// knows reports whether the fate of a job, of a task or of a whole array can be told
// from memory.
func (s *state) knows(ref job.JobRef) bool {
	a, past := s.arrays.m[ref.Job], s.depend.past[ref.Job]
	if a == nil {
		return past != nil || s.jobs[ref.Job] != nil && ref.Task == nil
	}
	if ref.Task == nil && a.tasks == len(a.spec.Indices) {
		return true
	}
	found := false
	for i, index := range a.spec.Indices {
		if ref.Task != nil && *ref.Task != index {
			continue
		}
		if _, left := past.at(index); !left && s.jobs[a.first+job.ID(i)] == nil {
			return false // it left memory when nobody depended on it
		}
		found = true
	}
	return found
}

// learn adds what was looked up of jobs that others depend on.
func (d *depends) learn(found map[job.ID]*past) {
	for id, p := range found {
		if len(d.on[id]) == 0 {
			continue
		}
		for index, f := range *p {
			if _, known := d.past[id].at(index); !known {
				d.remember(id, index, f)
			}
		}
	}
}

// look yields the fates that a reference stands for.
func (s *state) look(ref job.JobRef) iter.Seq[eligible.Fate] {
	return func(yield func(eligible.Fate) bool) {
		a, past := s.arrays.m[ref.Job], s.depend.past[ref.Job]
		if a == nil {
			if e := s.jobs[ref.Job]; e != nil && ref.Task == nil {
				yield(e.fate())
				return
			}
			past.each(ref.Task, yield)
			return
		}
		for i, index := range a.spec.Indices {
			if ref.Task != nil && *ref.Task != index {
				continue
			}
			f, known := past.at(index)
			if e := s.jobs[a.first+job.ID(i)]; e != nil {
				f, known = e.fate(), true
			}
			if known && !yield(f) {
				return
			}
		}
	}
}

func (p *past) at(index uint32) (eligible.Fate, bool) {
	if p == nil {
		return eligible.Fate{}, false
	}
	f, ok := (*p)[index]
	return f, ok
}

func (p *past) each(task *uint32, yield func(eligible.Fate) bool) {
	if p == nil {
		return
	}
	for index, f := range *p {
		if (task == nil || *task == index) && !yield(f) {
			return
		}
	}
}

// earlier reports whether another job of the same name and user runs, or an earlier one
// waits: one that runs again has its old number and finds others running.
func (s *state) earlier(e *entry) bool {
	d := &s.depend
	if d.name == nil {
		d.name = map[nameKey][]*entry{}
		for _, o := range s.live {
			if !o.state.Final() && !o.gone {
				key := d.nameOf(o)
				d.name[key] = append(d.name[key], o)
			}
		}
	}
	return slices.ContainsFunc(d.name[d.nameOf(e)], func(o *entry) bool {
		return o != e && (o.state.Holds() || o.state == job.Pending && o.id < e.id)
	})
}

// circle reports whether a job would wait for itself if it depended on d.
func (s *state) circle(e *entry, d *job.Dependency) bool {
	seen := map[job.ID]bool{}
	todo := prerequisites(d)
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if id == e.id || id == e.key() {
			return true
		}
		for _, o := range s.members(id) {
			if o.state == job.Pending {
				todo = append(todo, prerequisites(o.dependency())...)
			}
		}
	}
	return false
}

// members lists the tasks in memory of an array, or a job alone.
func (s *state) members(id job.ID) (out []*entry) {
	a := s.arrays.m[id]
	if a == nil {
		if e := s.jobs[id]; e != nil {
			out = append(out, e)
		}
		return out
	}
	for i := range a.spec.Indices {
		if e := s.jobs[a.first+job.ID(i)]; e != nil {
			out = append(out, e)
		}
	}
	return out
}
