// Package rlimit has the resource limits that Slurm passes from the submitter of a job to its
// processes: their names, the --propagate option that chooses among them, and the SLURM_RLIMIT_
// variables in which they travel. It reads and sets no limit itself.
package rlimit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Unlimited is the value of a limit that does not limit, as Linux and Slurm write it.
const Unlimited = math.MaxUint64

// Prefix begins the names of the variables that carry limits.
const Prefix = "SLURM_RLIMIT_"

// Kind is a resource limit.
type Kind struct {
	Name     string // as --propagate has it
	Resource int    // number of the resource on Linux
}

// Kinds are the limits that are passed on, as in Slurm. They must not be changed.
var Kinds = []Kind{
	{"CPU", 0}, {"FSIZE", 1}, {"DATA", 2}, {"STACK", 3}, {"CORE", 4}, {"RSS", 5}, {"NPROC", 6}, {"NOFILE", 7}, {"MEMLOCK", 8}, {"AS", 9},
}

// Limit is a soft limit.
type Limit struct {
	Kind
	Soft uint64 // in the unit of setrlimit: bytes, seconds or a count; Unlimited: none
}

// String is NAME=VALUE.
func (l Limit) String() string { return l.Name + "=" + strconv.FormatUint(l.Soft, 10) }

// Parse reads NAME=VALUE.
func Parse(text string) (Limit, error) {
	name, value, _ := strings.Cut(text, "=")
	k, ok := kindOf(name)
	n, err := strconv.ParseUint(value, 10, 64)
	if !ok || err != nil {
		return Limit{}, fmt.Errorf("%.60q is no resource limit", text)
	}
	return Limit{Kind: k, Soft: n}, nil
}

func kindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Choice is what --propagate chooses. Its zero value is every limit.
type Choice struct {
	names []string // nil: all of them
}

// ParsePropagate reads --propagate: ALL, also without a value, NONE, or names of limits, whatever
// their case. The error is Slurm's own sentence.
func ParsePropagate(value string) (Choice, error) {
	switch strings.ToUpper(value) {
	case "", "ALL":
		return Choice{}, nil
	case "NONE":
		return Choice{names: []string{}}, nil
	}
	var c Choice
	for word := range strings.SplitSeq(value, ",") {
		name := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(word)), "RLIMIT_")
		if _, ok := kindOf(name); !ok {
			//lint:ignore ST1005 these are Slurm's words
			return Choice{}, fmt.Errorf("Bad rlimit name: %s", word)
		}
		c.names = append(c.names, name)
	}
	return c, nil
}

// Has reports whether a limit is passed on.
func (c Choice) Has(k Kind) bool { return c.names == nil || slices.Contains(c.names, k.Name) }

// Apply is an environment whose variables of limits are those that the choice lets through, and no
// others. The environment is not changed.
func (c Choice) Apply(env []string, limits []Limit) []string {
	out := Without(env)
	for _, l := range limits {
		if c.Has(l.Kind) {
			out = append(out, Prefix+l.String())
		}
	}
	return out
}

// Without is an environment without variables of limits. The environment is not changed.
func Without(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, Prefix) })
}

// OfEnvironment are the limits that an environment carries.
func OfEnvironment(env []string) []Limit {
	var out []Limit
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, Prefix); ok {
			if l, err := Parse(text); err == nil {
				out = append(out, l)
			}
		}
	}
	return out
}
