package control

import (
	"errors"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestPoolState: an engine that is asked for a sign of life every few seconds is called silent when it
// gave none for a while, and not because what it drives has changed servers.
//
// Seen to fail with: a failure that is shown at once; a silence that is not shown.
func TestPoolState(t *testing.T) {
	now, down := time.Now(), fault.New(fault.Unavailable, "down")
	info := &engine.Info{}
	for _, tt := range []struct {
		what string
		v    pools.View
		want string
	}{
		{"answers", pools.View{Info: info, Heard: now}, api.PoolUp},
		{"is being asked", pools.View{Info: info, Asked: now.Add(-time.Second)}, api.PoolUp},
		{"hangs", pools.View{Info: info, Asked: now.Add(-time.Minute)}, api.PoolSilent},
		{"hangs from the first", pools.View{Asked: now.Add(-time.Minute)}, api.PoolSilent},
		{"is new", pools.View{Asked: now}, api.PoolOpening},
		{"does not answer", pools.View{Info: info, Failed: errors.New("down")}, api.PoolSilent},
		{"has just begun to fail", pools.View{Info: info, Failed: down, Since: now.Add(-time.Second), Pulses: true}, api.PoolUp},
		{"fails for a while", pools.View{Info: info, Failed: down, Since: now.Add(-10 * time.Second), Pulses: true}, api.PoolSilent},
		{"has just begun to fail, and is not asked for a sign of life", pools.View{Info: info, Failed: down, Since: now.Add(-time.Second)}, api.PoolSilent},
		{"may not be asked", pools.View{Info: info, Failed: fault.New(fault.Permission, "no"), Since: now.Add(-time.Second), Pulses: true}, api.PoolSilent},
		{"has just begun to fail, and never answered", pools.View{Failed: down, Since: now.Add(-time.Second), Pulses: true}, api.PoolOpening},
		{"has given no sign of life for a moment", pools.View{Info: info, Pulses: true, Quiet: now.Add(-time.Second), Hush: down}, api.PoolUp},
		{"has given no sign of life for a while", pools.View{Info: info, Pulses: true, Quiet: now.Add(-10 * time.Second), Hush: down}, api.PoolSilent},
		{"does not say whether it lives", pools.View{Info: info, Pulses: true, Quiet: now.Add(-10 * time.Second)}, api.PoolSilent},
		{"is not configured", pools.View{Gone: true, Failed: errors.New("gone")}, api.PoolGone},
		{"does not open", pools.View{Broken: errors.New("no such kind"), Failed: errors.New("x")}, api.PoolBroken},
	} {
		if state, why := tt.v.State(now); state != tt.want || (why == "") != (state == api.PoolUp || state == api.PoolOpening) {
			t.Errorf("one that %s is %s: %s", tt.what, state, why)
		}
	}
}
