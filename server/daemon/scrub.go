package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/store"
)

// The server reads its whole state once a day, slowly, for the first time ten minutes after it
// started. Damage that any other read finds is logged within a minute.
const (
	scrubFirst = 10 * time.Minute
	scrubEach  = 24 * time.Hour
	scrubRate  = 8 << 20 // bytes per second
	lookEach   = time.Minute
)

// watchState scrubs the state and logs what is damaged, each once, until ctx ends.
func watchState(ctx context.Context, st store.Checker, log *slog.Logger) {
	told := 0
	tell := func() {
		list := st.Damages()
		for _, d := range list[told:] {
			log.Error("the state is damaged", "what", d.String(), "remedy", "check the disk; docs/explanation/state.md says how to put a backup in place")
		}
		told = len(list)
	}
	defer tell()
	tell()
	ticker := time.NewTicker(lookEach)
	defer ticker.Stop()
	next := time.Now().Add(scrubFirst)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		tell()
		if time.Now().Before(next) {
			continue
		}
		err := scrubState(ctx, st)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn("the state cannot be checked, trying again later", "error", err)
		}
		next = time.Now().Add(scrubEach)
	}
}

// scrubState scrubs at scrubRate.
func scrubState(ctx context.Context, st store.Checker) error {
	return st.Scrub(ctx, func(bytes int) error {
		timer := time.NewTimer(time.Duration(bytes) * time.Second / scrubRate)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		}
	})
}
