package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/fault"
)

// slurmFlags are settings of a pool of Slurm's that have flags of their own.
type slurmFlags struct {
	flags                  *pflag.FlagSet
	local, placed          bool
	ssh, rest              string
	shared                 string
	partition, reservation string
}

// slurmSettingNames are these settings, by name.
var slurmSettingNames = []string{"local", "ssh", "rest", "shared", "placed", "partition", "reservation"}

func (s *slurmFlags) add(fl *pflag.FlagSet) {
	s.flags = fl
	fl.BoolVar(&s.local, "local", false, "reach Slurm by its commands on the server's machine")
	fl.StringVar(&s.ssh, "ssh", "", "reach Slurm by its commands on a login node, [user@]host")
	fl.StringVar(&s.rest, "rest", "", "reach Slurm by slurmrestd: http://HOST:PORT, https://HOST:PORT, unix:/PATH; beside it, --local or --ssh does what slurmrestd cannot")
	fl.StringVar(&s.shared, "shared", "", "a directory that Slurm's nodes share, for locks")
	fl.BoolVar(&s.placed, "placed", false, "choose the nodes here, and pin jobs to them; else Slurm chooses")
	fl.StringVar(&s.partition, "partition", "", "Slurm's partition for all jobs of the pool")
	fl.StringVar(&s.reservation, "reservation", "", "Slurm's reservation for all jobs of the pool")
}

// into adds the flags that were said. What --set says too is refused; they outrank a file.
func (s *slurmFlags) into(all map[string]json.RawMessage, set []string) error {
	if s.flags.Changed("local") && s.local && s.ssh != "" {
		return fault.New(fault.Invalid, "--local and --ssh %s: Slurm's commands run on the server's machine or on a login node", s.ssh).Advise("leave one of them; --rest goes with either")
	}
	values := map[string]any{"local": s.local, "ssh": s.ssh, "rest": s.rest, "shared": s.shared, "placed": s.placed, "partition": s.partition, "reservation": s.reservation}
	for _, name := range slurmSettingNames {
		if !s.flags.Changed(name) {
			continue
		}
		for _, t := range set {
			if strings.HasPrefix(t, name+"=") {
				return fault.New(fault.Invalid, "--%s and --set %s", name, t).Advise("leave one of them: they are the same setting")
			}
		}
		b, err := json.Marshal(values[name])
		if err != nil {
			return err
		}
		all[name] = b
	}
	return nil
}
