package jobs

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/store"
)

// selection is api.Select, read.
type selection struct {
	ids        []slurmfmt.JobID // empty: all
	users      []string
	uids       []uint32 // users that were given as numbers
	accounts   []string
	partitions []string
	qos        []string
	names      []string
	states     uint32    // bit per job.State
	flags      job.Flags // CONFIGURING and COMPLETING are asked for as states
	live       bool      // states leaves out all final ones
	nodes      nodeNames
	narrow     narrow
}

// nodeNames are names of nodes, with or without their pools. The zero value is of all nodes.
type nodeNames struct {
	names  map[string]bool // nil: all
	pooled bool            // some node is named with its pool
}

// readNodeNames reads host lists.
func readNodeNames(lists []string) (nodeNames, error) {
	if len(lists) == 0 {
		return nodeNames{}, nil
	}
	names, err := hostlist.Expand(strings.Join(lists, ",")) // as one, whose size is bounded
	if err != nil {
		return nodeNames{}, fault.New(fault.Invalid, "nodes: %w", err).Advise("names or host lists: v[1-4]")
	}
	out := nodeNames{names: make(map[string]bool, len(names))}
	for _, n := range names {
		out.names[n] = true
		out.pooled = out.pooled || strings.Contains(n, "/")
	}
	return out, nil
}

// hasOneOf reports whether the last attempt of a job has, or had, one of the nodes.
func (n *nodeNames) hasOneOf(v *state.View) bool {
	return n.names == nil || slices.ContainsFunc(v.Claims, func(c fleet.Claim) bool {
		return n.names[c.Node] || n.pooled && n.names[fleet.NodeKey{Pool: v.Pool, Name: c.Node}.String()]
	})
}

const allStates = 1<<32 - 1

// Bounds of what one request may name.
const (
	mostIDs   = 100_000   // ids, as written
	mostTasks = 1_000_000 // tasks of arrays
	mostSets  = 1000      // sets of tasks, 7_[1-4,9]
)

// parseIDs reads ids of jobs: 7, 7_3, 7_[1-4,9]. What is named again is left out: a
// large array that is named a million times would fill the memory.
func parseIDs(texts []string) ([]slurmfmt.JobID, error) {
	if len(texts) > mostIDs {
		return nil, fault.New(fault.Invalid, "%d jobs are named, more than the %d that one request may name", len(texts), mostIDs).
			Advise("name arrays whole, 7 instead of 7_0, 7_1 …, or select jobs by user, name or state")
	}
	var out []slurmfmt.JobID
	type key struct {
		job   uint64
		tasks string
	}
	seen := map[key]bool{}
	n, sets := 0, 0
	for _, text := range texts {
		id, err := slurmfmt.ParseJobID(text)
		if err != nil {
			return nil, badJob(text, err)
		}
		if k := (key{id.Job, id.Tasks}); seen[k] {
			continue
		} else if len(texts) > 1 {
			seen[k] = true
		}
		if _, one := id.Task(); id.Tasks != "" && !one {
			sets++
		}
		if sets > mostSets {
			return nil, fault.New(fault.Invalid, "more than %d sets of tasks are named", mostSets).Advise("name arrays whole, 7 instead of 7_[0-9], or tasks one by one")
		}
		if set, err := slurmfmt.ParseArray(id.Tasks, slurmfmt.MaxArraySize); id.Tasks != "" && err == nil {
			for _, r := range set.Ranges {
				n += int((r.Hi-r.Lo)/r.Step) + 1
			}
		}
		if n > mostTasks {
			return nil, fault.New(fault.Invalid, "more than %d tasks are named", mostTasks).Advise("name arrays whole: 7 instead of 7_[0-999999]")
		}
		out = append(out, id)
	}
	return out, nil
}

