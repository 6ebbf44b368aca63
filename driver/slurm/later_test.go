package slurm_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestNoJobBeforeItsLocks: where the directory of locks cannot be made yet nothing is handed
// over, which would find no place for its lock; the report says why.
//
// Seen to fail with: no look at the directory before a job is handed over.
func TestNoJobBeforeItsLocks(t *testing.T) {
	var there atomic.Bool
	s := &stage{}
	e, root := stageWith(t, s, func(c *slurm.Config) {
		c.Room = lockdir.OpenLater(filepath.Join(c.Root, "locks"), func(context.Context) (lockdir.Directory, error) {
			if !there.Load() {
				return nil, fault.New(fault.Unavailable, "the login node is away")
			}
			return lockdir.Open(filepath.Join(c.Root, "locks"))
		})
	})
	begin(t, e, root)
	until(t, e, func(r engine.Report) bool { return strings.Contains(r.Message, "the login node is away") })
	s.with(func() {
		if s.submitted != 0 {
			t.Errorf("submitted %d times", s.submitted)
		}
	})
	there.Store(true)
	s.taken(t)
}
