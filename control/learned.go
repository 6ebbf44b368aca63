package control

import (
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// keepLearned stages what the core has learned of what arrives. It is kept each time
// that the core decides by more than before: a restart forgets at most what arrived
// since, an eighth of it.
func (l *loop) keepLearned() {
	if m := l.core.Learned(); m != nil {
		l.stageRecord(state.KindLearned, 0, job.Actor{}, *m, nil)
	}
}
