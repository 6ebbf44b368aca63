package endpoints

import (
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// Latency is how long clients of a service waited for the head of an answer, over all gateways and the last
// 55 to 60 seconds: from the head of the request at the gateway, with the time that it was held there.
//
// The quantiles are estimates: gateways count answers by the buckets of api.LatencyBounds, and within the
// bucket of a quantile the answers are taken to be spread evenly. One above all bounds is the last bound.
type Latency struct {
	P50, P95, P99 time.Duration
	Answered      uint64 // answers that were measured
}

// The window of latencies: slots of time of which the oldest is used anew.
const (
	latencySlots = 12
	slotTime     = rateOver / latencySlots
)

// latencyBounds are api.LatencyBounds. They are not written to.
var latencyBounds = api.LatencyBounds()

// latencyWindow counts the answers of the last minute by latency. Its size does not grow with requests.
type latencyWindow struct {
	slots [latencySlots]latencySlot
}

type latencySlot struct {
	number int64    // of the slot, since 1970; the counts of another number are of a minute before
	counts []uint64 // by bucket; nil: none
}

func slotNumber(now time.Time) int64 { return now.UnixNano() / int64(slotTime) }

// add counts what a gateway counted since its post before. Counts of other buckets than ours, which a gateway
// of another version may have, are left out.
func (w *latencyWindow) add(now time.Time, was, is []uint64) {
	buckets := len(latencyBounds) + 1
	if len(is) != buckets || len(was) != buckets && len(was) != 0 {
		return
	}
	number := slotNumber(now)
	slot := &w.slots[number%latencySlots]
	if slot.number != number {
		slot.number = number
		clear(slot.counts)
	}
	for i, n := range is {
		if len(was) > 0 {
			n -= min(n, was[i])
		}
		if n > 0 && slot.counts == nil {
			slot.counts = make([]uint64, buckets)
		}
		if n > 0 {
			slot.counts[i] += n
		}
	}
}

// quantiles are those of the last minute; nil: there was no answer.
func (w *latencyWindow) quantiles(now time.Time) *Latency {
	counts, out := make([]uint64, len(latencyBounds)+1), Latency{}
	for i := range w.slots {
		if slot := &w.slots[i]; slotNumber(now)-slot.number < latencySlots {
			for at, n := range slot.counts {
				counts[at] += n
				out.Answered += n
			}
		}
	}
	if out.Answered == 0 {
		return nil
	}
	out.P50, out.P95, out.P99 = latencyQuantile(counts, .5), latencyQuantile(counts, .95), latencyQuantile(counts, .99)
	return &out
}

// latencyQuantile is the time within which a part q of the answers came.
func latencyQuantile(counts []uint64, q float64) time.Duration {
	all := uint64(0)
	for _, n := range counts {
		all += n
	}
	rank, before, low := q*float64(all), 0.0, 0.0
	for i, bound := range latencyBounds {
		n := float64(counts[i])
		if n > 0 && before+n >= rank {
			return time.Duration((low + (bound-low)*(rank-before)/n) * float64(time.Second))
		}
		before, low = before+n, bound
	}
	return time.Duration(low * float64(time.Second))
}