// selectJobs reads a selection. Without states live jobs are meant; "all" are live
// ones and those of the memory's window.
func selectJobs(s api.Select, views func() []pools.View) (*selection, error) {
	out := &selection{accounts: s.Accounts, partitions: s.Partitions, qos: s.QOS, names: s.Names}
	if len(s.Pools) > 0 {
		all := views()
		out.narrow.pools, out.narrow.home = s.Pools, pools.DefaultPool(all)
		for _, name := range s.Pools {
			if !slices.ContainsFunc(all, func(v pools.View) bool { return v.Name == name }) {
				return nil, fault.New(fault.NotFound, "there is no pool %.70s", name).Advise("cox pool list shows the pools")
			}
		}
	}
	ids, err := parseIDs(s.IDs)
	if err != nil {
		return nil, err
	}
	out.ids = ids
	for _, u := range s.Users {
		if n, err := strconv.ParseUint(u, 10, 32); err == nil {
			out.uids = append(out.uids, uint32(n))
		} else {
			out.users = append(out.users, u)
		}
	}
	if err := out.readStates(s.States); err != nil {
		return nil, err
	}
	if out.nodes, err = readNodeNames(s.Nodes); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *selection) readStates(names []string) error {
	s.live = true
	if len(names) == 0 {
		for _, st := range job.States() {
			if !st.Final() {
				s.states |= 1 << st
			}
		}
		return nil
	}
	for _, n := range names {
		if strings.EqualFold(n, "all") {
			s.states, s.live = allStates, false
			continue
		}
		st, fl, ok := stateOf(n)
		switch {
		case !ok:
			return noState(n)
		case fl != 0:
			s.flags |= fl
			s.live = s.live && fl != job.Completing
		default:
			s.states |= 1 << st
			s.live = s.live && !st.Final()
		}
	}
	return nil
}

// never is a flag that no job has.
const never job.Flags = 1 << 15

// stateOf reads a state's long or short name, or a flag that squeue treats as one.
func stateOf(name string) (job.State, job.Flags, bool) {
	for _, st := range job.States() {
		if strings.EqualFold(name, st.String()) || strings.EqualFold(name, st.Short()) {
			return st, 0, true
		}
	}
	long, err := slurmfmt.ParseState(name)
	if err != nil {
		return 0, 0, false
	}
	for _, f := range flagNames {
		if f.name == long {
			return 0, f.flag, true
		}
	}
	return 0, never, true // a state of Slurm's that no job here can have
}

// controlFilter is what the control plane can leave out by itself.
func (s *selection) controlFilter() query.Filter {
	f := query.Filter{Live: s.live}
	if len(s.uids) == 0 {
		f.Users = s.users
	}
	return f
}

// matchesView says whether a job is selected, ids aside.
func (s *selection) matchesView(v *state.View) bool {
	if !s.matchesState(v) {
		return false
	}
	j := &v.Job
	sp := j.Spec
	if len(s.users)+len(s.uids) > 0 && !slices.Contains(s.users, sp.Owner.User) && !slices.Contains(s.uids, sp.Owner.UID) {
		return false
	}
	return s.narrow.matchesView(v) && isAmong(s.accounts, sp.Account) && isAmong(s.qos, sp.QOS) && isAmong(s.names, sp.Name) &&
		(len(s.partitions) == 0 || slices.ContainsFunc(sp.Partitions, func(p string) bool { return slices.Contains(s.partitions, p) })) &&
		(s.nodes.names == nil || !j.State.Final() && s.nodes.hasOneOf(v))
}

// matchesState says whether a job is in one of the states that are asked for.
func (s *selection) matchesState(v *state.View) bool {
	return s.states&(1<<v.Job.State) != 0 || s.flags != 0 && v.Job.Flags&s.flags != 0
}

// poolOf is the pool that runs a job, or in which it waits. Jobs that name none wait in home.
func poolOf(v *state.View, home string) string {
	if v.Job.State == job.Pending && v.Ref.Attempt == 0 { // it may have moved since its last attempt
		return cmp.Or(v.Job.Spec.Pool, home)
	}
	return cmp.Or(v.Pool, v.Job.Spec.Pool, home)
}

