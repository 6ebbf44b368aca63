package srun

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/rlimit"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// options is what one component of an srun command line asks for.
type options struct {
	given   map[string]bool // options on the command line that are honoured, by long name
	unused  []*srunopt.Option
	program []string
	multi   bool // the program is a file of --multi-prog

	count   counts
	gpu     gpus
	where   placing
	share   sharing
	streams streams
	end     ends
	show    shown

	dir, export, name, job, mpi string

	container wire.Container
	limits    rlimit.Choice // which limits of this process tasks get
}

// counts are the numbers of nodes and tasks that are asked for; 0: not said.
type counts struct {
	tasks, cpusPerTask, perNode, perGPU int
	nodesMin, nodesMax                  int
}

// gpus says how many GPUs are asked for, and how tasks are bound to them.
type gpus struct {
	total, perNode, perTask int
	typ                     string
	none                    bool
	bind                    string
}

// placing says on which nodes and task groups the component runs, and in which order.
type placing struct {
	nodeList, exclude []string
	relative          int
	groups            []int
	distribution      string
}

// sharing says what the step leaves to other steps, and whether it waits for them.
type sharing struct{ exact, overlap, overcommit, immediate bool }

// streams says where input and output lead and how they are shown.
type streams struct {
	input, output, err         string
	appends, label, unbuffered bool
	terminal                   bool // --pty
}

// ends says what ends the step.
type ends struct {
	killOnBadExit int           // -1: not said
	wait          time.Duration // after the first task's end; negative: not said
	limit         time.Duration
	quit          bool // at the first interrupt
}

// shown says what srun prints of its own.
type shown struct {
	quiet, noStatus, version, help bool
	verbose                        int
}

// newOptions is nothing asked.
func newOptions() *options {
	return &options{given: make(map[string]bool), end: ends{killOnBadExit: -1, wait: -1}}
}

// cloneOptions copies the options, so that the copy can be changed.
func (o *options) cloneOptions() *options {
	c := *o
	c.given = maps.Clone(o.given)
	return &c
}

// numericError is a number that is none, or out of its range.
type numericError struct{ option, value string }

func (e *numericError) Error() string {
	return fmt.Sprintf("Invalid numeric value %q for --%s.", e.value, e.option)
}

// usageError is an error after which srun exits with 255.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// setPositive reads a number of at least one.
func setPositive(name, value string, at *int) error {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 || n > 1<<22 {
		return &numericError{name, value}
	}
	*at = n
	return nil
}

// setNodes reads "4", "2-4" and "2-".
func setNodes(o *options, value string) error {
	least, most, isRange := strings.Cut(value, "-")
	counts := []string{least}
	if isRange && most != "" {
		counts = append(counts, most)
	}
	var n []int
	for _, c := range counts {
		k, err := strconv.Atoi(c)
		if err != nil || k < 1 || k > 1<<20 {
			return &usageError{fmt.Sprintf("%q is not a valid node count", c)}
		}
		n = append(n, k)
	}
	o.count.nodesMin, o.count.nodesMax = n[0], n[len(n)-1]
	if isRange && most == "" {
		o.count.nodesMax = 1 << 20
	}
	if o.count.nodesMax < o.count.nodesMin {
		return &usageError{fmt.Sprintf("%q is not a valid node count", value)}
	}
	return nil
}

// setGPUs reads "[type:]count" for one of the options that count GPUs.
func setGPUs(o *options, option, value string) error {
	if value == "0" || value == "none" {
		o.gpu.none = true
		return nil
	}
	list, err := slurmfmt.ParseGPUs(value)
	if err != nil {
		return fmt.Errorf("Invalid --%s specification: %w", option, err)
	}
	if len(list) != 1 {
		return fmt.Errorf("--%s=%s: not built yet: several types in one step", option, value)
	}
	return o.countGPUs(option, list[0])
}

// countGPUs enters a count of GPUs.
func (o *options) countGPUs(option string, g slurmfmt.GRES) error {
	if g.Count > 1<<16 {
		return &numericError{option, strconv.FormatInt(g.Count, 10)}
	}
	n := int(g.Count)
	if n == 0 {
		o.gpu.none = true
		return nil
	}
	o.gpu.none, o.gpu.typ = false, g.Type
	switch option {
	case "gpus":
		o.gpu.total = n
	case "gpus-per-task":
		o.gpu.perTask = n
	default:
		o.gpu.perNode = n
	}
	return nil
}

// setGRES reads "gpu:2", "gpu:h100:2" and "none".
func setGRES(o *options, value string) error {
	list, err := slurmfmt.ParseGRES(strings.ReplaceAll(value, "gres/", ""))
	if err != nil {
		return fmt.Errorf("Invalid --gres specification: %w", err)
	}
	if len(list) == 0 {
		o.gpu.none = true
	}
	for _, g := range list {
		if g.Name != "gpu" {
			return fmt.Errorf("--gres=%s: not built yet: a step's share of other resources than gpu", value)
		}
		if err := o.countGPUs("gres", g); err != nil {
			return err
		}
	}
	return nil
}

