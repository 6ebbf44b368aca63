package nodehealth

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Rules say when a node is fenced and when it returns.
type Rules struct {
	Failures int // of a check in a row, until it fences; below 1: 1
	Passes   int // in a row, until what it fenced is used again; below 1: 1
}

// subject is what a check is about.
type subject struct {
	check  string
	device int // -1: the node as a whole
}

func subjectOf(check string, device *int) subject {
	if device == nil {
		return subject{check, -1}
	}
	return subject{check, *device}
}

// streaks count what each check said in a row of its subjects: failures above 0, passes below. They are
// not kept over a restart: a fence waits for its passes again.
type streaks map[subject]int

// countVerdict notes a verdict, and returns how often the subject passed or failed in a row with it.
func (s streaks) countVerdict(of subject, failed bool) int {
	n := s[of]
	switch {
	case failed && n > 0 || !failed && n <= 0:
	default:
		n = 0
	}
	if failed {
		n++
	} else {
		n--
	}
	s[of] = n
	return max(n, -n)
}

// Decide is what fences a node has after a look at it: those that it had and has not passed often enough,
// and those of checks that failed often enough. What could not be looked at changes nothing. released
// says that one pass is enough: somebody has looked. It returns what changed, for people; "": nothing.
func (r Rules) Decide(s streaks, had []fleet.HealthFence, results []fleet.CheckResult, released bool, now time.Time) (fences []fleet.HealthFence, text string) {
	passes := max(r.Passes, 1)
	if released {
		passes = 1
	}
	var changes []string
	for _, f := range had {
		switch of := subjectOf(f.Check, f.Device); verdictOf(results, f) {
		case fleet.Failed:
			s.countVerdict(of, true)
		case fleet.Unsure:
		default:
			if s.countVerdict(of, false) >= passes {
				changes = append(changes, leadText(f.Device)+"check "+f.Check+" passes again")
				continue
			}
		}
		fences = append(fences, f)
	}
	for _, x := range results {
		of := subjectOf(x.Check, x.Device)
		known := slices.ContainsFunc(had, func(f fleet.HealthFence) bool {
			return subjectOf(f.Check, f.Device) == of && (f.UUID == "" || x.UUID == "" || f.UUID == x.UUID)
		})
		switch {
		case known:
		case x.From != "": // the system that says so has acted upon it
		case x.Verdict == fleet.Unsure:
		case s.countVerdict(of, x.Verdict == fleet.Failed) < max(r.Failures, 1) || x.Verdict != fleet.Failed:
		default:
			f := fleet.HealthFence{Device: x.Device, UUID: x.UUID, Check: x.Check, Evidence: x.Text, At: now}
			fences = append(fences, f)
			changes = append(changes, leadText(x.Device)+f.String())
		}
	}
	return fences, strings.Join(changes, "; ")
}

// leadText leads a sentence about a device.
func leadText(device *int) string {
	if device == nil {
		return ""
	}
	return fleet.Subject(device) + ": "
}

// verdictOf is what a look says of the subject of a fence. A check that says nothing of a device has found
// nothing wrong with it, unless the whole check failed or could not be made. A check that is not made
// any more, and a device that has another one in its place, are no longer reasons.
func verdictOf(results []fleet.CheckResult, f fleet.HealthFence) fleet.Verdict {
	verdict := fleet.Passed
	for _, x := range results {
		switch {
		case x.Check != f.Check:
		case subjectOf(x.Check, x.Device) == subjectOf(f.Check, f.Device):
			if f.UUID != "" && x.UUID != "" && f.UUID != x.UUID {
				return fleet.Passed
			}
			return x.Verdict
		case x.Device == nil && f.Device != nil && (x.Verdict == fleet.Failed || x.Verdict == fleet.Unsure):
			verdict = fleet.Unsure
		}
	}
	return verdict
}
