package salloc

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// line is salloc's command line with its environment, taken apart.
type line struct {
	options   []string // those that the server reads, with ":" between components
	command   []string // empty: the user's shell
	given     map[string]bool
	chdir     string // -D; empty: this process's directory
	noShell   bool
	bell      bool
	quiet     bool
	verbose   bool
	help      bool
	version   bool
	clusters  *string
	immediate time.Duration  // 0: not given
	kill      syscall.Signal // to the command when the allocation is revoked; 0: as salloc does by itself
}

// ofScripts are options of sbatch that salloc does not have.
var ofScripts = []string{
	"array", "batch", "error", "export", "export-file", "external", "ignore-pbs", "input", "mem-update", "no-requeue", "open-mode", "output", "parsable",
	"propagate", "requeue", "resources", "runtime", "test-only", "wait", "wrap",
}

// Options are salloc's options as getopt reads them. Their order is that of indices.
func Options() getopt.List {
	var list getopt.List
	for _, o := range sbatch.Table() {
		if !slices.Contains(ofScripts, o.Name) {
			list = append(list, getopt.Option{Long: o.Name, Short: o.Short, Arg: o.Arg, Same: o.Same})
		}
	}
	return append(list, own...)
}

// own are the options that sbatch does not have.
var own = getopt.List{
	{Long: "bell"},
	{Long: "immediate", Short: 'I', Arg: getopt.Optional},
	{Long: "kill-command", Short: 'K', Arg: getopt.Optional},
	{Long: "no-bell"},
	{Long: "no-shell"},
	{Long: "power", Arg: getopt.Required},
	{Long: "x11", Arg: getopt.Optional},
}

// variables are the environment variables that stand for an option, in the order of man salloc.
// Of two for one option the first that is set counts.
var variables = []struct{ name, option string }{
	{"SALLOC_ACCOUNT", "account"},
	{"SALLOC_ACCTG_FREQ", "acctg-freq"},
	{"SALLOC_BELL", "bell"},
	{"SALLOC_BURST_BUFFER", "bb"},
	{"SALLOC_CLUSTERS", "clusters"},
	{"SLURM_CLUSTERS", "clusters"},
	{"SALLOC_CONSTRAINT", "constraint"},
	{"SALLOC_CONTAINER", "container"},
	{"SALLOC_CORE_SPEC", "core-spec"},
	{"SALLOC_CPUS_PER_GPU", "cpus-per-gpu"},
	{"SALLOC_DEBUG", "verbose"},
	{"SALLOC_DELAY_BOOT", "delay-boot"},
	{"SALLOC_EXCLUSIVE", "exclusive"},
	{"SALLOC_GPU_BIND", "gpu-bind"},
	{"SALLOC_GPU_FREQ", "gpu-freq"},
	{"SALLOC_GPUS", "gpus"},
	{"SALLOC_GPUS_PER_NODE", "gpus-per-node"},
	{"SALLOC_GPUS_PER_TASK", "gpus-per-task"},
	{"SALLOC_GRES", "gres"},
	{"SALLOC_GRES_FLAGS", "gres-flags"},
	{"SALLOC_HINT", "hint"},
	{"SLURM_HINT", "hint"},
	{"SALLOC_IMMEDIATE", "immediate"},
	{"SALLOC_KILL_CMD", "kill-command"},
	{"SALLOC_MEM_BIND", "mem-bind"},
	{"SALLOC_MEM_PER_CPU", "mem-per-cpu"},
	{"SALLOC_MEM_PER_GPU", "mem-per-gpu"},
	{"SALLOC_MEM_PER_NODE", "mem"},
	{"SALLOC_NETWORK", "network"},
	{"SALLOC_NO_BELL", "no-bell"},
	{"SALLOC_NO_KILL", "no-kill"},
	{"SALLOC_OVERCOMMIT", "overcommit"},
	{"SALLOC_PARTITION", "partition"},
	{"SALLOC_POWER", "power"},
	{"SALLOC_PROFILE", "profile"},
	{"SALLOC_QOS", "qos"},
	{"SALLOC_REQ_SWITCH", "switches"},
	{"SALLOC_RESERVATION", "reservation"},
	{"SALLOC_SIGNAL", "signal"},
	{"SALLOC_SPREAD_JOB", "spread-job"},
	{"SALLOC_THREAD_SPEC", "thread-spec"},
	{"SALLOC_THREADS_PER_CORE", "threads-per-core"},
	{"SALLOC_TIMELIMIT", "time"},
	{"SALLOC_USE_MIN_NODES", "use-min-nodes"},
	{"SALLOC_WAIT_ALL_NODES", "wait-all-nodes"},
	{"SALLOC_WCKEY", "wckey"},
}

