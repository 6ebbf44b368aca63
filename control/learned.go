package control

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// keepLearned stages what the core has learned of what arrives. It is kept each time
// that the core decides by more than before: a restart forgets at most what arrived
// since, an eighth of it.
func (l *loop) keepLearned() {
	if m := l.core.Learned(); m != nil {
		l.stageRecord(kindLearned, 0, job.Actor{}, *m, nil)
	}
}

func (s *state) applyLearned(r *store.Record, staged any) error {
	v, err := payloadOf[share.Memory](r, staged)
	if err != nil {
		return err
	}
	s.arrivals = &v
	return nil
}
