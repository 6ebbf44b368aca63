package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// SetNodes drains nodes, so that running work goes on and nothing new starts, or
// takes that back. It is durable when it returns, for all of them or for none. A name that nodes
// of several pools have is fault.Invalid without its pool: pool/name.
func (c *Control) SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, why string) error {
	if len(names) == 0 {
		return fault.New(fault.Invalid, "no node is named")
	}
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		var keys []fleet.NodeKey
		for _, name := range names {
			k, err := l.state.NodeNamed(name)
			if err != nil {
				l.refuseWhenLeading(answer, err)
				return
			}
			keys = append(keys, k)
			if was, _, drained := l.state.DrainOf(k); drained && !drain && was.Pool != "" && was != k {
				keys = append(keys, was)
			}
		}
		l.stageFor(&request{answer: answer}, state.KindNodes, 0, by, state.NodesRecord(keys, drain, why), func() {
			for _, k := range keys {
				l.tellNodes(k.Name)
			}
		})
	})
}
