package srun

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// parseSrun reads the options of one component. What follows the first word that is
// no option is the program.
func parseSrun(o *options, args []string) error {
	scan := getopt.New(srunopt.Table{}, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return nil
		case getopt.Terminator:
			o.program = args[it.Next:]
			return nil
		case getopt.Plain:
			o.program = args[it.Word:]
			return nil
		case getopt.Found:
			if err := o.takeOption(&srunopt.All()[it.Index], it.Value); err != nil {
				return err
			}
		default:
			return &lineError{it.Err(), srunopt.NearestTo(&it)}
		}
	}
}

// lineError is a word of the command line that srun cannot read, and the option that was
// probably meant, if one is near.
type lineError struct {
	error
	near string
}

// Unwrap returns getopt's error.
func (e *lineError) Unwrap() error { return e.error }

// takeOption enters an option, as the table says.
func (o *options) takeOption(opt *srunopt.Option, value string) error {
	name := opt.Name()
	switch opt.Step {
	case srunopt.Refused:
		return fmt.Errorf("--%s: %s", name, opt.StepWhy)
	case srunopt.Ignored:
		if name != "cpu-bind" || value != "none" { // not to be bound is what tasks are here
			o.noteUnused(opt)
		}
		return nil
	case srunopt.Silent:
		return nil
	}
	o.given[name] = true
	return o.setOption(name, value)
}

// noteUnused notes an option without effect, once.
func (o *options) noteUnused(opt *srunopt.Option) {
	if !slices.ContainsFunc(o.unused, func(u *srunopt.Option) bool { return u.Name() == opt.Name() }) {
		o.unused = append(o.unused, opt)
	}
}

// setOption sets what an option asks for, by its main name.
func (o *options) setOption(name, value string) error {
	if o.setFlag(name) {
		return nil
	}
	if c := containeropt.Find(name); c != nil && c.Refused == "" {
		if err := containeropt.Set(&o.container.Image, &o.container.Container, name, value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
		return nil
	}
	switch name {
	case "ntasks":
		return setPositive("ntasks", value, &o.count.tasks)
	case "nodes":
		return setNodes(o, value)
	case "cpus-per-task":
		return setPositive("cpus-per-task", value, &o.count.cpusPerTask)
	case "ntasks-per-node":
		return setPositive("ntasks-per-node", value, &o.count.perNode)
	case "ntasks-per-gpu":
		return setPositive("ntasks-per-gpu", value, &o.count.perGPU)
	case "gpus":
		return setGPUs(o, "gpus", value)
	case "gpus-per-node":
		return setGPUs(o, "gpus-per-node", value)
	case "gpus-per-task":
		return setGPUs(o, "gpus-per-task", value)
	case "gres":
		return setGRES(o, value)
	case "tres-per-task":
		return setTRES(o, value)
	case "gpu-bind":
		return setGPUBind(o, value)
	case "tres-bind":
		return setTRESBind(o, value)
	case "kill-on-bad-exit":
		return setKill(o, value)
	case "wait":
		return setWait(o, value)
	case "time":
		return setTime(o, value)
	case "nodelist":
		return setNodeList(o, value)
	case "exclude":
		return setExclude(o, value)
	case "relative":
		return setRelative(o, value)
	case "het-group":
		return setHetGroup(o, value)
	case "distribution":
		return setDistribution(o, value)
	case "pty":
		if value != "" {
			return fmt.Errorf("Invalid value %q for --pty: the terminal is that of the first task", value)
		}
		o.streams.terminal, o.streams.unbuffered = true, true
	case "chdir":
		o.dir = value
	case "export":
		o.export = value
	case "input":
		o.streams.input = value
	case "output":
		o.streams.output = value
	case "error":
		o.streams.err = value
	case "open-mode":
		return setOpenMode(o, value)
	case "job-name":
		o.name = value
	case "jobid":
		o.job = value
	case "propagate":
		return setPropagate(o, value)
	case "mpi":
		o.mpi = value // programs often need none of the kinds, so any is taken
	default:
		return fmt.Errorf("--%s: %w", name, errNoSetter)
	}
	return nil
}

// setFlag sets an option of which the value has no meaning, and reports whether it is
// one.
func (o *options) setFlag(name string) bool {
	switch name {
	case "label":
		o.streams.label = true
	case "unbuffered":
		o.streams.unbuffered = true
	case "exact", "exclusive":
		o.share.exact = true
	case "overlap", "oversubscribe":
		o.share.overlap = true
	case "overcommit":
		o.share.overcommit = true
	case "immediate":
		o.share.immediate = true
	case "multi-prog":
		o.multi = true
	case "quiet":
		o.show.quiet = true
	case "verbose":
		o.show.verbose++
	case "quit-on-interrupt":
		o.end.quit = true
	case "disable-status":
		o.show.noStatus = true
	case "version":
		o.show.version = true
	case "help", "usage":
		o.show.help = true
	default:
		return false
	}
	return true
}

// errNoSetter is a mistake in this program: an option that is honoured in the table
// and not here.
var errNoSetter = errors.New("nothing sets this option")
