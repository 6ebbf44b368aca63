package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Opener opens an engine of one kind for a pool. It calls nothing that may not answer: an
// engine whose site is down is opened all the same. Settings are read with ReadSettings.
type Opener func(ctx context.Context, name string, settings json.RawMessage, at Place) (engine.Engine, error)

// Place is what an engine is given of its server.
type Place struct {
	Dir     string // for what it keeps, absolute, this pool's alone; not made yet
	Log     *slog.Logger
	Uploads *upload.Store // of directories that come with jobs
	Room    int64         // bytes that one of these may have when it is unpacked; 0: any number
	Trial   bool          // it is looked at and closed again, and Dir is removed
}

// engineKinds are the engines with which pools can be added, by the word that names them: the
// one place where a kind is built in. The engine local is not among them: it is this
// machine's, whose pool the server has itself.
func engineKinds(more map[string]Opener) map[string]Opener {
	all := map[string]Opener{"slurm": openSlurm, "kube": openKube}
	maps.Copy(all, more)
	return all
}

// engines opens the pools of a server.
type engines struct {
	kinds map[string]Opener
	state string // directory
	log   *slog.Logger

	uploads *upload.Store
	room    int64 // Place.Room
}

func (e *engines) kindNames() []string { return slices.Sorted(maps.Keys(e.kinds)) }

// trials begins the names of the folders of engines that are looked at.
const trials = "trial-"

// sweepTrials removes what looks have left that a server did not live to end.
func (e *engines) sweepTrials() error {
	left, err := os.ReadDir(e.state)
	for _, d := range left {
		if strings.HasPrefix(d.Name(), trials) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(e.state, d.Name())))
		}
	}
	return err
}

// openPool is control.Config.OpenPool.
func (e *engines) openPool(ctx context.Context, p state.PoolSpec) (pools.Pool, error) {
	open := e.kinds[p.Engine]
	if open == nil {
		return pools.Pool{}, e.unknownKind(p.Engine)
	}
	out := pools.Pool{Pool: fleet.Pool{Name: p.Name, Engine: p.Engine}}
	at := Place{Dir: filepath.Join(e.state, "pools", p.Name), Log: e.log.With("pool", p.Name), Trial: p.Trial, Uploads: e.uploads, Room: e.room}
	if !p.Trial {
		if err := os.MkdirAll(filepath.Dir(at.Dir), 0o700); err != nil {
			return out, err
		}
		opened, err := open(ctx, p.Name, p.Settings, at)
		out.Engine = opened
		return out, err
	}
	room, err := os.MkdirTemp(e.state, trials)
	if err != nil {
		return out, err
	}
	at.Dir = filepath.Join(room, p.Name)
	opened, err := open(ctx, p.Name, p.Settings, at)
	if err != nil {
		return out, errors.Join(err, os.RemoveAll(room))
	}
	out.Engine = &trial{opened, room}
	return out, nil
}

func (e *engines) unknownKind(kind string) error {
	if kind == "local" {
		return fault.New(fault.Unsupported, "engine local is this machine's, and its pool is there already").
			Advise("cox up --nodes N serves it as so many nodes; %s", e.kindList())
	}
	err := fault.New(fault.Invalid, "there is no kind of engine %.70q", kind)
	for _, k := range e.kindNames() {
		if getopt.Distance(kind, k) <= 2 {
			return fault.New(fault.Invalid, "there is no kind of engine %.70q; did you mean %s?", kind, k).Advise("%s", e.kindList())
		}
	}
	return err.Advise("%s", e.kindList())
}

func (e *engines) kindList() string {
	if len(e.kinds) == 0 {
		return "this server has no kind of engine with which a pool could be added"
	}
	return "pools can be added with " + strings.Join(e.kindNames(), ", ")
}

// trial is an engine that leaves nothing when it is closed.
type trial struct {
	engine.Engine
	room string
}

// Check is the engine's own.
func (t *trial) Check(ctx context.Context) ([]engine.Finding, error) {
	if k, ok := t.Engine.(engine.Checker); ok {
		return k.Check(ctx)
	}
	return nil, nil
}

func (t *trial) Close() error { return errors.Join(t.Engine.Close(), os.RemoveAll(t.room)) }

// declaredPools are the pools of the configuration.
func declaredPools(all []config.Pool) ([]state.PoolSpec, error) {
	var out []state.PoolSpec
	for _, p := range all {
		d := state.PoolSpec{Name: p.Name, Engine: p.Engine}
		if len(p.Settings) > 0 {
			var err error
			if d.Settings, err = json.Marshal(p.Settings); err != nil {
				return nil, fault.New(fault.Invalid, "pools: %s: settings: %w", p.Name, err).Advise("write NAME: VALUE, one a line")
			}
		}
		out = append(out, d)
	}
	return out, nil
}
