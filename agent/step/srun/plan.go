package srun

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// plan is an srun command line, completed from the environment and the allocation.
type plan struct {
	alloc    *step.Alloc
	first    *options // of the first component: what holds for the whole step
	request  wire.Request
	options  []*options       // of each component of the request
	prep     wire.Preparation // without the step's Info
	warnings []string
}

// splitComponents cuts a command line into components at words that are a colon.
func splitComponents(args []string) [][]string {
	var out [][]string
	from := 0
	for i, a := range args {
		if a == ":" {
			out = append(out, args[from:i])
			from = i + 1
		}
	}
	return append(out, args[from:])
}

// completePlan fills in what the command line leaves open and makes the request and the
// preparation of the step.
func completePlan(a *step.Alloc, parsed []*options, environ []string) (_ *plan, err error) {
	getenv := lookupIn(environ)
	p := &plan{alloc: a, first: parsed[0]}
	for i, o := range parsed {
		if err := o.fromEnvironment(environ); err != nil {
			return nil, err
		}
		if i > 0 {
			o.inheritFrom(parsed[i-1])
		}
		groups := o.where.groups
		if len(groups) == 0 {
			groups = []int{0}
			if len(parsed) > 1 && a.Het() && i < len(a.Groups) {
				groups = []int{i} // components go to the job's groups in order
			}
		}
		for _, g := range groups {
			if g >= len(a.Groups) {
				return nil, fmt.Errorf("Invalid --het-group value: %d: the job has %d", g, len(a.Groups))
			}
			if err := p.addComponent(o.cloneOptions(), g, getenv); err != nil {
				return nil, err
			}
		}
	}
	first := p.first
	p.request.Name = first.name
	p.request.Overlap = first.share.overlap
	p.request.Exact = first.share.exact
	p.request.Immediate = first.share.immediate
	p.prep.Env = env.FilterExport(environ, first.export)
	p.prep.Umask = syscall.Umask(0o22)
	syscall.Umask(p.prep.Umask)
	p.prep.Limits = ownLimits(first.limits)
	if first.streams.terminal {
		p.prep.Terminal = &wire.Window{} // until the terminal is known
	}
	p.prep.Srun = p.stepOrigin(getenv)
	if err := p.chooseMPI(); err != nil {
		return nil, err
	}
	p.findNeed()
	p.prep.Container, err = first.stepContainer()
	return p, err
}

// stepContainer is the container that the step asks for; nil: none of its own.
func (o *options) stepContainer() (*wire.Container, error) {
	c := &o.container
	if c.Image == "" && c.Container.Name == "" {
		if !c.Container.IsZero() {
			return nil, errors.New("options of a container need --container-image, or --container-name of an earlier step")
		}
		return nil, nil
	}
	return c, nil
}

// inheritFrom takes over what a component has from the one before where it does not say
// otherwise, as in Slurm: how output is shown and where it leads.
func (o *options) inheritFrom(before *options) {
	s, f := &o.streams, &before.streams
	s.label = s.label || f.label
	s.unbuffered = s.unbuffered || f.unbuffered
	if !o.given["input"] {
		s.input = f.input
	}
	if !o.given["output"] {
		s.output = f.output
	}
	if !o.given["error"] {
		s.err = f.err
	}
	if !o.given["open-mode"] {
		s.appends = f.appends
	}
}

