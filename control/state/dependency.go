package state

import (
	"context"
	"iter"
	"slices"

	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// DependencyIndex knows which jobs depend on which.
type DependencyIndex struct {
	On   map[job.ID][]job.ID      // job or array → jobs that depend on it and have not ended
	past map[job.ID]*PastFates    // of these jobs and arrays: what left memory
	name map[nameKey][]*JobRecord // jobs that have not ended, once somebody asked for singleton; nil before
}

// PastFates has the fates of tasks of a job or an array that are not in memory, by index; 0 for
// a job alone.
type PastFates map[uint32]eligible.Fate

type nameKey struct{ user, name string }

func newDependencyIndex() DependencyIndex {
	return DependencyIndex{On: map[job.ID][]job.ID{}, past: map[job.ID]*PastFates{}}
}

// dependencyKey is the number by which others may depend on a job as a whole.
func (e *JobRecord) dependencyKey() job.ID {
	if e.Array != nil {
		return e.Array.first
	}
	return e.ID
}

func (e *JobRecord) dependsOn() *job.Dependency {
	if e.Extra == nil {
		return nil
	}
	return e.Extra.Depends
}

// isSingleton reports whether it waits for earlier jobs of its name.
func (e *JobRecord) isSingleton() bool {
	d := e.dependsOn()
	return d != nil && slices.ContainsFunc(d.Clauses, func(c job.DependencyClause) bool { return c.Kind == job.Singleton })
}

func (e *JobRecord) currentFate() eligible.Fate {
	f := eligible.Fate{State: e.State, Started: e.StartTime()}
	if e.State.Final() {
		f.Ended = e.endTime()
	}
	return f
}

func (d *DependencyIndex) nameOf(e *JobRecord) nameKey {
	var s job.Spec
	e.Shared.unpackSpec(e.delta, false, &s)
	return nameKey{s.Owner.User, s.Name}
}

// add notes what a job that has not ended depends on.
func (d *DependencyIndex) add(e *JobRecord) {
	if e.State.Final() {
		return
	}
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = append(d.name[key], e)
	}
	for _, id := range prerequisites(e.dependsOn()) {
		d.On[id] = append(d.On[id], e.ID)
	}
}

