package control

import (
	"iter"
	"slices"

	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
)

// dependencyIndex knows who waits for whom.
type dependencyIndex struct {
	on   map[job.ID][]job.ID      // job or array → jobs that depend on it and have not ended
	past map[job.ID]*pastFates    // of these jobs and arrays: what left memory
	name map[nameKey][]*jobRecord // jobs that have not ended, once somebody asked for singleton; nil before
}

// pastFates is what is known of a job or an array beside what is in memory: by index of
// the task, 0 for a job alone.
type pastFates map[uint32]eligible.Fate

type nameKey struct{ user, name string }

func newDependencyIndex() dependencyIndex {
	return dependencyIndex{on: map[job.ID][]job.ID{}, past: map[job.ID]*pastFates{}}
}

// dependencyKey is the number by which others may depend on a job as a whole.
func (e *jobRecord) dependencyKey() job.ID {
	if e.array != nil {
		return e.array.first
	}
	return e.id
}

func (e *jobRecord) dependsOn() *job.Dependency {
	if e.extra == nil {
		return nil
	}
	return e.extra.depends
}

// isSingleton reports whether it waits for earlier jobs of its name.
func (e *jobRecord) isSingleton() bool {
	d := e.dependsOn()
	return d != nil && slices.ContainsFunc(d.Clauses, func(c job.DependencyClause) bool { return c.Kind == job.Singleton })
}

func (e *jobRecord) currentFate() eligible.Fate {
	f := eligible.Fate{State: e.state, Started: e.startTime()}
	if e.state.Final() {
		f.Ended = e.endTime()
	}
	return f
}

func (d *dependencyIndex) nameOf(e *jobRecord) nameKey {
	var s job.Spec
	e.shared.unpackSpec(e.delta, false, &s)
	return nameKey{s.Owner.User, s.Name}
}

// add notes what a job that has not ended depends on.
func (d *dependencyIndex) add(e *jobRecord) {
	if e.state.Final() {
		return
	}
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = append(d.name[key], e)
	}
	for _, id := range prerequisites(e.dependsOn()) {
		d.on[id] = append(d.on[id], e.id)
	}
}

// remove takes that back.
func (d *dependencyIndex) remove(e *jobRecord) {
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = slices.DeleteFunc(d.name[key], func(o *jobRecord) bool { return o == e })
		if len(d.name[key]) == 0 {
			delete(d.name, key)
		}
	}
	for _, id := range prerequisites(e.dependsOn()) {
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

// recheckDependents has those asked anew who depend on a job whose state has changed.
func (d *dependencyIndex) recheckDependents(s *state, e *jobRecord) {
	for _, id := range d.on[e.dependencyKey()] {
		s.recheckEligible(s.jobs[id])
	}
	if e.array != nil {
		for _, id := range d.on[e.id] {
			s.recheckEligible(s.jobs[id])
		}
	}
	d.recheckNamesakes(s, e)
}

// recheckNamesakes has the jobs asked anew that wait for others of a job's name.
func (d *dependencyIndex) recheckNamesakes(s *state, e *jobRecord) {
	if d.name == nil {
		return
	}
	for _, o := range d.name[d.nameOf(e)] {
		if o.isSingleton() {
			s.recheckEligible(o)
		}
	}
}

// keepFate keeps the fate of a job that leaves memory for those who depend on it.
func (d *dependencyIndex) keepFate(e *jobRecord) {
	if len(d.on[e.dependencyKey()]) > 0 {
		d.setFate(e.dependencyKey(), e.index, e.currentFate())
	}
	if e.array != nil && len(d.on[e.id]) > 0 {
		d.setFate(e.id, 0, e.currentFate())
	}
}

func (d *dependencyIndex) setFate(id job.ID, index uint32, f eligible.Fate) {
	if d.past[id] == nil {
		d.past[id] = &pastFates{}
	}
	(*d.past[id])[index] = f
}

// knowsFate reports whether the fate of a job, of a task or of a whole array can be told
// from memory.
func (s *state) knowsFate(ref job.JobRef) bool {
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
		if _, left := past.fateOf(index); !left && s.jobs[a.first+job.ID(i)] == nil {
			return false // it left memory when nobody depended on it
		}
		found = true
	}
	return found
}

// addFates adds what was looked up of jobs that others depend on.
func (d *dependencyIndex) addFates(found map[job.ID]*pastFates) {
	for id, p := range found {
		if len(d.on[id]) == 0 {
			continue
		}
		for index, f := range *p {
			if _, known := d.past[id].fateOf(index); !known {
				d.setFate(id, index, f)
			}
		}
	}
}

// fatesOf yields the fates that a reference stands for.
func (s *state) fatesOf(ref job.JobRef) iter.Seq[eligible.Fate] {
	return func(yield func(eligible.Fate) bool) {
		a, past := s.arrays.m[ref.Job], s.depend.past[ref.Job]
		if a == nil {
			if e := s.jobs[ref.Job]; e != nil && ref.Task == nil {
				yield(e.currentFate())
				return
			}
			past.eachFate(ref.Task, yield)
			return
		}
		for i, index := range a.spec.Indices {
			if ref.Task != nil && *ref.Task != index {
				continue
			}
			f, known := past.fateOf(index)
			if e := s.jobs[a.first+job.ID(i)]; e != nil {
				f, known = e.currentFate(), true
			}
			if known && !yield(f) {
				return
			}
		}
	}
}

func (p *pastFates) fateOf(index uint32) (eligible.Fate, bool) {
	if p == nil {
		return eligible.Fate{}, false
	}
	f, ok := (*p)[index]
	return f, ok
}

func (p *pastFates) eachFate(task *uint32, yield func(eligible.Fate) bool) {
	if p == nil {
		return
	}
	for index, f := range *p {
		if (task == nil || *task == index) && !yield(f) {
			return
		}
	}
}

// hasEarlierNamesake reports whether another job of the same name and user runs, or an earlier one
// waits: one that runs again has its old number and finds others running.
func (s *state) hasEarlierNamesake(e *jobRecord) bool {
	d := &s.depend
	if d.name == nil {
		d.name = map[nameKey][]*jobRecord{}
		for _, o := range s.live {
			if !o.state.Final() && !o.gone {
				key := d.nameOf(o)
				d.name[key] = append(d.name[key], o)
			}
		}
	}
	return slices.ContainsFunc(d.name[d.nameOf(e)], func(o *jobRecord) bool {
		return o != e && (o.state.Holds() || o.state == job.Pending && o.id < e.id)
	})
}

// dependsOnItself reports whether a job would wait for itself if it depended on d.
func (s *state) dependsOnItself(e *jobRecord, d *job.Dependency) bool {
	seen := map[job.ID]bool{}
	todo := prerequisites(d)
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if id == e.id || id == e.dependencyKey() {
			return true
		}
		for _, o := range s.arrayTasks(id) {
			if o.state == job.Pending {
				todo = append(todo, prerequisites(o.dependsOn())...)
			}
		}
	}
	return false
}

// arrayTasks lists the tasks in memory of an array, or a job alone.
func (s *state) arrayTasks(id job.ID) (out []*jobRecord) {
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
