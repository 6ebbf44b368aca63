package control

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

// sources is what a reader reads. The loop of the control plane writes it, under the lock of
// the state.
type sources struct {
	store        store.Store
	clock        clock
	log          *slog.Logger
	forecastEach time.Duration // between two forecasts; 0: one is made when somebody asks

	state   *state.State
	core    *sched.Core
	flight  *flightRecorder
	pools   *pools.Set
	changes *eventlog.Log[job.ID]      // jobs that changed, for Next
	events  *eventlog.Log[state.Event] // numbered as the journal
	done    <-chan struct{}            // closed when the control plane has ended
	inbox   func() int                 // requests and reports that wait for the loop
}

// clock is where time comes from.
type clock interface {
	Now() time.Time
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// reader answers questions about a control plane. It is safe for concurrent use.
type reader struct {
	of    sources
	ahead forecaster
}

// newReader returns a reader of sources.
func newReader(of sources) *reader {
	return &reader{of: of, ahead: forecaster{turn: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}}
}
