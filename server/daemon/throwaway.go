package daemon

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A throw-away server (Options.ThrowAway) leaves nothing: its jobs end with it, and whoever started
// it removes its state directory.
const (
	// tether is how long jobs outlive a throw-away server that was killed.
	tether = time.Second
	// endTime is how long a throw-away server waits for the ends of its jobs when it is stopped.
	endTime = 20 * time.Second
)

// tether is how long jobs go on after the server's process has ended; 0: to their end.
func (s *server) tether() time.Duration {
	if s.opt.ThrowAway {
		return tether
	}
	return 0
}

// endJobs ends every job of a throw-away server, and waits until nothing of them is left.
func (s *server) endJobs() {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	by := job.Actor{Name: "cox up --dev", UID: uint32(os.Getuid())} //nolint:gosec // a user's number
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for told := []job.ID(nil); ; {
		var live []job.ID
		s.control.Scan(query.Filter{Live: true}, func(v *state.View) bool {
			live = append(live, v.Job.ID)
			return true
		})
		if len(live) == 0 {
			return
		}
		fresh := slices.DeleteFunc(slices.Clone(live), func(id job.ID) bool { return slices.Contains(told, id) })
		if len(fresh) > 0 {
			told = append(told, fresh...)
			if _, err := s.control.Change(ctx, by, fresh, control.Cancel{Grace: 0}); err != nil {
				s.opt.Log.Warn("end the jobs of a throw-away server", "err", err)
				return
			}
		}
		select {
		case <-again.C:
		case <-s.control.Done():
			return
		case <-ctx.Done():
			s.opt.Log.Warn("jobs of a throw-away server have not ended", "jobs", live)
			return
		}
	}
}
