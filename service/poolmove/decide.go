package poolmove

import (
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Bounds of moves.
const (
	LeastGain   = 10 * time.Minute    // a job moves only if it starts so much earlier …
	GainPercent = 20                  // … and by so much of its wait
	Rest        = state.PoolMoveRest  // between two moves of a job
	MostMoves   = state.MostPoolMoves // of a job
	Patience    = 5 * time.Minute     // with a pool that does not answer, or of which nobody knows when it has room
)

// Waiting is a job that waits, as decisions see it.
type Waiting struct {
	Pool    string    // in which it is
	Start   time.Time // when it is expected to start there; zero: nobody knows …
	Unknown time.Time // … since then
	Silent  bool      // … because the pool does not answer
	Moves   int       // so far
	Moved   time.Time // last; zero: never
}

// Decide says to which of the places a job moves, and why; -1: it stays. The places are in the
// order in which they are preferred: a later one is taken only if it starts the job by LeastGain
// and GainPercent earlier than those before it.
func Decide(now time.Time, w *Waiting, places []query.PoolStart) (to int, why string) {
	if w.Moves >= MostMoves || !w.Moved.IsZero() && now.Sub(w.Moved) < Rest {
		return -1, ""
	}
	to, best := -1, w.Start
	for i := range places {
		start := places[i].Start
		switch {
		case start.IsZero():
		case best.IsZero(): // nobody knows when it starts where it is
			if now.Sub(w.Unknown) >= Patience {
				to, best = i, start
			}
		case isGain(now, best, start):
			to, best = i, start
		}
	}
	switch {
	case to < 0:
		return -1, ""
	case w.Start.IsZero() && w.Silent:
		return to, "moved from " + w.Pool + ", which does not answer"
	case w.Start.IsZero():
		return to, "moved from " + w.Pool + ", where nobody knows when it would start"
	}
	there := job.NewPoolWait(w.Pool, w.Start, now, "")
	return to, "moved from " + w.Pool + ", where it was expected to start " + there.Text()
}

// isGain reports whether a start is worth a move from another one.
func isGain(now, from, to time.Time) bool {
	gain := from.Sub(to)
	return gain >= LeastGain && gain >= from.Sub(now)*GainPercent/100
}
