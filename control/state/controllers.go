package state

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// Controller is what is kept of a controller above jobs: a service, a schedule. Document is its own
// business. Names are a format on disk.
type Controller struct {
	Name     string          `json:"name"` // "service/team/chat": its kind is what stands before the first slash
	Owner    job.Owner       `json:"owner"`
	Version  uint64          `json:"version"` // grows by one with each change, from 1
	Document json.RawMessage `json:"document"`
}

// ControllerGone says that a controller is no more. Its jobs are jobs as all others then.
type ControllerGone struct {
	Name string `json:"name"`
}

// docController begins the names of the projection's documents with one controller each.
const docController = "controller-"

// Controllers are those that there are, by name.
type Controllers struct {
	m     map[string]*Controller // what is in it is never written to
	dirty map[string]uint64      // names of which the projection lacks the document → how often they changed
	turn  uint64
}

func newControllers() Controllers {
	return Controllers{m: map[string]*Controller{}, dirty: map[string]uint64{}}
}

// Named returns a controller; nil: there is none of that name.
func (c *Controllers) Named(name string) *Controller { return c.m[name] }

// Names lists the names that begin with a prefix, in order.
func (c *Controllers) Names(prefix string) []string {
	names := slices.Sorted(maps.Keys(c.m))
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

func (c *Controllers) markDirty(name string) {
	c.turn++
	c.dirty[name] = c.turn
}

func (s *State) applyController(_ *store.Record, v Controller) error {
	if now := s.Controllers.m[v.Name]; now != nil && v.Version != now.Version+1 || now == nil && v.Version != 1 {
		return fmt.Errorf("controller %s: version %d does not follow the one before", v.Name, v.Version)
	}
	s.Controllers.m[v.Name] = &v
	s.Controllers.markDirty(v.Name)
	return nil
}

func (s *State) applyControllerGone(_ *store.Record, v ControllerGone) error {
	if s.Controllers.m[v.Name] == nil {
		return fmt.Errorf("there is no controller %s", v.Name)
	}
	delete(s.Controllers.m, v.Name)
	s.Controllers.markDirty(v.Name)
	return nil
}

// pendingDocs adds the documents that the projection lacks; nil takes one away. written has to hear
// that they were written.
func (c *Controllers) pendingDocs(into map[string][]byte) (written func()) {
	turns := maps.Clone(c.dirty)
	for name := range turns {
		into[docController+name] = nil
		if v := c.m[name]; v != nil {
			into[docController+name] = MustJSON(v)
		}
	}
	return func() {
		for name, turn := range turns {
			if c.dirty[name] == turn { // it has not changed since
				delete(c.dirty, name)
			}
		}
	}
}

// restore reads the documents of the controllers that a projection names.
func (c *Controllers) restore(ctx context.Context, st store.Store, names []string) error {
	for _, name := range names {
		b, err := st.Doc(ctx, docController+name)
		if err != nil {
			return DamagedError(fmt.Errorf("controller %s: %w", name, err))
		}
		v := &Controller{}
		if err := json.Unmarshal(b, v); err != nil {
			return DamagedError(fmt.Errorf("controller %s: %w", name, err))
		}
		c.m[name] = v
	}
	return nil
}

// Parts finds the jobs in memory that are parts of a controller's work.
type Parts struct {
	jobs map[job.Part]*partJobs
	of   map[string]map[job.ID]bool // by controller
}

// partJobs are the jobs of one part: tasks of an array, and jobs that came back after their end.
type partJobs struct {
	ids []job.ID // ascending; some may have left memory, the last one has not

	// gone is how many of them have left memory, at most half: arrays of a million tasks leave memory at once,
	// and each removal that moved the rest would hold up the state.
	gone int
}

func newParts() Parts {
	return Parts{jobs: map[job.Part]*partJobs{}, of: map[string]map[job.ID]bool{}}
}

// JobOf returns the newest job in memory that is a part, living or ended; 0: there is none. Of an array
// it is the last task in memory.
func (p *Parts) JobOf(part job.Part) job.ID {
	if j := p.jobs[part]; j != nil {
		return j.ids[len(j.ids)-1]
	}
	return 0
}

// Of lists the jobs in memory that are parts of a controller, ascending.
func (p *Parts) Of(controller string) []job.ID { return slices.Sorted(maps.Keys(p.of[controller])) }

func (p *Parts) add(e *JobRecord) {
	part := e.ExtraOrZero().Part
	if part == nil || p.of[part.Controller][e.ID] {
		return
	}
	j := p.jobs[*part]
	if j == nil {
		j = &partJobs{}
		p.jobs[*part] = j
	}
	if i, found := slices.BinarySearch(j.ids, e.ID); found {
		j.gone-- // it left memory and has come back
	} else {
		j.ids = slices.Insert(j.ids, i, e.ID)
	}
	if p.of[part.Controller] == nil {
		p.of[part.Controller] = map[job.ID]bool{}
	}
	p.of[part.Controller][e.ID] = true
}

func (p *Parts) remove(e *JobRecord) {
	part := e.ExtraOrZero().Part
	if part == nil || !p.of[part.Controller][e.ID] {
		return
	}
	inMemory := p.of[part.Controller]
	if delete(inMemory, e.ID); len(inMemory) == 0 {
		delete(p.of, part.Controller)
	}
	j := p.jobs[*part]
	j.gone++
	for n := len(j.ids); n > 0 && !inMemory[j.ids[n-1]]; n-- {
		j.ids = j.ids[:n-1]
		j.gone--
	}
	switch {
	case len(j.ids) == 0:
		delete(p.jobs, *part)
	case 2*j.gone > len(j.ids):
		j.ids = slices.DeleteFunc(j.ids, func(id job.ID) bool { return !inMemory[id] })
		j.gone = 0
	}
}
