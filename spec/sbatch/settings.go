package sbatch

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
)

// settings are the options of one component by their slot; nil where none is given.
type settings []*Directive

// get returns an option if it was given by that very name.
func (s settings) get(option string) (*Directive, bool) {
	d := s[slotOf(option)]
	return d, d != nil && d.Option == option
}

// slotValue returns what stands in an option's slot, by whatever name.
func (s settings) slotValue(option string) (*Directive, bool) {
	d := s[slotOf(option)]
	return d, d != nil
}

// hasOption reports whether an option was given by that very name.
func (s settings) hasOption(option string) bool {
	_, ok := s.get(option)
	return ok
}

// optionValue returns an option's value, "" if it was not given.
func (s settings) optionValue(option string) string {
	if d, ok := s.get(option); ok {
		return d.Value
	}
	return ""
}

// allOptions yields the options in the order of the table.
func (s settings) allOptions() iter.Seq[*Directive] {
	return func(yield func(*Directive) bool) {
		for _, d := range s {
			if d != nil && !yield(d) {
				return
			}
		}
	}
}

// propagated are the options that later components of a heterogeneous job take
// over from the first one.
var propagated = []string{
	"account", "acctg-freq", "begin", "cluster-constraint", "clusters", "comment", "deadline", "delay-boot",
	"dependency", "distribution", "error", "exclude", "export", "export-file", "get-user-env", "gid", "hold",
	"ignore-pbs", "input", "job-name", "kill-on-invalid-dep", "mail-type", "mail-user", "mcs-label", "mem",
	"nice", "no-kill", "open-mode", "output", "parsable", "priority", "profile", "propagate", "qos", "quiet",
	"reboot", "requeue", "reservation", "signal", "test-only", "time", "time-min", "uid", "verbose", "wait",
	"wait-all-nodes", "wckey", "chdir",
}

// layerSettings lays the command line over the environment over each component of the
// script. Options of the command line hold for all components unless it separates
// components itself, by ":".
func (p *parser) layerSettings(components [][]Directive, env []Directive, command [][]Directive) []settings {
	n := max(len(components), len(command))
	all := make([]settings, n)
	for i := range all {
		set := make(settings, slots)
		if i < len(components) {
			for k := range components[i] {
				p.overrideOption(set, &components[i][k])
			}
		}
		set.putAll(env)
		switch {
		case len(command) == 1:
			set.putAll(command[0])
		case i < len(command):
			set.putAll(command[i])
		}
		if all[i] = set; i > 0 {
			set.inheritFrom(all[0])
		}
	}
	return all
}

// inheritFrom takes over what later components have from the first one.
func (s settings) inheritFrom(first settings) {
	for _, name := range propagated {
		if k := slotOf(name); s[k] == nil {
			s[k] = first[k]
		}
	}
}

func (s settings) putAll(list []Directive) {
	for i := range list {
		s.setOption(&list[i])
	}
}

// setOption sets an option; mail types add up. Memory that the environment asks for gives
// way to another kind of memory option in the script or on the command line, as in
// sbatch; two kinds in these contradict each other (see fillMemory).
func (s settings) setOption(d *Directive) {
	if slices.Contains(memoryOptions, d.Option) {
		for _, name := range memoryOptions {
			k := slotOf(name)
			switch other := s[k]; {
			case other == nil || name == d.Option:
			case d.name.file == environment && other.name.file != environment:
				return
			case d.name.file != environment && other.name.file == environment:
				s[k] = nil
			}
		}
	}
	k := slotOf(d.Option)
	if old := s[k]; old != nil && d.Option == "mail-type" {
		d = addMail(old, d)
	}
	s[k] = d
}

// overrideOption sets an option of the script, with a warning if it was set before to
// another value.
func (p *parser) overrideOption(set settings, d *Directive) {
	old, twice := set.slotValue(d.Option)
	if twice && (old.Value != d.Value || old.Option != d.Option) && d.Option != "mail-type" && !d.Plugin {
		p.addWarning(d, fmt.Sprintf("overrides %s of line %d", old.showOption(), old.Line))
	}
	set.setOption(d)
}

// showOption prints the option with its long name, "--nodes=2", or its variable,
// "SBATCH_GPUS=2".
func (d *Directive) showOption() string {
	if d.name.file == environment {
		return d.Raw
	}
	if d.HasValue {
		return "--" + d.Option + "=" + d.Value
	}
	return "--" + d.Option
}

