package local

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/engine/local/cgroup"
	"github.com/coxswain-sched/coxswain/engine/local/proc"
	"github.com/coxswain-sched/coxswain/engine/local/supervise"
)

// clear kills what a dead supervisor left on its node until nothing is found, and
// removes its control group. It returns false if the engine was closed before.
func (p *part) clear(ctx context.Context) bool {
	group := p.group()
	mark := supervise.Mark(p.gang.dir, p.node.Name)
	for try := 0; ; try++ {
		left, err := p.remains(group, mark)
		if err != nil {
			p.gang.e.cfg.Log.Error("look for what a dead supervisor left", "attempt", p.gang.launch.Ref, "node", p.node.Name, "err", err)
		}
		if err == nil && len(left) == 0 {
			break
		}
		if try == 50 {
			text := p.epitaph() + "; what it left resists SIGKILL, and what that holds stays held"
			p.event(func() { p.state.Apply(attempt.Record{Kind: attempt.KindNote, Text: text}) })
		}
		if err := group.Kill(); err != nil {
			p.gang.e.cfg.Log.Warn("kill a control group", "err", err)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // looked for again
		}
		select {
		case <-time.After(min(time.Duration(try+1)*5*time.Millisecond, time.Second)):
		case <-ctx.Done():
			return false
		}
	}
	if err := group.Remove(); err != nil && !errors.Is(err, unix.EBUSY) {
		p.gang.e.cfg.Log.Warn("remove a control group", "err", err)
	}
	return true
}

// remains lists the processes in a control group and those with a mark.
func (p *part) remains(group *cgroup.Group, mark string) ([]int, error) {
	pids, err := group.Procs()
	if err != nil {
		return nil, err
	}
	marked, err := proc.Marked(mark)
	if err != nil {
		return nil, err
	}
	for _, s := range marked {
		pids = append(pids, s.PID)
	}
	return pids, nil
}
