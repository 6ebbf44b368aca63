package podagent

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Run is a member, from its begin to its end: `cox-pod run`. Its result is the exit code of
// the process: the program's, 128 and the number for one that a signal ended.
func Run(at Place, index string) int {
	o := Outcome{Cause: engine.LaunchFailed, Exit: job.ExitCode{Status: 1}}
	m, err := prepareMember(at, index, &o)
	if err == nil {
		o = m.runMember()
	} else {
		o.Message, o.Ended = Message(err), time.Now().Round(0)
		fmt.Fprintf(os.Stderr, "cox-pod: %s\n", o.Message)
	}
	if err := writeOutcome(at.Termination, o); err != nil {
		fmt.Fprintf(os.Stderr, "cox-pod: how the attempt ended cannot be said: %v\n%s\n", err, o.Text())
	}
	return o.Exit.Shell()
}

// Message is an error with its remedy, in one line.
func Message(err error) string {
	if remedy := fault.Remedy(err); remedy != "" {
		return err.Error() + "; " + remedy
	}
	return err.Error()
}

// prepareMember makes everything but processes. What it finds out of who the member is it puts
// into the outcome.
func prepareMember(at Place, index string, o *Outcome) (*member, error) {
	plan, err := at.readPlan()
	if err != nil {
		return nil, err
	}
	o.Ref = plan.Ref
	i, err := indexOf(index, len(plan.Members))
	if err != nil {
		return nil, err
	}
	o.Index = i
	m := &member{
		at: at, plan: plan, index: i, name: plan.Members[i].Name, seat: slotOf(at.rootDir(), i),
		events: make(chan func()), done: make(chan struct{}),
	}
	m.kills = at.oomKills()
	m.own = &memberState{index: i, name: m.name, dir: at.Dir, met: true}
	if err := at.makeDirs(len(plan.Members)); err != nil {
		return nil, err
	}
	if plan.Upload == nil {
		if m.launch, err = plan.launchOrder(at); err != nil { // found out before anything is heard of the member
			return nil, err
		}
	}
	if len(plan.Members) > 1 {
		b, err := readBadge(at.Plan, plan.Members, i)
		if err != nil {
			return nil, err
		}
		m.tunnel = newTunnel(b, i)
		m.tunnel.serve = m.serveMember
	}
	if m.initial, err = newInitial(); err != nil {
		return nil, err
	}
	return m, nil
}

// runMember does the member's work and says how it ended.
func (m *member) runMember() Outcome {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGPIPE)
	if m.index == 0 {
		m.gang = newGang(m)
	} else {
		m.alone = time.AfterFunc(m.plan.Ready+m.at.Lost, func() { m.runEvent(m.endWithoutLeader) })
	}
	if err := m.startAll(); err != nil {
		m.own.markLost(Message(err))
		m.given = true // it waits for nobody
	}
	for !m.advanceState() {
		select {
		case do := <-m.events:
			do()
		case s := <-signals:
			if s == unix.SIGTERM {
				m.handleSIGTERM()
			}
		case ws := <-m.initial.ended:
			m.supervisorDied(exitText(ws))
		}
	}
	return m.finishAttempt()
}

func exitText(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf(" (signal %d)", ws.Signal())
	}
	return fmt.Sprintf(" (exit %d)", ws.ExitStatus())
}

// startAll begins everything that runs.
func (m *member) startAll() error {
	if m.plan.Upload == nil {
		if err := m.beginAttempt(); err != nil {
			return err
		}
	}
	if m.tunnel != nil {
		if err := m.tunnel.listenMembers(m.at.rootDir(), m.at.Listen); err != nil {
			m.own.state.Cause = engine.Unready // it is nothing in the job
			return err
		}
	}
	if m.gang == nil {
		if m.plan.Upload != nil {
			go m.fetchArchive() // until it is here, or the member has ended
		}
		return nil
	}
	for _, p := range m.gang.parts[1:] {
		m.gang.wg.Go(func() { m.gang.followMember(p) })
	}
	return m.gang.listenWords()
}

// finishAttempt says the end where it has to be heard, and ends what still runs: the supervisor,
// by the end of its last connection, and the tunnels.
func (m *member) finishAttempt() Outcome {
	close(m.done)
	var o Outcome
	if m.gang == nil {
		o = m.memberOutcome()
	} else {
		m.echo.close()
		o = m.gang.gangOutcome()
		o.blameMemory(m.at.oomKills()-m.kills, m.name)
		if m.tunnel != nil {
			m.gang.tellEnd(&o)
		}
		m.gang.leave()
		if m.ear != nil {
			_ = m.ear.Close()
		}
	}
	if l := m.own.link; l != nil {
		_ = l.conn.Close()
	}
	if m.tunnel != nil {
		m.tunnel.close()
	}
	if !m.own.lost {
		select {
		case <-m.initial.ended:
		case <-time.After(dialWithin / 2):
		}
	}
	m.initial.killSupervisor()
	m.initial.killChildren()
	if m.gang != nil {
		m.removeEmptyCheckpoint()
	}
	return o
}

// Started is `cox-pod started`: nil once the barrier of this member was opened.
func Started(at Place) error {
	if _, err := os.Lstat(at.startedFile()); err != nil {
		return fault.New(fault.Conflict, "the barrier is not open")
	}
	return nil
}
