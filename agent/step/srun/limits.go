package srun

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// limitKind is a resource limit by the name that --propagate has for it.
type limitKind struct {
	name     string
	resource int
}

// limitKinds are those that tasks take over from srun. The number of open files is not one of
// them: Go raises it for its own process, so that srun does not know what it was.
var limitKinds = []limitKind{
	{"CPU", unix.RLIMIT_CPU},
	{"FSIZE", unix.RLIMIT_FSIZE},
	{"DATA", unix.RLIMIT_DATA},
	{"STACK", unix.RLIMIT_STACK},
	{"CORE", unix.RLIMIT_CORE},
	{"RSS", unix.RLIMIT_RSS},
	{"NPROC", unix.RLIMIT_NPROC},
	{"MEMLOCK", unix.RLIMIT_MEMLOCK},
	{"AS", unix.RLIMIT_AS},
}

// setPropagate reads --propagate: ALL, also without a value, NONE, or names of limits.
func setPropagate(o *options, value string) error {
	o.limits = nil
	switch strings.ToUpper(value) {
	case "", "ALL":
		return nil
	case "NONE":
		o.limits = []string{}
		return nil
	}
	for word := range strings.SplitSeq(value, ",") {
		name := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(word)), "RLIMIT_")
		switch {
		case name == "NOFILE":
			return fmt.Errorf("--propagate=%s: the number of open files is not passed on; set it in the task: srun sh -c 'ulimit -n N; exec …'", value)
		case !slices.ContainsFunc(limitKinds, func(k limitKind) bool { return k.name == name }):
			return fmt.Errorf("Bad rlimit name: %s", word)
		}
		o.limits = append(o.limits, name)
	}
	return nil
}

// ownLimits reads the soft limits of this process; tasks get them. nil: all of them.
func ownLimits(names []string) []barrier.Rlimit {
	var out []barrier.Rlimit
	for _, k := range limitKinds {
		var l syscall.Rlimit
		if (names == nil || slices.Contains(names, k.name)) && syscall.Getrlimit(k.resource, &l) == nil {
			out = append(out, barrier.Rlimit{Resource: k.resource, Soft: l.Cur})
		}
	}
	return out
}