// setTRES reads what --tres-per-task says of CPUs and GPUs.
func setTRES(o *options, value string) error {
	list, err := slurmfmt.ParseTRES(value)
	if err != nil {
		return fmt.Errorf("Invalid --tres-per-task specification: %w", err)
	}
	for _, t := range list {
		switch t.Name {
		case "cpu":
			if err := setPositive("cpus-per-task", t.Value, &o.count.cpusPerTask); err != nil {
				return err
			}
			o.given["cpus-per-task"] = true
		case "gres/gpu":
			if err := o.countGPUs("gpus-per-task", t.GRES); err != nil {
				return err
			}
			o.given["gpus-per-task"] = true
		default:
			return fmt.Errorf("--tres-per-task=%s: not built yet: other resources than cpu and gres/gpu", value)
		}
	}
	return nil
}

// setGPUBind checks the rule of --gpu-bind.
func setGPUBind(o *options, value string) error {
	rule := strings.TrimPrefix(strings.TrimPrefix(value, "verbose,"), "v,")
	name, arg, _ := strings.Cut(rule, ":")
	switch name {
	case "none", "closest", "verbose", "v":
	case "single", "per_task":
		if n, err := strconv.Atoi(arg); arg != "" && (err != nil || n < 1) {
			return fmt.Errorf("Invalid --gpu-bind argument: %s", value)
		}
	case "map_gpu", "mask_gpu", "map", "mask":
		words, err := env.ExpandRepeats(arg)
		for _, w := range words {
			if _, bad := strconv.ParseUint(w, 0, 64); bad != nil {
				err = bad
			}
		}
		if err != nil {
			return fmt.Errorf("Invalid --gpu-bind argument: %s", value)
		}
	default:
		return fmt.Errorf("Invalid --gpu-bind argument: %s", value)
	}
	o.gpu.bind = rule
	return nil
}

// setTRESBind reads the newer spelling, gres/gpu:RULE.
func setTRESBind(o *options, value string) error {
	rule, ok := strings.CutPrefix(strings.TrimPrefix(value, "gres/"), "gpu:")
	if !ok {
		return fmt.Errorf("Invalid --tres-bind argument: %s", value)
	}
	return setGPUBind(o, rule)
}

func setKill(o *options, value string) error {
	switch value {
	case "", "1":
		o.end.killOnBadExit = 1
	case "0":
		o.end.killOnBadExit = 0
	default:
		return &numericError{"kill-on-bad-exit", value}
	}
	return nil
}

func setWait(o *options, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return &numericError{"wait", value}
	}
	o.end.wait = time.Duration(n) * time.Second
	return nil
}

func setTime(o *options, value string) error {
	d, err := slurmfmt.ParseDuration(value)
	if err != nil {
		return &usageError{"Invalid --time specification"}
	}
	o.end.limit = d
	return nil
}

// setNodeList reads names, or a file of names if the value holds a slash.
func setNodeList(o *options, value string) error {
	names, err := parseNodeNames(value)
	o.where.nodeList = names
	return err
}

func setExclude(o *options, value string) error {
	names, err := parseNodeNames(value)
	o.where.exclude = names
	return err
}

func parseNodeNames(value string) ([]string, error) {
	if strings.Contains(value, "/") {
		text, err := os.ReadFile(value)
		if err != nil {
			return nil, fmt.Errorf("Unable to open file %w", err)
		}
		value = strings.Join(strings.Fields(string(text)), ",")
	}
	names, err := hostlist.Expand(value)
	if err != nil {
		return nil, fmt.Errorf("Invalid hostlist: %w", err)
	}
	var once []string
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once, nil
}

func setRelative(o *options, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return &numericError{"relative", value}
	}
	o.where.relative = n
	return nil
}

// setHetGroup reads "0,2-3".
func setHetGroup(o *options, value string) error {
	o.where.groups = nil
	for word := range strings.SplitSeq(value, ",") {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || low < 0 || high < low || high > 127 {
			return fmt.Errorf("Invalid --het-group value: %s", value)
		}
		for g := low; g <= high; g++ {
			if !slices.Contains(o.where.groups, g) {
				o.where.groups = append(o.where.groups, g)
			}
		}
	}
	slices.Sort(o.where.groups)
	return nil
}

// setDistribution checks the rule that deals ranks to nodes. How tasks lie inside a
// node, after a colon, concerns binding and is not looked at.
func setDistribution(o *options, value string) error {
	nodes, pack, _ := strings.Cut(value, ",")
	nodes, _, _ = strings.Cut(nodes, ":")
	word, size, _ := strings.Cut(strings.ToLower(nodes), "=")
	switch word {
	case "*", "":
		nodes = ""
	case "block", "cyclic":
		nodes = word
	case "plane":
		if n, err := strconv.Atoi(size); err != nil || n < 1 {
			return &usageError{"Invalid --distribution specification"}
		}
		nodes = word + "=" + size
	case "arbitrary":
		return errors.New("--distribution=arbitrary: not built yet: SLURM_HOSTFILE is not read")
	default:
		return &usageError{"Invalid --distribution specification"}
	}
	if strings.EqualFold(pack, "pack") {
		if nodes == "" {
			nodes = "block"
		}
		nodes += ",pack"
	}
	o.where.distribution = nodes
	return nil
}

func setOpenMode(o *options, value string) error {
	switch value {
	case "a", "append":
		o.streams.appends = true
	case "t", "truncate":
		o.streams.appends = false
	default:
		return &usageError{"Invalid --open-mode specification"}
	}
	return nil
}