// The names of what is not a file.
const (
	environment = "environment"
	commandLine = "command line"
)

// variable is an environment variable that sbatch reads.
type variable struct {
	name   string
	option string // that it stands for; empty: none
	why    string // it has no effect, where there is no option
}

// variables are the environment variables that sbatch reads.
var variables = []variable{
	{name: "SBATCH_ACCOUNT", option: "account"},
	{name: "SBATCH_ACCTG_FREQ", option: "acctg-freq"},
	{name: "SBATCH_ARRAY_INX", option: "array"},
	{name: "SBATCH_BATCH", option: "batch"},
	{name: "SLURM_CLUSTERS", option: "clusters"},
	{name: "SBATCH_CLUSTERS", option: "clusters"},
	{name: "SBATCH_CONSTRAINT", option: "constraint"},
	{name: "SBATCH_CONTAINER", option: "container"},
	{name: "SBATCH_CONTAINER_ID", option: "container-id"},
	{name: "SBATCH_CORE_SPEC", option: "core-spec"},
	{name: "SBATCH_CPUS_PER_GPU", option: "cpus-per-gpu"},
	{name: "SBATCH_DEBUG", option: "verbose"},
	{name: "SBATCH_DELAY_BOOT", option: "delay-boot"},
	{name: "SBATCH_DISTRIBUTION", option: "distribution"},
	{name: "SBATCH_ERROR", option: "error"},
	{name: "SBATCH_EXCLUSIVE", option: "exclusive"},
	{name: "SBATCH_EXPORT", option: "export"},
	{name: "SBATCH_GET_USER_ENV", option: "get-user-env"},
	{name: "SBATCH_GPU_BIND", option: "gpu-bind"},
	{name: "SBATCH_GPU_FREQ", option: "gpu-freq"},
	{name: "SBATCH_GPUS", option: "gpus"},
	{name: "SBATCH_GPUS_PER_NODE", option: "gpus-per-node"},
	{name: "SBATCH_GPUS_PER_TASK", option: "gpus-per-task"},
	{name: "SBATCH_GRES", option: "gres"},
	{name: "SBATCH_GRES_FLAGS", option: "gres-flags"},
	{name: "SLURM_HINT", option: "hint"},
	{name: "SBATCH_HINT", option: "hint"},
	{name: "SBATCH_IGNORE_PBS", option: "ignore-pbs"},
	{name: "SBATCH_INPUT", option: "input"},
	{name: "SBATCH_JOB_NAME", option: "job-name"},
	{name: "SBATCH_MEM_BIND", option: "mem-bind"},
	{name: "SBATCH_MEM_PER_CPU", option: "mem-per-cpu"},
	{name: "SBATCH_MEM_PER_GPU", option: "mem-per-gpu"},
	{name: "SBATCH_MEM_PER_NODE", option: "mem"},
	{name: "SBATCH_NETWORK", option: "network"},
	{name: "SBATCH_NO_KILL", option: "no-kill"},
	{name: "SBATCH_NO_REQUEUE", option: "no-requeue"},
	{name: "SBATCH_OPEN_MODE", option: "open-mode"},
	{name: "SBATCH_OUTPUT", option: "output"},
	{name: "SBATCH_OVERCOMMIT", option: "overcommit"},
	{name: "SBATCH_PARTITION", option: "partition"},
	{name: "SBATCH_POWER", why: "Slurm 23.11 removed its option"},
	{name: "SBATCH_PROFILE", option: "profile"},
	{name: "SBATCH_QOS", option: "qos"},
	{name: "SBATCH_REQ_SWITCH", option: "switches"},
	{name: "SBATCH_REQUEUE", option: "requeue"},
	{name: "SBATCH_RESERVATION", option: "reservation"},
	{name: "SBATCH_RUNTIME", option: "runtime"},
	{name: "SBATCH_SEGMENT_SIZE", option: "segment"},
	{name: "SBATCH_SIGNAL", option: "signal"},
	{name: "SBATCH_SPREAD_JOB", option: "spread-job"},
	{name: "SBATCH_THREAD_SPEC", option: "thread-spec"},
	{name: "SBATCH_THREADS_PER_CORE", option: "threads-per-core"},
	{name: "SBATCH_TIMELIMIT", option: "time"},
	{name: "SBATCH_TRES_BIND", option: "tres-bind"},
	{name: "SBATCH_TRES_PER_TASK", option: "tres-per-task"},
	{name: "SBATCH_USE_MIN_NODES", option: "use-min-nodes"},
	{name: "SBATCH_WAIT", option: "wait"},
	{name: "SBATCH_WAIT4SWITCH", why: "give the time with the count: --switches=N@TIME"},
	{name: "SBATCH_WAIT_ALL_NODES", option: "wait-all-nodes"},
	{name: "SBATCH_WCKEY", option: "wckey"},
}

