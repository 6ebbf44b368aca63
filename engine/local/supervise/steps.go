package supervise

import (
	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/step"
)

// steps is the node's side of srun.
type steps struct{}

func (s *supervisor) listenSteps() error          { return nil }
func (s *supervisor) openSteps() error            { return nil }
func (s *supervisor) closeSteps()                 {}
func (s *supervisor) stepsClosed() bool           { return true }
func (s *supervisor) signalSteps(sig unix.Signal) {}

// batchEnv is the environment of the batch script.
func (s *supervisor) batchEnv(base []string) ([]string, error) {
	return append(base, step.AllocVariable+"="+s.dir.Alloc()), nil
}
