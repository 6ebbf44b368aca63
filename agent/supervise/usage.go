package supervise

import (
	"bufio"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// How often the memory of an attempt is sampled: soon after its start, so that short jobs have a
// number, and then ever more rarely. Everything else is counted by the kernel and read at the end.
const (
	firstSample = 250 * time.Millisecond
	lastSample  = 30 * time.Second
	slower      = 4

	// freshUsage is for how long an answer to OpUsage is given again.
	freshUsage = 5 * time.Second
)

// spawnerUsage is what the spawner alone sees of what an attempt uses. The spawner's lock guards it.
type spawnerUsage struct {
	ended   rusage.Use // of every process of the attempt that was waited for here
	orphans rusage.Use // those of them that their parents had left behind
	extern  rusage.Use // … and that were commands beside the tasks
	externs int
	counted bool               // by the group, too
	before  time.Duration      // the group's CPU time before the attempt: in user mode
	beforeS time.Duration      // … and in the kernel
	steps   map[int]rusage.Use // CPU time of ended steps by their groups
}

// beginSpawnerUsage begins to count for another attempt in a group, which may have had others.
func beginSpawnerUsage(g *cgroup.Group) spawnerUsage {
	u := spawnerUsage{steps: map[int]rusage.Use{}}
	if g != nil {
		u.before, u.beforeS, u.counted = g.CPUTime()
	}
	return u
}

// noteEnd counts a process that was waited for. known says that it was started here.
func (u *spawnerUsage) noteEnd(c child, known bool, ru *unix.Rusage) rusage.Use {
	used := barrier.UseOf(ru)
	switch {
	case known && c.site:
		return used
	case !known:
		u.orphans = plusPeak(u.orphans, used)
	case c.step <= engine.ExternStep:
		u.extern = plusPeak(u.extern, used)
		u.externs++
	}
	u.ended = plusPeak(u.ended, used)
	return used
}

// plusPeak is a sum of which Memory is the larger peak.
func plusPeak(a, b rusage.Use) rusage.Use {
	peak := max(a.Memory, b.Memory)
	a = a.Plus(b)
	a.Memory = peak
	return a
}

// noteStepCPU keeps the CPU time of a step before its group goes.
func (s *spawner) noteStepCPU(step int) {
	user, system, ok := s.group.StepCPUTime(step)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok && len(s.used.steps) < 2*rusage.MaxSteps {
		s.used.steps[step] = rusage.Use{Known: rusage.CPU, User: user, System: system}
	}
}

// usageSoFar is what the spawner has counted of the attempt, with the CPU time of what still runs
// where the group counts it.
func (s *spawner) usageSoFar() (u spawnerUsage, cpu rusage.Use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cpu = rusage.Use{Known: rusage.CPU, User: s.used.ended.User, System: s.used.ended.System}
	if s.used.counted && s.group != nil {
		if user, system, ok := s.group.CPUTime(); ok {
			cpu.Raise(rusage.Use{User: user - s.used.before, System: system - s.used.beforeS})
		}
	}
	u = s.used
	u.steps = maps.Clone(u.steps)
	return u, cpu
}

// usageMeter measures what the tasks of an attempt use on this node. The loop alone touches it.
type usageMeter struct {
	tasks map[meteredTask]*runningTask // those that run
	steps []rusage.Step                // of tasks that have ended, by number
	left  leftSteps                    // that are not among them
	peak  int64                        // of the memory of all processes; 0: no sample was taken
	now   int64                        // the last sample of it
	pause time.Duration                // before the next sample

	last   *attempt.Usage // the last answer to OpUsage
	lastAt time.Time
}

// leftSteps is what is known of steps that are not listed.
type leftSteps struct {
	count int
	last  int        // the highest number
	sum   rusage.Use // of all tasks
}

// meteredTask names a task.
type meteredTask struct{ step, rank int }

// runningTask is what is known of a task that runs.
type runningTask struct {
	pid  int
	peak int64 // of its memory; 0: no sample was taken
}

// startSampling plans the first sample.
func (s *supervisor) startSampling() {
	s.meter.pause = firstSample
	s.due.sample = time.Now().Add(firstSample)
}

// sampleMemory takes a sample of the memory and plans the next.
func (s *supervisor) sampleMemory(now time.Time) {
	if s.state.Phase != engine.Running {
		return
	}
	s.readProcesses(false)
	s.meter.pause = min(slower*s.meter.pause, lastSample)
	s.due.sample = now.Add(s.meter.pause)
}

// begin notes a task that runs.
func (m *usageMeter) begin(step, rank, pid int) {
	if m.tasks == nil {
		m.tasks = map[meteredTask]*runningTask{}
	}
	if key := (meteredTask{step, rank}); m.tasks[key] == nil {
		m.tasks[key] = &runningTask{pid: pid}
	}
}

// end notes a task that has ended, with what it used. Memory that is not above floor may be that
// of the process that started it, and is taken for unknown.
func (m *usageMeter) end(step, rank int, node string, used rusage.Use, floor int64) {
	used = withoutFloor(used, floor)
	if t := m.tasks[meteredTask{step, rank}]; t != nil && t.peak > 0 {
		used.Raise(rusage.Use{Known: rusage.Memory, Memory: t.peak})
	}
	delete(m.tasks, meteredTask{step, rank})
	m.steps, m.left = addStep(m.steps, m.left, rusage.TaskStep(step, rank, node, used))
}

// withoutFloor is a use whose memory is unknown if it is not above floor.
func withoutFloor(u rusage.Use, floor int64) rusage.Use {
	if u.Memory <= floor {
		u.Memory, u.Known = 0, u.Known&^rusage.Memory
	}
	return u
}

// addStep adds a task's part to the steps of a node, of which those in the middle go when there are
// too many.
func addStep(steps []rusage.Step, left leftSteps, s rusage.Step) ([]rusage.Step, leftSteps) {
	i, found := slices.BinarySearchFunc(steps, s.Step, func(a rusage.Step, step int) int { return cmp.Compare(a.Step, step) })
	if found {
		steps[i].Merge(s)
		return steps, left
	}
	if left.count > 0 && i == rusage.MaxSteps/2 && s.Step <= left.last { // it went before
		left.sum = left.sum.Plus(s.Sum)
		return steps, left
	}
	steps = slices.Insert(steps, i, s)
	if len(steps) > rusage.MaxSteps {
		gone := steps[rusage.MaxSteps/2]
		left.count++
		left.last = max(left.last, gone.Step)
		left.sum = left.sum.Plus(gone.Sum)
		steps = slices.Delete(steps, rusage.MaxSteps/2, rusage.MaxSteps/2+1)
	}
	return steps, left
}

// readProcesses looks at every process of the attempt on this node: it raises the peaks of the
// node and its tasks. With whole it also returns what the tasks that run have used so far, and
// what all processes moved.
func (s *supervisor) readProcesses(whole bool) (tasks map[meteredTask]rusage.Use, moved rusage.Use) {
	list, steps := s.attemptProcesses()
	leaders := map[int]meteredTask{}
	perStep := map[int]int{}
	for key, t := range s.meter.tasks {
		leaders[t.pid] = key
		perStep[key.step]++
	}
	byPID := make(map[int]proc.Stat, len(list))
	for _, p := range list {
		byPID[p.PID] = p
	}
	tasks = map[meteredTask]rusage.Use{}
	var sum int64
	for _, p := range list {
		memory := p.Pages * int64(os.Getpagesize())
		sum += memory
		u := rusage.Use{
			Known: rusage.CPU | rusage.Memory, Memory: memory,
			User: time.Duration(p.Ticks-p.System) * proc.Tick, System: time.Duration(p.System) * proc.Tick,
		}
		if whole {
			if read, written, err := proc.Traffic(p.PID); err == nil {
				u.Known |= rusage.IO
				u.Read, u.Written = read, written
				moved = moved.Plus(rusage.Use{Known: rusage.IO, Read: read, Written: written})
			}
		}
		if key, ok := ownerOf(p, byPID, leaders); ok {
			tasks[key] = tasks[key].Plus(u)
		} else if step, ok := steps[p.PID]; ok && perStep[step] == 1 {
			for key := range s.meter.tasks {
				if key.step == step {
					tasks[key] = tasks[key].Plus(u)
				}
			}
		}
	}
	for key, u := range tasks {
		t := s.meter.tasks[key]
		t.peak = max(t.peak, u.Memory)
		u.Memory = t.peak
		tasks[key] = u
	}
	if s.group != nil && s.limits.Memory > 0 {
		if n, ok := s.group.MemoryNow(); ok {
			sum = n
		}
	}
	s.meter.peak, s.meter.now = max(s.meter.peak, sum), sum
	return tasks, moved
}

// attemptProcesses lists the processes of the attempt on this node that live, and the step of
// those that are in the group of one.
func (s *supervisor) attemptProcesses() (list []proc.Stat, steps map[int]int) {
	if s.group == nil {
		list, err := proc.Descendants(unix.Getpid())
		if err != nil {
			s.log.Warn("list descendants", "err", err)
		}
		return list, nil
	}
	pids, err := s.group.Procs()
	if err != nil {
		s.log.Warn("list the control group", "err", err)
	}
	for _, pid := range pids {
		if p, err := proc.Read(pid); err == nil && !p.Dead() {
			list = append(list, p)
		}
	}
	steps = map[int]int{}
	inSteps, err := s.group.StepProcs()
	if err != nil {
		s.log.Warn("list the control groups of steps", "err", err)
	}
	for step, pids := range inSteps {
		for _, pid := range pids {
			steps[pid] = step
		}
	}
	return list, steps
}

// ownerOf finds the task that a process belongs to: it is in the session of the task's first
// process, or below that.
func ownerOf(p proc.Stat, byPID map[int]proc.Stat, leaders map[int]meteredTask) (meteredTask, bool) {
	for range len(byPID) + 1 { // a table that was read while it changed may have a circle
		if key, ok := leaders[p.Session]; ok {
			return key, true
		}
		if key, ok := leaders[p.PID]; ok {
			return key, true
		}
		parent, ok := byPID[p.Parent]
		if !ok {
			break
		}
		p = parent
	}
	return meteredTask{}, false
}

// finalUsage is what the attempt used on this node, once nothing of it lives; nil: nothing of it
// ran.
func (s *supervisor) finalUsage() *attempt.Usage {
	if s.state.Started.IsZero() {
		return nil
	}
	return s.usage(nil, rusage.Use{})
}

// liveUsage is what it has used so far.
func (s *supervisor) liveUsage() *attempt.Usage {
	m := &s.meter
	if m.last == nil || time.Since(m.lastAt) > freshUsage {
		s.takeTasks()
		tasks, moved := s.readProcesses(true)
		m.last, m.lastAt = s.usage(tasks, moved), time.Now()
		m.last.At, m.last.Node.Now = m.lastAt, m.now
	}
	return m.last
}

// usage sums up what has ended and the tasks that run.
func (s *supervisor) usage(running map[meteredTask]rusage.Use, moved rusage.Use) *attempt.Usage {
	m := &s.meter
	counted, cpu := s.spawner.usageSoFar()
	floor := proc.PeakMemory()
	out, left := &attempt.Usage{Steps: slices.Clone(m.steps)}, m.left
	add := func(step rusage.Step) { out.Steps, left = addStep(out.Steps, left, step) }
	for key := range m.tasks {
		step := rusage.TaskStep(key.step, key.rank, s.node.Name, running[key])
		if running != nil {
			step.Running = 1
		}
		add(step)
	}
	if counted.externs > 0 {
		add(rusage.TaskStep(engine.ExternStep, 0, s.node.Name, withoutFloor(counted.extern, floor)))
	}
	out.Left = left.count
	others := left.sum // of all but the batch script
	for i := range out.Steps {
		st := &out.Steps[i]
		if more, ok := counted.steps[st.Step]; ok {
			st.Sum.Raise(more)
		}
		if st.Tasks == 1 && st.MinCPU != nil {
			least := *st.MinCPU
			least.Value = int64(st.Sum.CPUTime())
			st.MinCPU = &least
		}
		if st.Step != engine.BatchStep {
			others = others.Plus(st.Sum)
		}
	}
	use := rusage.Use{Known: rusage.CPU | rusage.IO, User: cpu.User, System: cpu.System}
	use.Read, use.Written = counted.ended.Read+moved.Read, counted.ended.Written+moved.Written
	if !counted.counted { // nobody counts what runs still
		for _, u := range running {
			use.User, use.System = use.User+u.User, use.System+u.System
		}
	}
	s.giveBatchTheRest(out, use, others, counted.orphans)
	use.Memory = s.memoryPeak(out.Steps, withoutFloor(counted.ended, floor).Memory)
	if use.Memory > 0 {
		use.Known |= rusage.Memory
	}
	out.Node = rusage.Node{Name: s.node.Name, Use: use}
	return out
}

// giveBatchTheRest counts what is in no other step for the batch script: what it left behind.
func (s *supervisor) giveBatchTheRest(out *attempt.Usage, all, others, orphans rusage.Use) {
	i := slices.IndexFunc(out.Steps, func(st rusage.Step) bool { return st.Step == engine.BatchStep })
	if i < 0 {
		return
	}
	st := &out.Steps[i]
	st.Sum.Raise(rusage.Use{User: max(all.User-others.User, 0), System: max(all.System-others.System, 0)})
	st.Sum.Read, st.Sum.Written = st.Sum.Read+orphans.Read, st.Sum.Written+orphans.Written
	whole := rusage.TaskStep(st.Step, 0, s.node.Name, st.Sum)
	whole.Running = st.Running
	*st = whole
}

// memoryPeak is the peak of the memory of all processes on this node; 0: not known.
func (s *supervisor) memoryPeak(steps []rusage.Step, largest int64) int64 {
	peak := max(s.meter.peak, largest)
	for i := range steps {
		if most := steps[i].MaxMemory; most != nil {
			peak = max(peak, most.Value)
		}
	}
	if s.group == nil || s.limits.Memory == 0 { // a group without a limit had other attempts before
		return peak
	}
	bound, ok := s.group.MemoryPeak()
	if !ok || bound == 0 {
		return peak
	}
	if peak == 0 {
		return bound
	}
	return min(peak, bound)
}

// answerUsage answers an OpUsage on its connection.
func (h *supervisorSlot) answerUsage(c *conn, cmd attempt.Command) {
	r := attempt.Record{Kind: attempt.KindUsage, Ref: cmd.Ref, Time: time.Now()}
	if s := h.now; s != nil && !h.resting && s.launch.Ref == cmd.Ref && s.state.Phase == engine.Running {
		r.Used = s.liveUsage()
	}
	if !h.control.conns[c] {
		return // it was dropped
	}
	select {
	case c.queue <- r:
	default:
		_ = c.Conn.Close() // its reader sees that and drops it
	}
}

// AskUsage asks the supervisor at a control socket what an attempt has used so far; nil: it does not
// know, as one of an older version.
func AskUsage(name string, ref engine.Ref, within time.Duration) (*attempt.Usage, error) {
	c, err := socket.Dial(name, within)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := c.Write(appendLine(nil, attempt.Command{Op: attempt.OpUsage, Ref: ref})); err != nil {
		return nil, err
	}
	in := json.NewDecoder(bufio.NewReader(c))
	for states := 0; states < 2; { // the first is said to whoever connects
		var r attempt.Record
		if err := in.Decode(&r); err != nil {
			return nil, err
		}
		switch r.Kind {
		case attempt.KindUsage:
			return r.Used, nil
		case attempt.KindState:
			states++
		}
	}
	return nil, nil
}
