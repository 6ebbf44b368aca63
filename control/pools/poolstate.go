package pools

import (
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// maxAnswerTime is how long an engine may take for an answer before it counts as silent.
const maxAnswerTime = 30 * time.Second

// maxQuietTime is how long an engine that is asked again and again may give no sign of life:
// what it drives may just be taken over by another of its servers.
const maxQuietTime = 8 * time.Second

// State reports whether a pool can be given work (api.PoolUp and its like), and if not, why.
func (v *View) State(now time.Time) (state, why string) {
	switch {
	case v.Broken != nil:
		return api.PoolBroken, v.Broken.Error()
	case v.Gone:
		return api.PoolGone, "it is not configured any more; what was running there stays held"
	case v.Failed != nil && !v.failedJustNow(now):
		return api.PoolSilent, v.Failed.Error()
	case !v.Quiet.IsZero() && now.Sub(v.Quiet) >= maxQuietTime:
		why := "it has given no sign of life since " + v.Quiet.UTC().Format(time.RFC3339)
		if v.Hush != nil {
			why += ": " + v.Hush.Error()
		}
		return api.PoolSilent, why
	case !v.Asked.IsZero() && now.Sub(v.Asked) > maxAnswerTime:
		return api.PoolSilent, "the engine has not answered since " + v.Asked.UTC().Format(time.RFC3339)
	case v.Info == nil:
		return api.PoolOpening, ""
	}
	return api.PoolUp, ""
}

// failedJustNow reports whether an engine has only just begun not to answer.
func (v *View) failedJustNow(now time.Time) bool {
	return v.Pulses && fault.KindOf(v.Failed) == fault.Unavailable && now.Sub(v.Since) < maxQuietTime
}

// DefaultPool is the pool of jobs that name none; empty: there is none.
func DefaultPool(pools []View) string {
	for i := range pools {
		if pools[i].Default {
			return pools[i].Name
		}
	}
	return ""
}
