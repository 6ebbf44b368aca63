package daemon

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/series"
)

// newRecorder makes what keeps how jobs use CPUs, memory and devices over their time.
func newRecorder(cfg *config.Config, plane *control.Control, local engine.UsageSampler, each time.Duration, log *slog.Logger) *series.Recorder {
	return series.NewRecorder(series.Config{
		Plane: plane, Dir: filepath.Join(cfg.State.Dir, "series"), Room: int64(cfg.State.Series), Keep: time.Duration(cfg.State.History), Local: poolName, Each: each, Log: log,
		Sampler: func(pool string) engine.UsageSampler {
			if pool == poolName {
				return local
			}
			x, _ := plane.AddedEngine(pool).(engine.UsageSampler)
			return x
		},
	})
}
