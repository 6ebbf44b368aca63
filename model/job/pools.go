package job

import (
	"strconv"
	"strings"
	"time"
)

// AnyPool is what a submission names instead of a pool to which any will do, also where the site names one.
const AnyPool = "any"

// PoolNames are the pools that a submission names: "a", or "a,b" where the one is taken that
// starts the job first. None: any will do.
func PoolNames(text string) (out []string) {
	if text == AnyPool {
		return nil
	}
	for _, name := range strings.Split(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// PoolWait is how long a job was expected to wait in a pool. Jobs that are alike have the same one
// for a while: it is rounded (NewPoolWait).
type PoolWait struct {
	Pool    string `json:"pool"`
	Seconds int64  `json:"seconds"`       // 0: it would start at once; below 0: nobody knew
	Why     string `json:"why,omitempty"` // nobody knew
}

// waitSteps are the waits that are told apart, in minutes; longer ones in weeks.
var waitSteps = []int64{
	0, 1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 960, 1440, 2160, 2880, 4320, 5760, 7200, 10080,
}

// NewPoolWait is the wait until a start, rounded to about a fifth; a zero start: nobody knows,
// for the reason that why gives.
func NewPoolWait(pool string, start, now time.Time, why string) PoolWait {
	if start.IsZero() {
		return PoolWait{Pool: pool, Seconds: -1, Why: why}
	}
	minutes := int64(max(start.Sub(now), 0)+30*time.Second) / int64(time.Minute)
	last := waitSteps[len(waitSteps)-1]
	if minutes > last {
		return PoolWait{Pool: pool, Seconds: minutes / last * last * 60}
	}
	for i, step := range waitSteps {
		if i+1 == len(waitSteps) || minutes < (step+waitSteps[i+1]+1)/2 {
			return PoolWait{Pool: pool, Seconds: step * 60}
		}
	}
	return PoolWait{Pool: pool}
}

// Text says the wait: "at once", "in about 2 h", "nobody knows when: …".
func (w *PoolWait) Text() string {
	minutes := w.Seconds / 60
	switch {
	case w.Seconds < 0 && w.Why != "":
		return "nobody knows when: " + w.Why
	case w.Seconds < 0:
		return "nobody knows when"
	case minutes == 0:
		return "at once"
	case minutes < 60:
		return "in about " + strconv.FormatInt(minutes, 10) + " min"
	case minutes == 90:
		return "in about 1.5 h"
	case minutes < 1440:
		return "in about " + strconv.FormatInt(minutes/60, 10) + " h"
	case minutes == 2160:
		return "in about 1.5 days"
	case minutes == 1440:
		return "in about 1 day"
	}
	return "in about " + strconv.FormatInt(minutes/1440, 10) + " days"
}
