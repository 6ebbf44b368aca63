// Package srunopt is the table of srun's options. It says of each what it does inside
// of an allocation, where srun starts a step, and outside, where srun submits a job.
// Both sides of srun and docs/reference/srun.md are made from it.
//
// It is data: package step/srun sets the values of a step, the server reads those of a
// job as sbatch's.
package srunopt

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// Effect says what srun does with an option.
type Effect uint8

// The effects.
const (
	Honoured  Effect = iota // srun acts on it
	Submitted               // it goes to the server with the job, which reads it as sbatch's
	ToStep                  // it goes to the step that runs in the job, where it does what it does inside
	ToBoth                  // both: it goes to the server, and to the step
	Ignored                 // accepted; srun says that it has no effect
	Silent                  // accepted without effect and without a word
	Refused                 // an error
	StepOnly                // an error: it is about steps of a job that exists
)

// Option is one option of srun.
type Option struct {
	Long  string
	Short byte // 0: none
	Arg   getopt.Arg
	Same  string // the option of which this is another name; empty: none

	Step    Effect // inside of an allocation
	StepWhy string // why, where that is not Honoured
	Job     Effect // outside of an allocation
	JobWhy  string // of Ignored why, of Refused what to do instead
}

// GoesToServer reports whether the option is one of the job that srun submits.
func (o *Option) GoesToServer() bool { return o.Job == Submitted || o.Job == ToBoth }

// GoesToStep reports whether the option is one of the step in a job that srun submits.
func (o *Option) GoesToStep() bool { return o.Job == ToStep || o.Job == ToBoth }

// Getopt is the option as getopt reads it.
func (o *Option) Getopt() getopt.Option {
	return getopt.Option{Long: o.Long, Short: o.Short, Arg: o.Arg, Same: o.Same}
}

// Name is the option's main name.
func (o *Option) Name() string {
	if o.Same != "" {
		return o.Same
	}
	return o.Long
}

// All lists the options. The caller does not change them.
func All() []Option { return table }

// ByName finds an option by its whole name.
func ByName(name string) *Option {
	for i := range table {
		if table[i].Long == name {
			return &table[i]
		}
	}
	return nil
}

// Table is the options as getopt reads them; indices are those of All.
type Table struct{}

// Long implements getopt.Table. Possible names are sorted, as Slurm's srun has them.
func (t Table) Long(name string) (index int, possible []string) {
	index, possible = getopt.Match(name, len(table), t.Option)
	slices.Sort(possible)
	return index, possible
}

// Short implements getopt.Table.
func (Table) Short(letter byte) int {
	return slices.IndexFunc(table, func(o Option) bool { return o.Short == letter })
}

// Option implements getopt.Table.
func (Table) Option(index int) getopt.Option { return table[index].Getopt() }