// fromEnvironment returns the options that NAME=VALUE pairs stand for, in the order
// of the table of variables, and the variables that stand for none.
func fromEnvironment(environ []string) (found []Directive, idle []*variable) {
	type setting struct {
		v     *variable
		entry string
	}
	var given []setting
	for _, e := range environ {
		if len(e) < 8 || e[0] != 'S' || e[5] != '_' && e[6] != '_' {
			continue
		}
		name, _, ok := strings.Cut(e, "=")
		if k, known := variableByName[name]; known && ok {
			given = append(given, setting{&variables[k], e})
		}
	}
	slices.SortStableFunc(given, func(a, b setting) int { return cmp.Compare(variableByName[a.v.name], variableByName[b.v.name]) })
	for i, g := range given {
		if i+1 < len(given) && given[i+1].v == g.v {
			continue // the last of several holds
		}
		if g.v.option == "" {
			idle = append(idle, g.v)
			continue
		}
		value := g.entry[len(g.v.name)+1:]
		opt, _ := optionByName(g.v.option)
		if opt.Arg == getopt.None && !isSet(value) || g.v.name == "SBATCH_DEBUG" && value == "0" {
			continue
		}
		w := word{text: g.entry, file: environment, src: g.entry, end: len(g.entry)}
		d := Directive{Option: g.v.option, Raw: g.entry, opt: opt, name: w}
		if opt.Arg == getopt.Required || opt.Arg == getopt.Optional && value != "" {
			d.Value, d.HasValue, d.value, d.valueAt = value, true, w, len(g.v.name)+1
		}
		found = append(found, d)
	}
	return found, idle
}

// SetVariables names the variables among NAME=VALUE pairs that stand for options of sbatch.
func SetVariables(environ []string) (names []string) {
	found, idle := fromEnvironment(environ)
	for i := range found {
		name, _, _ := strings.Cut(found[i].Raw, "=")
		names = append(names, name)
	}
	for _, v := range idle {
		names = append(names, v.name)
	}
	return names
}

// idleVariables warns of variables that have no effect and stand for no option.
func (p *parser) idleVariables(list []*variable) {
	for _, v := range list {
		p.warnings = append(p.warnings, spec.Warning{File: environment, Option: v.name, Message: "has no effect here: " + v.why})
	}
}

// variableByName finds a variable in the table.
var variableByName = func() map[string]int {
	m := make(map[string]int, len(variables))
	for i, v := range variables {
		m[v.name] = i
	}
	return m
}()

// isSet is how sbatch reads a flag from a variable: empty, "yes" or a number
// other than zero.
func isSet(value string) bool {
	n, err := strconv.Atoi(value)
	return value == "" || strings.EqualFold(value, "yes") || err == nil && n != 0
}

// fromArgs reads command-line options; ":" separates components.
func fromArgs(args []string) (components [][]Directive, problems []Problem) {
	var words []word
	finish := func() {
		found, bad := scanArguments(words)
		components, problems, words = append(components, found), append(problems, bad...), nil
	}
	for _, a := range args {
		if a == ":" {
			finish()
			continue
		}
		words = append(words, argumentWord(a))
	}
	finish()
	return components, problems
}

func (p *parser) addWarning(d *Directive, message string) {
	if len(p.warnings) > 10*maxWarnings {
		return // nobody reads them
	}
	option := "--" + d.Option
	if d.name.file == environment {
		option, _, _ = strings.Cut(d.Raw, "=")
	}
	p.warnings = append(p.warnings, spec.Warning{
		File: d.name.file, Line: d.Line, Col: d.name.col + 1, Option: option, Message: message,
	})
}
