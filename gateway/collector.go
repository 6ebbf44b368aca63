package gateway

import (
	"context"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// The collector of a process that is a gateway and nothing else. With Go's own setting a gateway of few
// connections has a heap of 4 MB, which requests fill 25 times a second; one of many idle streams has
// twice the memory that they need.
const (
	headroom     = 64 << 20 // bytes that may be allocated between two collections, while little is in use
	leastPercent = 15       // of what is in use
	mostPercent  = 1600
)

// TuneCollector sets how often the garbage collector of this process runs by how much is in use, each
// second until ctx ends. It does nothing where GOGC is set.
func TuneCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	use := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	for last := 100; ctx.Err() == nil; sleepContext(ctx, time.Second) {
		runtimemetrics.Read(use)
		percent := collectPercent(use[0].Value.Uint64() + use[1].Value.Uint64())
		if percent < last*4/5 || percent > last*5/4 {
			debug.SetGCPercent(percent)
			last = percent
		}
	}
}

// collectPercent is by how many per cent of what is in use the heap may grow.
func collectPercent(inUse uint64) int {
	return min(max(int(headroom*100/max(inUse, 1)), leastPercent), mostPercent) //nolint:gosec // 6.4e9 at most
}