func isAmong(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// eachSelected calls f for the selected jobs that the caller may see, ascending from after
// on, until f returns false. whole: with what lists usually leave out. Views are
// valid during the call only. missing are the ids that name no job in memory.
func (c *call) eachSelected(s *selection, after job.ID, whole bool, f func(*state.View) bool) (missing []slurmfmt.JobID) {
	plane := c.s.cfg.Plane
	if len(s.ids) == 0 {
		fl := s.controlFilter()
		fl.After, fl.Whole = after, whole
		if c.s.cfg.Policy.Private && !c.ID.Admin && len(fl.Users) == 0 {
			fl.Users = []string{c.ID.Name}
		}
		plane.Scan(fl, func(v *state.View) bool {
			return !s.matchesView(v) || !c.MaySee(v) || f(v)
		})
		return nil
	}
	numbers, missing := c.selectedNumbers(s.ids)
	from, _ := slices.BinarySearch(numbers, after+1)
	for numbers = numbers[from:]; len(numbers) > 0; {
		n := closeRun(numbers)
		more, hidden := c.someSelected(s, numbers[:n], whole, f)
		missing = append(missing, hidden...)
		if !more {
			break
		}
		numbers = numbers[n:]
	}
	return missing
}

// closeRun is how many of the numbers, from the first on, lie so close that reading
// everything between them costs little.
func closeRun(numbers []job.ID) int {
	n := 1
	for n < len(numbers) && numbers[n]-numbers[n-1] < 64 {
		n++
	}
	return n
}

// someSelected calls f for the selected among these numbers; more false: f wants no more.
// hidden are those that the caller may not see.
func (c *call) someSelected(s *selection, numbers []job.ID, whole bool, f func(*state.View) bool) (more bool, hidden []slurmfmt.JobID) {
	more = true
	c.s.cfg.Plane.Scan(query.Filter{After: numbers[0] - 1, Whole: whole}, func(v *state.View) bool {
		for len(numbers) > 0 && numbers[0] < v.Job.ID { // it left memory meanwhile
			numbers = numbers[1:]
		}
		if len(numbers) == 0 {
			return false
		}
		if numbers[0] == v.Job.ID {
			numbers = numbers[1:]
			switch {
			case !c.MaySee(v):
				hidden = append(hidden, idOf(v))
			case s.matchesView(v):
				more = f(v)
			}
		}
		return more && len(numbers) > 0
	})
	return more, hidden
}

func idOf(v *state.View) slurmfmt.JobID {
	if a := v.Job.Array; a != nil {
		return slurmfmt.JobID{Job: uint64(a.Job), Tasks: strconv.FormatUint(uint64(a.Index), 10), Het: -1}
	}
	return slurmfmt.JobID{Job: uint64(v.Job.ID), Het: -1}
}

// selectedNumbers are the jobs in memory that the ids name, ascending, each once. An array
// is read once, however many of its tasks are named, and nothing is made of a set of
// indices but the set.
func (c *call) selectedNumbers(ids []slurmfmt.JobID) (out []job.ID, missing []slurmfmt.JobID) {
	arrays := map[job.ID]*taskSets{}
	for _, id := range ids {
		if id.Tasks != "" {
			a := arrays[job.ID(id.Job)]
			if a == nil {
				a = &taskSets{one: map[uint32]bool{}, many: map[slurmfmt.JobID]*taskSet{}}
				arrays[job.ID(id.Job)] = a
			}
			a.add(id)
			continue
		}
		tasks := c.s.cfg.Plane.Tasks(job.ID(id.Job))
		if out = append(out, tasks...); len(tasks) == 0 {
			missing = append(missing, id)
		}
	}
	for array, of := range arrays {
		out = append(out, c.selectedTasks(array, of)...)
	}
	for _, id := range ids {
		if id.Tasks != "" && !arrays[job.ID(id.Job)].wasFound(id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), missing
}

// taskSets are the tasks of one array that were asked for: 7_3 alone, 7_[1-4,9]
// together.
type taskSets struct {
	one  map[uint32]bool // whether it was found
	many map[slurmfmt.JobID]*taskSet
}

type taskSet struct {
	set   slurmfmt.Array
	found bool // one of them
}

func (s *taskSets) add(id slurmfmt.JobID) {
	if index, one := id.Task(); one {
		s.one[index] = false
		return
	}
	s.many[id] = &taskSet{set: setOf(id)}
}

// takeTask notes a task that is there, and reports whether it was asked for.
func (s *taskSets) takeTask(index uint32) bool {
	_, named := s.one[index]
	if named {
		s.one[index] = true
	}
	for _, m := range s.many {
		if m.set.Contains(index) {
			m.found, named = true, true
		}
	}
	return named
}

func (s *taskSets) wasFound(id slurmfmt.JobID) bool {
	if index, one := id.Task(); one {
		return s.one[index]
	}
	return s.many[id].found
}

// setOf are the indices that "7_[1-4,9]" names.
func setOf(id slurmfmt.JobID) slurmfmt.Array {
	set, err := slurmfmt.ParseArray(id.Tasks, slurmfmt.MaxArraySize)
	if err != nil {
		return slurmfmt.Array{} // ParseJobID has seen it
	}
	return set
}

// selectedTasks finds tasks of an array in memory that were asked for.
func (c *call) selectedTasks(array job.ID, asked *taskSets) (out []job.ID) {
	c.s.cfg.Plane.Scan(query.Filter{After: array - 1}, func(v *state.View) bool {
		a := v.Job.Array
		if a == nil || a.Job != array {
			return v.Job.ID < array
		}
		if asked.takeTask(a.Index) {
			out = append(out, v.Job.ID)
		}
		return c.Ctx().Err() == nil
	})
	return out
}

// findJob returns the job that a path names: 7, or 7_3. The caller must be allowed the
// verb about it.
func (c *call) findJob(name string, verb auth.Verb) (state.View, error) {
	v, exact, err := c.lookUp(name, verb)
	if err == nil && !exact {
		return v, fault.New(fault.NotFound, "%s is an array whose first task is no longer kept", name).Advise("name one of its tasks, such as %s", v.Job.Name())
	}
	return v, err
}

// findAny is find. For the number of an array whose first task is no longer kept it returns
// another one.
func (c *call) findAny(name string, verb auth.Verb) (state.View, error) {
	v, _, err := c.lookUp(name, verb)
	return v, err
}

// firstOfNumber is the job of a number; of an array whose first task is no longer kept, another one.
func (c *call) firstOfNumber(number uint64) (state.View, error) {
	v, err := c.s.cfg.Plane.Job(c.Ctx(), job.ID(number))
	if fault.KindOf(err) == fault.NotFound {
		if other, taskErr := c.s.cfg.Plane.TaskOf(c.Ctx(), job.ID(number)); !errors.Is(err, store.ErrDamaged) || taskErr == nil {
			return other, taskErr
		}
	}
	return v, err
}

// lookUp returns the job that a path names (exact), or a task of the array.
func (c *call) lookUp(name string, verb auth.Verb) (v state.View, exact bool, err error) {
	id, err := slurmfmt.ParseJobID(name)
	if err != nil {
		return state.View{}, false, badJob(name, err)
	}
	exact = true
	if id.Tasks == "" {
		v, err = c.firstOfNumber(id.Job)
		exact = uint64(v.Job.ID) == id.Job
	} else if task, one := id.Task(); one {
		v, err = c.s.cfg.Plane.Find(c.Ctx(), job.ID(id.Job), task)
	} else {
		return v, false, fault.New(fault.Invalid, "job %s: one job or task is meant here", name).Advise("name one task, such as %d_1", id.Job)
	}
	if errors.Is(err, store.ErrDamaged) && c.MaySee(&state.View{Job: job.Job{Spec: &job.Spec{Owner: job.Owner{UID: nobody}}}}) {
		return v, false, err // whose it is cannot be known
	}
	if fault.KindOf(err) == fault.NotFound {
		return v, false, unknownJob(name)
	}
	if err != nil {
		return v, false, err
	}
	o := auth.Job(v.Job.Name(), v.Job.Spec.Owner.UID)
	if !c.MaySee(&v) {
		return v, false, unknownJob(name) // its existence is nobody's business
	}
	return v, exact, c.Allowed(verb, o)
}

// nobody is a user who has no jobs.
const nobody = 1<<32 - 1

func badJob(text string, err error) error {
	return fault.New(fault.Invalid, "job %s: %w", text, err).Advise("name it as cox queue shows it: 7, 7_3, 7_[1-4,9]")
}

func noState(name string) error {
	var known []string
	for _, st := range job.States() {
		known = append(known, st.String())
	}
	return fault.New(fault.Invalid, "there is no state %q", name).Advise("states of jobs: all, %s", strings.Join(known, ", "))
}

func unknownJob(name string) error {
	return fault.New(fault.NotFound, "there is no job %s", name).
		Advise("live jobs: cox queue; ended ones, as long as they are kept: cox history")
}
