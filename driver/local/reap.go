package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/engine"
)

// reapProcesses makes sure that nothing of the part lives after its supervisor: what the
// supervisor left is killed until nothing is found in its control group, and no
// process that carries the attempt's mark.
func (p *nodeAttempt) reapProcesses(ctx context.Context) {
	if p.seat != nil {
		p.seat.reapProcess()
	} else if p.home.Name != "" {
		(&supervisorSlot{Slot: p.home}).reapProcess()
	}
	state := &attempt.State{}
	if p.home.Name != "" {
		var err error
		if state, _, err = attempt.ReadJournal(p.home.Journal(), p.gang.launch.Ref); err != nil {
			p.gang.e.cfg.Log.Error("read a journal", "attempt", p.gang.launch.Ref, "node", p.node.Name, "err", err)
			state = &attempt.State{Text: err.Error()}
		}
		lives := !state.Gone && p.home.Identity.BootID == p.gang.e.boot
		if lives && !p.killRemains(ctx) {
			return
		}
		p.removeContainers(ctx)
		if err := p.taskCgroup().Remove(); err != nil && !errors.Is(err, unix.EBUSY) {
			p.gang.e.cfg.Log.Warn("remove a control group", "err", err)
		}
	}
	seat := p.home
	p.onGang(func() { p.at = seat; p.takeReapedState(state, !state.Gone) })
}

// taskCgroup is the control group of the part's tasks.
func (p *nodeAttempt) taskCgroup() *cgroup.Group {
	return p.gang.launch.Groups.Group(p.home.Group)
}

// takeReapedState takes over what the journal of a dead supervisor says.
func (p *nodeAttempt) takeReapedState(state *attempt.State, lost bool) {
	known := p.state
	p.state, p.dead, p.lost, p.open = *state, true, lost, false
	if !lost {
		return
	}
	p.fell = max(state.Phase, known.Phase) < engine.Ending
	// What was said on the connection but is not in the journal counts too.
	if known.Exit != nil {
		p.state.Exit = known.Exit
	}
	p.state.Cause = cmp.Or(p.state.Cause, known.Cause, engine.NodeLost)
	p.state.Files = known.Files
	if known.Saved != nil {
		p.state.Saved = known.Saved
	}
	if p.state.Text == "" {
		p.state.Text = p.supervisorDeathText()
	}
	if known.Refused {
		p.state.Refused, p.state.Text = true, known.Text
	}
	now := time.Now().Round(0)
	if p.state.Ended.IsZero() {
		p.state.Ended = now
	}
	p.state.Phase, p.state.Gone, p.state.Unsaved, p.state.Stuck = engine.Ended, true, false, ""
	for i := range p.state.Tasks {
		if t := &p.state.Tasks[i]; t.Running {
			t.Running, t.Ended, t.Exit.Signal, t.Cause = false, now, int(unix.SIGKILL), engine.NodeLost
		}
	}
}

// supervisorDeathText says that the supervisor died, and with which words if that was before
// it was ready.
func (p *nodeAttempt) supervisorDeathText() string {
	id := p.at.Identity
	text := fmt.Sprintf("the supervisor on %s (pid %d) died", p.node.Name, id.PID)
	if id.BootID != "" && id.BootID != p.gang.e.boot {
		return text + ": the machine was restarted"
	}
	if p.state.Phase >= engine.Ready {
		return text
	}
	return strings.TrimSuffix(text+": "+p.supervisorWords(), ": ")
}

// supervisorWords is the last line that the supervisor wrote to its standard error; empty: nothing.
func (p *nodeAttempt) supervisorWords() string {
	b, err := os.ReadFile(p.at.Words())
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// killRemains kills what a dead supervisor left on its node until nothing is found. It
// returns false if the engine was closed before.
func (p *nodeAttempt) killRemains(ctx context.Context) bool {
	group := p.taskCgroup()
	mark := p.gang.launch.Mark(p.node.Name)
	from := time.Now()
	said := false
	for try, told := 0, ""; ; try++ {
		left, err := p.remainingProcesses(group, mark)
		if err != nil {
			p.gang.e.cfg.Log.Error("look for what a dead supervisor left", "attempt", p.gang.launch.Ref, "node", p.node.Name, "err", err)
		}
		if err == nil && len(left) == 0 {
			break
		}
		if names := proc.Names(left); names != "" && names != told && time.Since(from) >= cmp.Or(p.gang.launch.Stuck, time.Minute) {
			told = names
			p.onGang(func() {
				p.state.Apply(attempt.Record{Kind: attempt.KindNote, Text: p.supervisorDeathText(), Stuck: names})
			})
		} else if !said && time.Since(from) > time.Second {
			said = true
			p.onGang(func() { p.open = true })
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
	return true
}

// mayOwnProcess reports whether a process may be one of the attempt's: of its owner, or of this
// user. Anybody can write a mark into an environment of his own.
func (p *nodeAttempt) mayOwnProcess(pid int) bool {
	st, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return false // it has ended
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Uid == uint32(os.Geteuid()) || sys.Uid == p.gang.launch.Job.Spec.Owner.UID
}

// remainingProcesses lists the processes in a control group and those with a mark.
func (p *nodeAttempt) remainingProcesses(group *cgroup.Group, mark string) ([]int, error) {
	pids, err := group.Procs()
	if err != nil {
		return nil, err
	}
	marked, err := proc.Marked(mark)
	if err != nil {
		return nil, err
	}
	for _, s := range marked {
		if p.mayOwnProcess(s.PID) {
			pids = append(pids, s.PID)
		}
	}
	return pids, nil
}