// lookupIn reads an environment as os.Getenv does.
func lookupIn(environ []string) func(string) string {
	values := make(map[string]string, len(environ))
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

// fromEnvironment takes options that are not on the command line from the
// environment, where Slurm's srun does.
func (o *options) fromEnvironment(environ []string) error {
	for _, set := range srunopt.Settings(environ, true) {
		name := set.Option.Name()
		switch {
		case o.given[name]:
		case set.Option.Step == srunopt.Ignored:
			o.noteUnused(set.Option)
		case set.Option.Step == srunopt.Honoured:
			if err := o.setOption(name, set.Value); err != nil {
				return fmt.Errorf("%s=%s: %w", set.Variable, set.Value, err)
			}
		}
	}
	getenv := lookupIn(environ)
	if n, err := strconv.Atoi(getenv("SLURM_NTASKS_PER_GPU")); err == nil && n > 0 && !o.given["gpus-per-task"] && !o.given["ntasks-per-gpu"] {
		o.count.perGPU = n // of the job: it binds the tasks of its steps
	}
	if gres := getenv("SLURM_STEP_GRES"); gres != "" && !o.given["gres"] && !o.given["gpus"] && !o.given["gpus-per-node"] && !o.given["gpus-per-task"] {
		if err := setGRES(o, gres); err != nil {
			return fmt.Errorf("SLURM_STEP_GRES=%s: %w", gres, err)
		}
	}
	if o.count.perGPU > 0 && o.gpu.bind == "" {
		o.gpu.bind = "single:" + strconv.Itoa(o.count.perGPU)
	}
	if o.given["cpus-per-task"] || o.given["gpus-per-task"] || o.given["threads-per-core"] {
		o.share.exact = true
	}
	return nil
}

// addComponent adds one component on one group.
func (p *plan) addComponent(o *options, group int, getenv func(string) string) error {
	if len(o.program) == 0 {
		return errNoCommand
	}
	inGroup := func(name string) int {
		v := getenv(name)
		if group > 0 {
			v = getenv(fmt.Sprintf("%s_HET_GROUP_%d", name, group))
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return 0
		}
		return n
	}
	q := wire.ComponentRequest{
		Group: group, Overcommit: o.share.overcommit, NodeList: o.where.nodeList, Exclude: o.where.exclude,
		Relative: o.where.relative, Distribution: o.where.distribution, CPUsPerTask: o.count.cpusPerTask,
	}
	p.countNodesAndTasks(o, &q, inGroup)
	if have := len(p.alloc.Groups[group].Parts); q.NodesMin > have {
		return fmt.Errorf("Only allocated %d nodes asked for %d", have, q.NodesMin)
	}
	if len(q.NodeList) > q.NodesMax && q.NodesMax > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("error: Required nodelist includes more nodes than permitted by max-node count (%d > %d). Eliminating nodes from the nodelist.", len(q.NodeList), q.NodesMax))
		q.NodeList = q.NodeList[:q.NodesMax]
	}
	if q.CPUsPerTask == 0 {
		if q.CPUsPerTask = inGroup("SRUN_CPUS_PER_TASK"); q.CPUsPerTask > 0 {
			o.share.exact, p.first.share.exact = true, true
		} else if q.CPUsPerTask = inGroup("SLURM_CPUS_PER_TASK"); q.CPUsPerTask > 0 {
			q.Soft = true
		}
	}
	p.countDevices(o, &q, inGroup)
	prog, err := o.asProgram(q.Tasks)
	if err != nil {
		return err
	}
	p.request.Components = append(p.request.Components, q)
	p.prep.Programs = append(p.prep.Programs, *prog)
	p.options = append(p.options, o)
	return nil
}

// countNodesAndTasks settles how many of each are asked for.
func (p *plan) countNodesAndTasks(o *options, q *wire.ComponentRequest, inGroup func(string) int) {
	q.NodesMin, q.NodesMax = o.count.nodesMin, o.count.nodesMax
	if q.NodesMin == 0 {
		n := inGroup("SLURM_NNODES")
		if n == 0 {
			n = inGroup("SLURM_JOB_NUM_NODES")
		}
		n = min(n, len(p.alloc.Groups[q.Group].Parts)-q.Relative-countIn(o.where.exclude, p.alloc, q.Group))
		q.NodesMin, q.NodesMax = max(n, 0), max(n, 0)
	}
	perNode := o.count.perNode
	switch {
	case o.count.tasks > 0:
		q.Tasks = o.count.tasks
	case o.count.perNode > 0: // asked for here: counts more than what the job was given
	default:
		if q.Tasks = inGroup("SLURM_NTASKS"); q.Tasks == 0 {
			q.Tasks = inGroup("SLURM_NPROCS")
		}
		if n := inGroup("SLURM_NTASKS_PER_NODE"); q.Tasks == 0 || q.Tasks == n*q.NodesMin {
			perNode = n
		}
	}
	q.TasksPerNode = perNode
	if q.Tasks > 0 && q.NodesMin > q.Tasks {
		p.warnings = append(p.warnings, fmt.Sprintf("Warning: can't run %d processes on %d nodes, setting nnodes to %d", q.Tasks, q.NodesMin, q.Tasks))
		q.NodesMin, q.NodesMax = q.Tasks, q.Tasks
	}
}

