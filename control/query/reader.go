package query

import (
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/control/eventlog"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// Sources has everything that a Reader reads. The control loop writes it, under the lock of the
// state.
type Sources struct {
	Store        store.Store
	Clock        clock
	Log          *slog.Logger
	ForecastEach time.Duration // between two forecasts; 0: one is made when somebody asks

	State   *state.State
	Core    *sched.Core
	Flight  *FlightRecorder
	Pools   *pools.Set
	Changes *eventlog.Log[job.ID]      // jobs that changed, for Next
	Events  *eventlog.Log[state.Event] // numbered as the journal
	Done    <-chan struct{}            // closed when the control plane has ended
	Inbox   func() int                 // requests and reports that wait for the loop
}

// clock is where time comes from.
type clock interface {
	Now() time.Time
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// Reader answers questions about a control plane. It is safe for concurrent use.
type Reader struct {
	of     Sources
	ahead  forecaster
	starts poolStarts
}

// New returns a reader of sources.
func New(of Sources) *Reader {
	return &Reader{of: of, ahead: forecaster{turn: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}}
}
