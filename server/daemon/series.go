package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/series"
	"github.com/coxswain-sched/coxswain/server/series/dcgm"
)

// newRecorder makes what keeps how jobs use CPUs, memory and devices over their time.
func newRecorder(cfg *config.Config, plane *control.Control, local engine.UsageSampler, each time.Duration, log *slog.Logger) *series.Recorder {
	gpus := &exporters{plane: plane, local: cfg.Room.GPUMetrics, sources: map[string]*dcgm.Source{}}
	return series.NewRecorder(series.Config{
		Plane: plane, Dir: filepath.Join(cfg.State.Dir, "series"), Room: int64(cfg.State.Series), Keep: time.Duration(cfg.State.History), Local: poolName, Each: each, Log: log,
		Sampler: func(pool string) engine.UsageSampler {
			if pool == poolName {
				return local
			}
			x, _ := plane.AddedEngine(pool).(engine.UsageSampler)
			return x
		},
		GPUs: gpus.exporterOf,
	})
}

// exporters are the DCGM exporters of pools.
type exporters struct {
	plane *control.Control
	local string // of this machine; empty: none

	mu      sync.Mutex
	read    time.Time         // when urls were read
	urls    map[string]string // of pools that have one
	sources map[string]*dcgm.Source
}

// exporterURLs is for how long the settings of pools are not read again.
const exporterURLs = 10 * time.Second

// exporterOf is the exporter of a pool; nil: it has none.
func (x *exporters) exporterOf(pool string) series.Exporter {
	x.mu.Lock()
	defer x.mu.Unlock()
	if time.Since(x.read) > exporterURLs {
		x.urls, x.read = x.readURLs(), time.Now()
	}
	url := x.urls[pool]
	if url == "" {
		return nil
	}
	key := pool + " " + url
	if x.sources[key] == nil {
		x.sources[key] = dcgm.New(dcgm.Config{
			URL:   url,
			Nodes: func(ctx context.Context) []fleet.Node { return x.nodesOf(ctx, pool) },
			Pods: func(ref engine.Ref) []engine.PodName {
				if l, ok := x.plane.AddedEngine(pool).(engine.PodLister); ok {
					return l.Pods(ref)
				}
				return nil
			},
		})
	}
	return x.sources[key]
}

func (x *exporters) readURLs() map[string]string {
	out := map[string]string{poolName: x.local}
	pools := x.plane.Pools()
	for i := range pools {
		p := &pools[i]
		var set struct {
			GPUMetrics string `json:"gpu_metrics"`
		}
		if p.Added != nil && json.Unmarshal(p.Added.Settings, &set) == nil {
			out[p.Name] = set.GPUMetrics
		}
	}
	return out
}

// nodesOf are the nodes of a pool with their devices.
func (x *exporters) nodesOf(ctx context.Context, pool string) (out []fleet.Node) {
	views, err := x.plane.NodeViews(ctx)
	if err != nil {
		return nil
	}
	for i := range views {
		if views[i].Node.Pool == pool {
			out = append(out, views[i].Node)
		}
	}
	return out
}