// countIn counts which of the names are nodes of a group.
func countIn(names []string, a *step.Alloc, group int) (n int) {
	for _, p := range a.Groups[group].Parts {
		if slices.Contains(names, a.Nodes[p.Node].Name) {
			n++
		}
	}
	return n
}

// countDevices settles how many devices are asked for. What the job as a whole
// asked for is not asked of every step: a step has all devices of its nodes, or what
// its own options say; but a number for each task holds for every step.
func (p *plan) countDevices(o *options, q *wire.ComponentRequest, inGroup func(string) int) {
	q.Devices = wire.DeviceRequest{None: o.gpu.none, Type: o.gpu.typ, Total: o.gpu.total, PerNode: o.gpu.perNode, PerTask: o.gpu.perTask}
	if !q.Devices.Requested() {
		q.Devices.PerTask = inGroup("SLURM_GPUS_PER_TASK")
		o.gpu.perTask = q.Devices.PerTask
	}
	if q.Devices.PerTask > 0 {
		q.Devices.Total, q.Devices.PerNode = 0, 0
		if o.gpu.bind == "" {
			o.gpu.bind = fmt.Sprintf("per_task:%d", q.Devices.PerTask)
		}
	}
}

// asProgram is what the component's tasks run, and where their input and output lead.
func (o *options) asProgram(tasks int) (*wire.Program, error) {
	dir := o.dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	prog := &wire.Program{Args: o.program, Dir: dir, Chdir: o.dir != "", GPUBind: o.gpu.bind}
	if o.multi {
		if tasks == 0 {
			return nil, fmt.Errorf("--multi-prog needs --ntasks")
		}
		if prog.PerRank, err = readMultiProg(o.program[0], o.program[1:], tasks); err != nil {
			return nil, err
		}
	}
	if o.streams.terminal { // of the first task; the others have none
		prog.Stdin = wire.Stream{Kind: wire.StreamOne}
		prog.Stdout, prog.Stderr = prog.Stdin, prog.Stdin
		return prog, nil
	}
	prog.Stdin = o.streamOf(o.streams.input)
	prog.Stdout = o.streamOf(o.streams.output)
	prog.Stderr = o.streamOf(o.streams.err)
	if o.streams.err == "" {
		if prog.Stderr = prog.Stdout; prog.Stdout.Kind == wire.StreamFile {
			prog.Stderr = wire.Stream{Kind: wire.StreamJoin}
		}
	}
	return prog, nil
}

// streamOf reads the value of --input, --output or --error. A file whose name differs
// from task to task is opened on the nodes, any other one by srun.
func (o *options) streamOf(value string) wire.Stream {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		return wire.Stream{Kind: wire.StreamOne, Rank: n}
	}
	switch {
	case value == "none":
		return wire.Stream{Kind: wire.StreamNone}
	case differsByTask(value):
		return wire.Stream{Kind: wire.StreamFile, File: value, Append: o.streams.appends}
	}
	return wire.Stream{}
}

// differsByTask reports whether a name has a pattern that differs from task to task.
func differsByTask(name string) bool {
	if strings.Contains(name, `\`) {
		return false
	}
	for {
		_, rest, ok := strings.Cut(name, "%")
		if !ok {
			return false
		}
		rest = strings.TrimLeft(rest, "0123456789")
		if rest != "" && strings.ContainsRune("tnN", rune(rest[0])) {
			return true
		}
		name = strings.TrimPrefix(rest, "%") // %% is a percent sign
	}
}

// stepOrigin says where srun runs.
func (p *plan) stepOrigin(getenv func(string) string) wire.Origin {
	host, _ := os.Hostname()
	at := wire.Origin{Host: host, Address: cmp.Or(p.alloc.Machine, "127.0.0.1")}
	if i := p.alloc.NodeIndex(getenv("SLURMD_NODENAME")); i >= 0 && p.alloc.Nodes[i].Address != "" {
		at.Address = p.alloc.Nodes[i].Address
	}
	return at
}

// stepDeadline is when the step's own time limit ends it; zero without one.
func (p *plan) stepDeadline(now time.Time) time.Time {
	if p.first.end.limit == 0 {
		return time.Time{}
	}
	return now.Add(p.first.end.limit)
}