// parseLine takes the command line apart: options up to the first word that is none. Variables
// of the environment stand for options that are not on it.
func parseLine(args, environ []string) (*line, error) {
	l := &line{given: map[string]bool{}}
	if err := l.readOptions(args); err != nil {
		return nil, err
	}
	return l, l.readVariables(environ)
}

// readOptions reads the words of the command line.
func (l *line) readOptions(args []string) error {
	table := Options()
	scan := getopt.New(table, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return nil
		case getopt.Terminator:
			l.command = args[it.Next:]
			return nil
		case getopt.Plain:
			if args[it.Word] != ":" {
				l.command = args[it.Word:]
				return nil
			}
			l.options = append(l.options, ":")
		case getopt.Found:
			opt := table[it.Index]
			l.given[opt.Canonical()] = true
			word := "--" + opt.Long
			if it.HasValue {
				word += "=" + it.Value
			}
			if err := l.takeOption(opt.Canonical(), it.Value, word); err != nil {
				return err
			}
		default:
			near := ""
			if it.Kind == getopt.Unknown && !it.Letter {
				near = srunopt.Meant(it.Name, len(table), table.Option)
			}
			return &slurmcmd.UsageError{Text: it.Err().Error(), Near: near}
		}
	}
}

// readVariables takes options that are not on the command line from the environment.
func (l *line) readVariables(environ []string) error {
	values := map[string]string{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok {
			values[name] = value
		}
	}
	if delay := values["SALLOC_WAIT4SWITCH"]; delay != "" && values["SALLOC_REQ_SWITCH"] != "" {
		values["SALLOC_REQ_SWITCH"] += "@" + delay
	}
	table := Options()
	for _, v := range variables {
		value, set := values[v.name]
		i := slices.IndexFunc(table, func(o getopt.Option) bool { return o.Long == v.option })
		if !set || i < 0 || l.given[v.option] || strings.HasPrefix(v.option, "mem") && (l.given["mem"] || l.given["mem-per-cpu"] || l.given["mem-per-gpu"]) {
			continue
		}
		word := "--" + v.option
		switch {
		case table[i].Arg == getopt.None || v.option == "no-kill":
			if !isOn(value) {
				continue
			}
			value = ""
		case value != "":
			word += "=" + value
		case table[i].Arg == getopt.Required:
			continue
		}
		l.given[v.option] = true
		if err := l.takeOption(v.option, value, word); err != nil {
			return err
		}
	}
	return nil
}

// isOn reads the value of a variable that stands for an option without an argument.
func isOn(value string) bool {
	n, err := strconv.Atoi(value)
	return value == "" || value == "yes" || err == nil && n != 0
}

// takeOption enters an option; word is how the server is told of it.
func (l *line) takeOption(name, value, word string) (err error) {
	switch name {
	case "bell":
		l.bell = true
	case "no-bell":
		l.bell = false
	case "chdir":
		l.chdir = value
	case "clusters":
		l.clusters = &value
	case "help", "usage":
		l.help = true
	case "immediate":
		l.immediate, err = slurmcmd.ImmediateTime(value)
	case "kill-command":
		return l.setKillSignal(value)
	case "no-shell":
		l.noShell = true
	case "power": // nodes are not powered down
	case "quiet":
		l.quiet = true
	case "verbose":
		l.verbose = true
	case "version":
		l.version = true
	case "x11":
		return fault.New(fault.Unsupported, "--x11 is not built yet").Advise("leave it out: windows are not forwarded; cox forward carries a port of the job")
	default:
		l.options = append(l.options, word)
	}
	return err
}

// setKillSignal reads the signal for the command of an allocation that is revoked.
func (l *line) setKillSignal(value string) error {
	if value == "" {
		return nil
	}
	n, err := slurmfmt.ParseSignalName(value)
	if err != nil {
		return slurmcmd.Textf("Invalid signal %q for --kill-command", value)
	}
	l.kill = syscall.Signal(n)
	return nil
}
