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
	m, err := prepare(at, index, &o)
	if err == nil {
		o = m.run()
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

// prepare makes everything but processes. What it finds out of who the member is it puts
// into the outcome.
func prepare(at Place, index string, o *Outcome) (*member, error) {
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
		at: at, plan: plan, index: i, name: plan.Members[i].Name, seat: seatOf(at.root(), i),
		events: make(chan func()), done: make(chan struct{}),
	}
	m.kills = at.oomKills()
	m.own = &part{index: i, name: m.name, dir: at.Dir, met: true}
	if err := at.makeDirs(len(plan.Members)); err != nil {
		return nil, err
	}
	if plan.Upload == nil {
		if m.launch, err = plan.launch(at); err != nil { // found out before anything is heard of the member
			return nil, err
		}
	}
	if len(plan.Members) > 1 {
		b, err := readBadge(at.Plan, plan.Members, i)
		if err != nil {
			return nil, err
		}
		m.tunnel = newTunnel(b, i)
		m.tunnel.serve = m.welcome
	}
	if m.initial, err = newInitial(); err != nil {
		return nil, err
	}
	return m, nil
}

// run does the member's work and says how it ended.
func (m *member) run() Outcome {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGPIPE)
	if m.index == 0 {
		m.gang = newGang(m)
	} else {
		m.alone = time.AfterFunc(m.plan.Ready+m.at.Lost, func() { m.event(m.deserted) })
	}
	if err := m.start(); err != nil {
		m.own.lose(Message(err))
		m.given = true // it waits for nobody
	}
	for !m.advance() {
		select {
		case do := <-m.events:
			do()
		case s := <-signals:
			if s == unix.SIGTERM {
				m.terminate()
			}
		case ws := <-m.initial.ended:
			m.fallen(how(ws))
		}
	}
	return m.finish()
}

func how(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf(" (signal %d)", ws.Signal())
	}
	return fmt.Sprintf(" (exit %d)", ws.ExitStatus())
}

// start begins everything that runs.
func (m *member) start() error {
	if m.plan.Upload == nil {
		if err := m.begin(); err != nil {
			return err
		}
	}
	if m.tunnel != nil {
		if err := m.tunnel.listen(m.at.root(), m.at.Listen); err != nil {
			m.own.state.Cause = engine.Unready // it is nothing in the job
			return err
		}
	}
	if m.gang == nil {
		if m.plan.Upload != nil {
			go m.fetch() // until it is here, or the member has ended
		}
		return nil
	}
	for _, p := range m.gang.parts[1:] {
		m.gang.wg.Go(func() { m.gang.follow(p) })
	}
	return m.gang.listen()
}

// finish says the end where it has to be heard, and ends what still runs: the supervisor,
// by the end of its last connection, and the tunnels.
func (m *member) finish() Outcome {
	close(m.done)
	var o Outcome
	if m.gang == nil {
		o = m.outcome()
	} else {
		m.echo.close()
		o = m.gang.outcome()
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
	m.initial.kill()
	m.initial.clean()
	if m.gang != nil {
		m.unkeep()
	}
	return o
}

// Started is `cox-pod started`: nil once the barrier of this member was opened.
func Started(at Place) error {
	if _, err := os.Lstat(at.started()); err != nil {
		return fault.New(fault.Conflict, "the barrier is not open")
	}
	return nil
}
