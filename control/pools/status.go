package pools

import (
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// View is a pool as it is shown.
type View struct {
	fleet.Pool
	Default  bool            // jobs that name none go there
	Answered bool            // it has said which nodes it has
	Gone     bool            // not configured any more; only what the ledger holds there is left
	Broken   error           // why it could not be opened
	Added    *state.PoolSpec // nil: it is of the configuration
	Nodes    int
	Devices  int
	Declared int // of its devices, those that are numbers without hardware

	Delegated bool // its engine's own scheduler chooses the nodes

	Info   *engine.Info // what its engine last said of itself; nil: nothing yet
	Heard  time.Time    // when the engine last answered all that it was asked
	Failed error        // why the last question got no answer; nil: it did
	Since  time.Time    // with Failed: when the first was asked of the questions that got none since
	Asked  time.Time    // of the question that waits for its answer; zero: none does

	Pulses bool      // its engine is asked for a heartbeat every few seconds
	Quiet  time.Time // since when it was asked for one and gave none, the question that waits for its answer among them; zero: it gave one
	Hush   error     // why there was none; nil: there was one, or nobody knows
}

// EngineStatus is when an engine was last asked and answered, and with what. It is safe for
// concurrent use.
type EngineStatus struct {
	mu     sync.Mutex
	info   *engine.Info
	heard  time.Time
	failed error
	asked  time.Time
	last   time.Time // when it was last asked
	since  time.Time // with failed: when the first was asked that failed

	quiet time.Time     // when it was first asked of the heartbeats that did not come since
	hush  error         // why there was none
	pause time.Duration // with failed: how long a heartbeat does not have it asked again; grows while it lives and fails
}

// NoteAsked notes that the engine is being asked.
func (s *EngineStatus) NoteAsked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.last = now, now
}

// NoteAnswer notes an answer. A failed one leaves what was known before.
func (s *EngineStatus) NoteAnswer(now time.Time, info engine.Info, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Time{}
	s.setFailure(err)
	if err == nil {
		s.info, s.heard = &info, now
	}
}

// NoteFailure notes that the engine does not answer, while it is asked more.
func (s *EngineStatus) NoteFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setFailure(err)
}

// FillView writes the status into a view.
func (s *EngineStatus) FillView(v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Info, v.Heard, v.Failed, v.Since, v.Asked, v.Quiet, v.Hush = s.info, s.heard, s.failed, s.since, s.asked, s.quiet, s.hush
}

// CompareInterval is how often an engine is asked for everything that it has.
const CompareInterval = 30 * time.Second

const (
	// HeartbeatInterval is how often an engine is asked for a heartbeat, if it has any.
	HeartbeatInterval = 4 * time.Second
	// HeartbeatTimeout is how long it may take for it: less than that, so that one question that is lost keeps
	// none from being put.
	HeartbeatTimeout = 3 * time.Second
)

// HasHeartbeat reports whether the engine can be asked for a heartbeat (engine.Pulser).
func (p *Member) HasHeartbeat() bool { _, ok := p.Engine.(engine.Pulser); return ok }

// NoteHeartbeatAsked notes that the engine is being asked for a heartbeat.
func (s *EngineStatus) NoteHeartbeatAsked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet.IsZero() {
		s.quiet = now
	}
}

// NoteHeartbeat notes a heartbeat, or why there was none. It reports whether the engine lives
// and should be asked again what it did not answer: soon, if it had no heartbeat before either,
// and less and less often, if it lives and fails to answer.
func (s *EngineStatus) NoteHeartbeat(now time.Time, err error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hush = err
	if err != nil {
		s.pause = 0
		return false
	}
	s.quiet = time.Time{}
	if s.failed == nil || fault.KindOf(s.failed) != fault.Unavailable || !s.asked.IsZero() || now.Sub(s.last) < max(s.pause, HeartbeatInterval) {
		return false
	}
	s.pause = min(2*max(s.pause, HeartbeatInterval), CompareInterval)
	return true
}

// setFailure notes why a question got no answer; nil: it got one. The caller holds the lock.
func (s *EngineStatus) setFailure(err error) {
	switch {
	case err == nil:
		s.since, s.pause = time.Time{}, 0
	case s.failed == nil || s.since.IsZero():
		s.since = s.last
	}
	s.failed = err
}
