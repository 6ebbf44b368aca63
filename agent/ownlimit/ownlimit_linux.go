package ownlimit

import (
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/ownlimit/atstart"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// Read returns the soft limits with which this process was started; a limit that cannot be read is
// left out.
func Read() []rlimit.Limit {
	out := make([]rlimit.Limit, 0, len(rlimit.Kinds))
	for _, k := range rlimit.Kinds {
		soft, ok := readLimit(k)
		if ok {
			out = append(out, rlimit.Limit{Kind: k, Soft: soft})
		}
	}
	return out
}

func readLimit(k rlimit.Kind) (uint64, bool) {
	if k.Resource == syscall.RLIMIT_NOFILE {
		return atstart.OpenFiles, atstart.OpenFiles != 0
	}
	var l syscall.Rlimit
	err := syscall.Getrlimit(k.Resource, &l)
	return l.Cur, err == nil
}

// Bind returns of limits those that a program started by this process does not have anyway, bounded
// by the hard limits of this process.
func Bind(limits []rlimit.Limit) []rlimit.Limit {
	var out []rlimit.Limit
	for _, l := range limits {
		var have syscall.Rlimit
		if syscall.Getrlimit(l.Resource, &have) != nil {
			continue
		}
		l.Soft = min(l.Soft, have.Max)
		if now, ok := readLimit(l.Kind); !ok || now != l.Soft {
			out = append(out, l)
		}
	}
	return out
}