// remove takes that back.
func (d *DependencyIndex) remove(e *JobRecord) {
	if d.name != nil {
		key := d.nameOf(e)
		d.name[key] = slices.DeleteFunc(d.name[key], func(o *JobRecord) bool { return o == e })
		if len(d.name[key]) == 0 {
			delete(d.name, key)
		}
	}
	for _, id := range prerequisites(e.dependsOn()) {
		d.On[id] = slices.DeleteFunc(d.On[id], func(o job.ID) bool { return o == e.ID })
		if len(d.On[id]) == 0 {
			delete(d.On, id)
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
func (d *DependencyIndex) recheckDependents(s *State, e *JobRecord) {
	for _, id := range d.On[e.dependencyKey()] {
		s.RecheckEligible(s.Jobs[id])
	}
	if e.Array != nil {
		for _, id := range d.On[e.ID] {
			s.RecheckEligible(s.Jobs[id])
		}
	}
	d.recheckNamesakes(s, e)
}

// recheckNamesakes has the jobs asked anew that wait for others of a job's name.
func (d *DependencyIndex) recheckNamesakes(s *State, e *JobRecord) {
	if d.name == nil {
		return
	}
	for _, o := range d.name[d.nameOf(e)] {
		if o.isSingleton() {
			s.RecheckEligible(o)
		}
	}
}

// keepFate keeps the fate of a job that leaves memory for those who depend on it.
func (d *DependencyIndex) keepFate(e *JobRecord) {
	if len(d.On[e.dependencyKey()]) > 0 {
		d.setFate(e.dependencyKey(), e.Index, e.currentFate())
	}
	if e.Array != nil && len(d.On[e.ID]) > 0 {
		d.setFate(e.ID, 0, e.currentFate())
	}
}

func (d *DependencyIndex) setFate(id job.ID, index uint32, f eligible.Fate) {
	if d.past[id] == nil {
		d.past[id] = &PastFates{}
	}
	(*d.past[id])[index] = f
}

// KnowsFate reports whether memory has the fate of a job, a task or a whole array.
func (s *State) KnowsFate(ref job.JobRef) bool {
	a, past := s.Arrays.m[ref.Job], s.Depend.past[ref.Job]
	if a == nil {
		return past != nil || s.Jobs[ref.Job] != nil && ref.Task == nil
	}
	if ref.Task == nil && a.tasks == len(a.Spec.Indices) {
		return true
	}
	found := false
	for i, index := range a.Spec.Indices {
		if ref.Task != nil && *ref.Task != index {
			continue
		}
		if _, left := past.FateOf(index); !left && s.Jobs[a.first+job.ID(i)] == nil {
			return false // it left memory when nobody depended on it
		}
		found = true
	}
	return found
}

// AddFates adds fates that were looked up in the store, of jobs on which others depend.
func (d *DependencyIndex) AddFates(found map[job.ID]*PastFates) {
	for id, p := range found {
		if len(d.On[id]) == 0 {
			continue
		}
		for index, f := range *p {
			if _, known := d.past[id].FateOf(index); !known {
				d.setFate(id, index, f)
			}
		}
	}
}

// FatesOf yields the fates of the tasks that a reference names.
func (s *State) FatesOf(ref job.JobRef) iter.Seq[eligible.Fate] {
	return func(yield func(eligible.Fate) bool) {
		a, past := s.Arrays.m[ref.Job], s.Depend.past[ref.Job]
		if a == nil {
			if e := s.Jobs[ref.Job]; e != nil && ref.Task == nil {
				yield(e.currentFate())
				return
			}
			past.eachFate(ref.Task, yield)
			return
		}
		for i, index := range a.Spec.Indices {
			if ref.Task != nil && *ref.Task != index {
				continue
			}
			f, known := past.FateOf(index)
			if e := s.Jobs[a.first+job.ID(i)]; e != nil {
				f, known = e.currentFate(), true
			}
			if known && !yield(f) {
				return
			}
		}
	}
}

// FateOf returns the fate of a task; 0 for a job alone.
func (p *PastFates) FateOf(index uint32) (eligible.Fate, bool) {
	if p == nil {
		return eligible.Fate{}, false
	}
	f, ok := (*p)[index]
	return f, ok
}

func (p *PastFates) eachFate(task *uint32, yield func(eligible.Fate) bool) {
	if p == nil {
		return
	}
	for index, f := range *p {
		if (task == nil || *task == index) && !yield(f) {
			return
		}
	}
}

// HasEarlierNamesake reports whether another job of the same name and user runs, or one with a
// smaller number waits. A job that runs again has its old number and finds others running.
func (s *State) HasEarlierNamesake(e *JobRecord) bool {
	d := &s.Depend
	if d.name == nil {
		d.name = map[nameKey][]*JobRecord{}
		for _, o := range s.Live {
			if !o.State.Final() && !o.Gone {
				key := d.nameOf(o)
				d.name[key] = append(d.name[key], o)
			}
		}
	}
	return slices.ContainsFunc(d.name[d.nameOf(e)], func(o *JobRecord) bool {
		return o != e && (o.State.Holds() || o.State == job.Pending && o.ID < e.ID)
	})
}

// DependsOnItself reports whether a job would wait for itself if it depended on d.
func (s *State) DependsOnItself(e *JobRecord, d *job.Dependency) bool {
	seen := map[job.ID]bool{}
	todo := prerequisites(d)
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if id == e.ID || id == e.dependencyKey() {
			return true
		}
		for _, o := range s.ArrayTasks(id) {
			if o.State == job.Pending {
				todo = append(todo, prerequisites(o.dependsOn())...)
			}
		}
	}
	return false
}

// ArrayTasks lists the tasks of an array that are in memory, or a job alone.
func (s *State) ArrayTasks(id job.ID) (out []*JobRecord) {
	a := s.Arrays.m[id]
	if a == nil {
		if e := s.Jobs[id]; e != nil {
			out = append(out, e)
		}
		return out
	}
	for i := range a.Spec.Indices {
		if e := s.Jobs[a.first+job.ID(i)]; e != nil {
			out = append(out, e)
		}
	}
	return out
}

// MaxTasks bounds an array: each task is a job of its own from the beginning.
const MaxTasks = 1_000_000

// TaskIndex is the index of the task that a reference names; 0 for a job or a whole array.
func TaskIndex(ref job.JobRef) uint32 {
	if ref.Task == nil {
		return 0
	}
	return *ref.Task
}

// KnowsAll reports whether memory or found, which was looked up, has the fate of everything that
// a dependency names.
func (s *State) KnowsAll(d *job.Dependency, found map[job.ID]*PastFates) bool {
	if d == nil {
		return true
	}
	for _, c := range d.Clauses {
		for _, ref := range c.Jobs {
			if found[ref.Job] == nil && !s.KnowsFate(ref) {
				return false
			}
		}
	}
	return true
}

// StoredFates reads the fates of a job or of the tasks of an array from the store; none if the
// store has no such job.
func StoredFates(ctx context.Context, st store.Store, id job.ID) (*PastFates, error) {
	p := PastFates{}
	note := func(row store.JobRow) error {
		var s job.State
		if err := s.UnmarshalText([]byte(row.State)); err != nil {
			return err
		}
		i := uint32(0)
		if row.Array != 0 {
			i = uint32(row.Task)
		}
		p[i] = eligible.Fate{State: s, Started: row.Started, Ended: row.Ended}
		return nil
	}
	row, err := st.Job(ctx, uint64(id))
	switch {
	case fault.KindOf(err) == fault.NotFound:
	case err != nil:
		return nil, err
	case row.Array == uint64(id):
		return &p, st.History(ctx, store.Query{Array: row.Array}, note)
	case row.Array == 0:
		return &p, note(row)
	default: // a task, by the number of its own
		p[0] = eligible.Fate{}
		if err := note(row); err != nil {
			return nil, err
		}
		p[0] = p[uint32(row.Task)]
	}
	return &p, nil
}
