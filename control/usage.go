package control

import (
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// keepUsage stages what the core has reckoned.
func (l *loop) keepUsage() {
	at, entries := l.core.Usage()
	if at > 0 {
		l.stageRecord(state.KindUsage, 0, job.Actor{}, state.Usage{At: at, Entries: entries}, nil)
	}
}

// keptAt is the second of the usage that is kept, or is about to be; 0: there is none.
func (l *loop) keptAt() int64 {
	for i := range slices.Backward(l.batch) {
		if v, ok := l.batch[i].val.(state.Usage); ok {
			return v.At
		}
	}
	if l.state.Usage == nil {
		return 0
	}
	return l.state.Usage.At
}
