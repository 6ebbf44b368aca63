package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/engine/local/cgroup"
	"github.com/coxswain-sched/coxswain/engine/local/proc"
	"github.com/coxswain-sched/coxswain/engine/local/supervise"
)

// bury makes sure that nothing of the part lives after its supervisor: what the
// supervisor left is killed until nothing is found in its control group, and no
// process that carries the attempt's mark.
func (p *part) bury(ctx context.Context) {
	if p.process != nil {
		_, _ = p.process.Wait() // it has ended or is about to
	} else if id := p.identity; id.PID != 0 {
		_, _ = unix.Wait4(id.PID, nil, unix.WNOHANG, nil) // a child if an earlier engine of this process started it
	}
	if id := p.readIdentity(); id.PID != 0 {
		p.identity = id
	}
	state, err := attempt.ReadJournal(filepath.Join(p.gang.dir.Node(p.node.Name), "journal"))
	if err != nil {
		p.gang.e.cfg.Log.Error("read a journal", "attempt", p.gang.launch.Ref, "node", p.node.Name, "err", err)
		state = &attempt.State{Text: err.Error()}
	}
	lost := !state.Gone
	if lost && (p.identity.BootID == "" || p.identity.BootID == p.gang.e.boot) {
		if !p.clear(ctx) {
			return
		}
	} else if err := p.group().Remove(); err != nil {
		p.gang.e.cfg.Log.Warn("remove a control group", "err", err)
	}
	p.event(func() { p.buried(state, lost) })
}

// group is the control group of the part's tasks.
func (p *part) group() *cgroup.Group {
	return p.gang.launch.Groups.Group(p.gang.launch.Group(p.index))
}

// buried takes over what the journal of a dead supervisor says.
func (p *part) buried(state *attempt.State, lost bool) {
	known := p.state
	p.state, p.dead, p.lost = *state, true, lost
	if !lost {
		return
	}
	// What was said on the connection but is not in the journal counts too.
	if known.Exit != nil {
		p.state.Exit = known.Exit
	}
	p.state.Cause = cmp.Or(p.state.Cause, known.Cause, engine.NodeLost)
	p.state.Files = known.Files
	if p.state.Text == "" {
		p.state.Text = p.epitaph()
	}
	if known.Refused {
		p.state.Refused, p.state.Text = true, known.Text
	}
	now := time.Now().Round(0)
	if p.state.Ended.IsZero() {
		p.state.Ended = now
	}
	p.state.Phase, p.state.Gone, p.state.Unsaved = engine.Ended, true, false
	for i := range p.state.Tasks {
		if t := &p.state.Tasks[i]; t.Running {
			t.Running, t.Ended, t.Exit.Signal, t.Cause = false, now, int(unix.SIGKILL), engine.NodeLost
		}
	}
}

// epitaph says that the supervisor died, and with which words if that was before
// it was ready.
func (p *part) epitaph() string {
	text := fmt.Sprintf("the supervisor on %s (pid %d) died", p.node.Name, p.identity.PID)
	if p.identity.BootID != "" && p.identity.BootID != p.gang.e.boot {
		return text + ": the machine was restarted"
	}
	if p.state.Phase >= engine.Ready {
		return text
	}
	b, err := os.ReadFile(filepath.Join(p.gang.dir.Node(p.node.Name), "log"))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return text + ": " + last
	}
	return text
}

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
			p.event(func() {
				p.state.Apply(attempt.Record{Kind: attempt.KindNote, Text: p.epitaph() + "; what it left resists SIGKILL, and what that holds stays held"})
			})
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
