package sbatch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// settings are the options of one component, by the name under which options
// that exclude each other share a place.
type settings map[string]Directive

// slot is that name: the last of --requeue and --no-requeue holds.
func slot(option string) string {
	switch option {
	case "no-requeue":
		return "requeue"
	case "oversubscribe":
		return "exclusive"
	case "ntasks-per-tres":
		return "ntasks-per-gpu"
	}
	return option
}

// get returns an option if it was given by that very name.
func (s settings) get(option string) (Directive, bool) {
	d, ok := s[slot(option)]
	return d, ok && d.Option == option
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

// layer lays the command line over the environment over each component of the
// script. Options of the command line hold for all components unless it separates
// components itself, by ":".
func (p *parser) layer(components [][]Directive, env []Directive, command [][]Directive) []settings {
	n := max(len(components), len(command))
	all := make([]settings, n)
	for i := range all {
		set := settings{}
		if i < len(components) {
			for _, d := range components[i] {
				p.override(set, d)
			}
		}
		for _, d := range env {
			set.put(d)
		}
		switch {
		case len(command) == 1:
			for _, d := range command[0] {
				set.put(d)
			}
		case i < len(command):
			for _, d := range command[i] {
				set.put(d)
			}
		}
		all[i] = set
		for _, name := range propagated {
			if d, given := all[0][slot(name)]; i > 0 && given {
				if _, own := set[slot(name)]; !own {
					set[slot(name)] = d
				}
			}
		}
	}
	return all
}

// put sets an option. A memory option of the environment replaces that of the
// script, whatever its unit.
func (s settings) put(d Directive) {
	if d.name.file == environment && strings.HasPrefix(d.Option, "mem") {
		for _, other := range memoryOptions {
			delete(s, other)
		}
	}
	s[slot(d.Option)] = d
}

// override sets an option of the script, with a warning if it was set before to
// another value.
func (p *parser) override(set settings, d Directive) {
	old, twice := set[slot(d.Option)]
	if twice && (old.Value != d.Value || old.Option != d.Option) && d.Option != "mail-type" && !d.Plugin {
		p.warn(d, fmt.Sprintf("overrides %s of line %d", old.show(), old.Line))
	}
	set.put(d)
}

// show prints the option with its long name, "--nodes=2", or its variable,
// "SBATCH_GPUS=2".
func (d Directive) show() string {
	if d.name.file == environment {
		return d.Raw
	}
	if d.HasValue {
		return "--" + d.Option + "=" + d.Value
	}
	return "--" + d.Option
}

const environment = "environment"

// variables are the environment variables that sbatch reads, with the option that
// each stands for.
var variables = []struct{ name, option string }{
	{"SBATCH_ACCOUNT", "account"},
	{"SBATCH_ACCTG_FREQ", "acctg-freq"},
	{"SBATCH_ARRAY_INX", "array"},
	{"SBATCH_BATCH", "batch"},
	{"SLURM_CLUSTERS", "clusters"},
	{"SBATCH_CLUSTERS", "clusters"},
	{"SBATCH_CONSTRAINT", "constraint"},
	{"SBATCH_CONTAINER", "container"},
	{"SBATCH_CONTAINER_ID", "container-id"},
	{"SBATCH_CORE_SPEC", "core-spec"},
	{"SBATCH_CPUS_PER_GPU", "cpus-per-gpu"},
	{"SBATCH_DEBUG", "verbose"},
	{"SBATCH_DELAY_BOOT", "delay-boot"},
	{"SBATCH_DISTRIBUTION", "distribution"},
	{"SBATCH_ERROR", "error"},
	{"SBATCH_EXCLUSIVE", "exclusive"},
	{"SBATCH_EXPORT", "export"},
	{"SBATCH_GET_USER_ENV", "get-user-env"},
	{"SBATCH_GPU_BIND", "gpu-bind"},
	{"SBATCH_GPU_FREQ", "gpu-freq"},
	{"SBATCH_GPUS", "gpus"},
	{"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
	{"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
	{"SBATCH_GRES", "gres"},
	{"SBATCH_GRES_FLAGS", "gres-flags"},
	{"SLURM_HINT", "hint"},
	{"SBATCH_HINT", "hint"},
	{"SBATCH_IGNORE_PBS", "ignore-pbs"},
	{"SBATCH_INPUT", "input"},
	{"SBATCH_JOB_NAME", "job-name"},
	{"SBATCH_MEM_BIND", "mem-bind"},
	{"SBATCH_MEM_PER_CPU", "mem-per-cpu"},
	{"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
	{"SBATCH_MEM_PER_NODE", "mem"},
	{"SBATCH_NETWORK", "network"},
	{"SBATCH_NO_KILL", "no-kill"},
	{"SBATCH_NO_REQUEUE", "no-requeue"},
	{"SBATCH_OPEN_MODE", "open-mode"},
	{"SBATCH_OUTPUT", "output"},
	{"SBATCH_OVERCOMMIT", "overcommit"},
	{"SBATCH_PARTITION", "partition"},
	{"SBATCH_PROFILE", "profile"},
	{"SBATCH_QOS", "qos"},
	{"SBATCH_REQ_SWITCH", "switches"},
	{"SBATCH_REQUEUE", "requeue"},
	{"SBATCH_RESERVATION", "reservation"},
	{"SBATCH_RUNTIME", "runtime"},
	{"SBATCH_SEGMENT_SIZE", "segment"},
	{"SBATCH_SIGNAL", "signal"},
	{"SBATCH_SPREAD_JOB", "spread-job"},
	{"SBATCH_THREAD_SPEC", "thread-spec"},
	{"SBATCH_THREADS_PER_CORE", "threads-per-core"},
	{"SBATCH_TIMELIMIT", "time"},
	{"SBATCH_TRES_BIND", "tres-bind"},
	{"SBATCH_TRES_PER_TASK", "tres-per-task"},
	{"SBATCH_USE_MIN_NODES", "use-min-nodes"},
	{"SBATCH_WAIT", "wait"},
	{"SBATCH_WAIT_ALL_NODES", "wait-all-nodes"},
	{"SBATCH_WCKEY", "wckey"},
}

// fromEnvironment returns the options that NAME=VALUE pairs stand for.
func fromEnvironment(environ []string) []Directive {
	values := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && (strings.HasPrefix(name, "SBATCH_") || strings.HasPrefix(name, "SLURM_")) {
			values[name] = value
		}
	}
	if len(values) == 0 {
		return nil
	}
	var out []Directive
	for _, v := range variables {
		value, ok := values[v.name]
		opt, _ := lookup(v.option)
		if !ok || opt.Arg == None && !isSet(value) || v.name == "SBATCH_DEBUG" && value == "0" {
			continue
		}
		src := v.name + "=" + value
		w := word{text: src, file: environment, src: src, end: len(src)}
		d := Directive{Option: v.option, Raw: src, opt: opt, name: w}
		if opt.Arg == Required || opt.Arg == Optional && value != "" {
			d.Value, d.HasValue, d.value, d.valueAt = value, true, w, len(v.name)+1
		}
		out = append(out, d)
	}
	return out
}

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
		found, bad := scan(words)
		components, problems, words = append(components, found), append(problems, bad...), nil
	}
	for _, a := range args {
		if a == ":" {
			finish()
			continue
		}
		words = append(words, argument(a))
	}
	finish()
	return components, problems
}

func (p *parser) warn(d Directive, message string) {
	option := "--" + d.Option
	if d.name.file == environment {
		option, _, _ = strings.Cut(d.Raw, "=")
	}
	p.warnings = append(p.warnings, spec.Warning{
		File: d.name.file, Line: d.Line, Col: d.name.col + 1, Option: option, Message: message,
	})
}
