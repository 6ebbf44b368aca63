package control

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// declaredPool is what the configuration says of a pool; nil: it has none of that name.
func (cfg *Config) declaredPool(name string) *state.PoolSpec {
	i := slices.IndexFunc(cfg.Declared, func(d state.PoolSpec) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &cfg.Declared[i]
}

// checkDeclared refuses a configuration that takes a pool of the journal elsewhere while it
// has jobs, which would be looked for where they are not; and one that gives it another kind
// of engine.
func (cfg *Config) checkDeclared(s *state.State) error {
	for _, d := range cfg.Declared {
		k, ok := s.Pools[d.Name]
		if !ok {
			continue
		}
		if k.Engine != d.Engine {
			return fault.New(fault.Conflict, "pools: %s: there is a pool of that name with engine %s, not %s", d.Name, k.Engine, d.Engine).
				Advise("give the new one another name, or take it out, start the server, cox pool remove %s, and put it in again", d.Name)
		}
		same := sameSettings(k.Settings, d.Settings) || cfg.SameSite != nil && cfg.SameSite(k, d)
		if n := s.InPool(d.Name); n > 0 && !same {
			return fault.New(fault.Conflict, "pools: %s: its settings lead elsewhere than before, and %d jobs of it have not ended", d.Name, n).
				Advise("put back what says where it is until they have; or give the new settings a pool of another name")
		}
	}
	return nil
}

// Declare has the pools of the configuration be there: those that the journal has not are
// added, and of the others it learns the settings with which they were opened. It returns at
// the first that cannot be opened; what was declared before that is durable.
func (c *Control) Declare(ctx context.Context, by job.Actor) error {
	for _, d := range c.cfg.Declared {
		if err := c.declarePool(ctx, by, d); err != nil {
			return fault.New(fault.KindOf(err), "pools: %s: %w", d.Name, err).Advise("%s", fault.Remedy(err))
		}
	}
	return nil
}

func (c *Control) declarePool(ctx context.Context, by job.Actor, d state.PoolSpec) error {
	add := false
	err := c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		known, ok := l.state.Pools[d.Name]
		switch {
		case !ok:
			add = true
			l.refuseWhenLeading(answer, nil)
		case sameSettings(known.Settings, d.Settings):
			l.refuseWhenLeading(answer, nil)
		default:
			known.Settings, known.At, known.By = d.Settings, c.cfg.Clock.Now(), by
			l.stageFor(&request{answer: answer}, state.KindPool, 0, by, known, func() {})
		}
	})
	if err != nil || !add {
		return err
	}
	return c.AddPool(ctx, by, d)
}

// sameSettings compares what settings say, however they are written. None are an empty object.
func sameSettings(a, b json.RawMessage) bool {
	return reflect.DeepEqual(decodeSettings(a), decodeSettings(b))
}

func decodeSettings(settings json.RawMessage) map[string]any {
	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(settings))
	d.UseNumber()
	_ = d.Decode(&out) // what is none says nothing
	return out
}
