package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// DurationFlag adds a flag for a length of time, which is written as slurmfmt.ParseSpan reads
// it: 30s, 4h, 1d12h, 1:30:00.
func DurationFlag(fl *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	fl.Var((*durationValue)(d), name, usage)
}

type durationValue time.Duration

func (v *durationValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}

func (v *durationValue) Type() string { return "TIME" }

func (v *durationValue) Set(s string) error {
	d, err := slurmfmt.ParseSpan(s)
	*v = durationValue(d)
	return err
}

// SlurmTime is a time limit as Slurm spells it; a text that is not in units (4h, 1d12h) stays.
func SlurmTime(s string) string {
	if d, ok := slurmfmt.ParseUnits(s); ok && d > 0 && d <= slurmfmt.MaxTimeLimit {
		return slurmfmt.FormatTimeLimit(d)
	}
	return s
}
