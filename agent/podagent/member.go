package podagent

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// member is one pod's part of an attempt. Only the goroutine in run touches it, but where
// it is said otherwise.
type member struct {
	at     Place
	plan   *Plan
	index  int
	name   string
	seat   attempt.Slot
	launch *attempt.Launch
	events chan func()
	done   chan struct{} // closed when run has ended

	initial *podInit
	own     *memberState // this member's
	tunnel  *tunnel      // nil: it is alone
	gang    *gang        // member 0 only
	echo    *logCopier   // member 0, once it is ready
	ear     net.Listener

	begun     bool // its supervisor was started, which waits for Plan.Upload
	unpacking bool // the archive of Plan.Upload is here

	servingNoted bool // its startup probe has passed, and the kubelet's probes are told so

	heads   int         // connections of member 0
	alone   *time.Timer // runs while there is none
	hurried bool        // it was told to end a second time
	word    *Outcome    // the attempt's, from member 0
	given   bool        // member 0 is given up
	kills   int         // at the memory limit, before the attempt began
	stops   int         // how often this member was told to end
}

// memberState is what is known of a member: on each of its own, on member 0 of all.
type memberState struct {
	index int
	name  string
	dir   string // its Dir
	addr  string // by which it is reached
	state attempt.State
	link  *link  // to its supervisor; nil: none
	turn  uint64 // of the last Hold that it was told over the link
	met   bool   // it was reached
	lost  bool   // its supervisor is dead, or it is not to be reached any more
	said  bool   // it says so itself
	why   string // what is worth saying of that
	// noFiles says that it is lost because the working directory could not be made there.
	noFiles bool
	last    error          // of the last attempt to reach it
	told    []engine.Cause // with which it was told to end; member 0 only
}

// isGone reports whether nothing more is heard of it.
func (p *memberState) isGone() bool { return p.lost || p.state.Gone }

// statusText is what is worth saying of it.
func (p *memberState) statusText() string { return cmp.Or(p.why, p.state.Text) }

// markLost gives it up. Of its tasks nobody saw the end.
func (p *memberState) markLost(why string) {
	if p.isGone() {
		return
	}
	p.lost, p.why = true, why
	now := time.Now().Round(0)
	for i := range p.state.Tasks {
		if t := &p.state.Tasks[i]; t.Running {
			t.Running, t.Ended, t.Exit.Signal, t.Cause = false, now, int(unix.SIGKILL), engine.NodeLost
		}
	}
}

// sendCommand sends a command, if there is a connection.
func (p *memberState) sendCommand(c attempt.Command) {
	if p.link != nil {
		p.link.queueCommand(c)
	}
}

// link writes commands to a supervisor.
type link struct {
	conn net.Conn
	out  chan attempt.Command
	over chan struct{} // closed when nobody reads from the connection any more
}

// newLink begins to write, until over is closed.
func newLink(conn net.Conn) *link {
	l := &link{conn, make(chan attempt.Command, 64), make(chan struct{})}
	go func() {
		e := json.NewEncoder(conn)
		for {
			select {
			case c := <-l.out:
				_ = conn.SetWriteDeadline(time.Now().Add(silentAfter))
				if e.Encode(c) != nil {
					_ = conn.Close() // its reader sees that
				}
			case <-l.over:
				return
			}
		}
	}()
	return l
}

// queueCommand never waits: who is too far behind has to connect anew.
func (l *link) queueCommand(c attempt.Command) {
	select {
	case l.out <- c:
	default:
		_ = l.conn.Close()
	}
}

// runEvent runs f on the member's goroutine; from any goroutine.
func (m *member) runEvent(f func()) {
	select {
	case m.events <- f:
	case <-m.done:
	}
}

// readRecords passes on what a supervisor says, until the connection ends.
func (m *member) readRecords(in io.Reader, p *memberState) error {
	d := json.NewDecoder(in)
	for {
		var r attempt.Record
		if err := d.Decode(&r); err != nil {
			return err
		}
		if !r.Whole() {
			return errors.New("a record that is not complete")
		}
		if r.Ref == m.plan.Ref {
			m.runEvent(func() {
				p.state.Apply(r)
				if s := p.state.Serves; p == m.own && s != nil && s.Began {
					m.noteServing()
				}
			})
		}
	}
}

// beginAttempt starts the supervisor and gives it the attempt.
func (m *member) beginAttempt() error {
	if m.launch == nil {
		var err error
		if m.launch, err = m.plan.launchOrder(m.at); err != nil {
			return err
		}
	}
	if m.index == 0 && m.plan.Checkpoint != "" {
		if err := m.plan.keepSaved(m.launch); err != nil {
			return err
		}
	}
	conn, err := m.initial.startSupervisor(m.at, m.seat, m.name)
	if err != nil {
		return err
	}
	m.begun = true
	m.own.link = newLink(conn)
	m.own.link.queueCommand(attempt.Command{Op: attempt.OpTake, Ref: m.plan.Ref, Index: m.index, Seat: &m.seat, Launch: m.launch})
	go func() {
		_ = m.readRecords(conn, m.own)
		close(m.own.link.over)
	}()
	return nil
}

// supervisorDied is told that the supervisor has ended. While it has work, that is its death, and
// what it leaves behind is ended.
func (m *member) supervisorDied(how string) {
	if m.own.isGone() {
		return
	}
	go func() {
		m.initial.killChildren()
		why := "the supervisor of " + m.name + " died" + how
		if words := lastWords(m.seat.Words()); words != "" {
			why += ": " + words
		}
		m.runEvent(func() { m.own.markLost(why) })
	}()
}

// hello is what a member says first to member 0.
type hello struct {
	Ref     engine.Ref `json:"ref"`
	Dir     string     `json:"dir"`
	Why     string     `json:"why,omitempty"`      // its supervisor is dead
	NoFiles bool       `json:"no_files,omitempty"` // Why is that the working directory could not be made
}

// serveMember serves a connection of another member; called by the tunnel.
func (m *member) serveMember(from int, purpose string, c *tls.Conn) {
	name := m.seat.ControlSocket()
	switch purpose {
	case forStep:
		name = m.seat.StepSocket()
	case forControl:
	case forGang:
		if from != 0 {
			return
		}
		m.runEvent(func() { m.countLeader(1) })
		defer m.runEvent(func() { m.countLeader(-1) })
		if !m.sayHello(c) {
			return
		}
	case forEnd:
		if from == 0 {
			m.takeLastWord(c)
		}
		return
	case forFiles:
		m.sendArchive(c)
		return
	}
	u, err := m.dialSupervisor(name)
	if err != nil {
		return
	}
	if purpose == forGang {
		spliceConns(silentConn{c, m.at.silenceLimit()}, u)
		return
	}
	spliceConns(c, u)
}

// sayHello says hello to member 0, and reports whether the supervisor can be passed on to.
func (m *member) sayHello(c net.Conn) bool {
	var h hello
	ready := false
	answer := make(chan bool, 1)
	m.runEvent(func() {
		h, ready = m.helloOf()
		answer <- true
	})
	select {
	case <-answer:
	case <-m.done:
		return false
	}
	return ready && json.NewEncoder(c).Encode(h) == nil && h.Why == ""
}

// dialSupervisor connects to a socket of the supervisor, which may not listen yet.
func (m *member) dialSupervisor(name string) (*net.UnixConn, error) {
	for deadline := time.Now().Add(dialWithin); ; {
		c, err := socket.Dial(name, dialWithin)
		if err == nil {
			return c.(*net.UnixConn), nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-m.done:
			return nil, err
		}
	}
}

// takeLastWord takes member 0's last word.
func (m *member) takeLastWord(c net.Conn) {
	var o Outcome
	if json.NewDecoder(bufio.NewReader(io.LimitReader(c, 64<<10))).Decode(&o) != nil || o.Ref != m.plan.Ref {
		return
	}
	// The answer first: with the word the member may end.
	_ = json.NewEncoder(c).Encode(lastWord{m.at.oomKills() - m.kills})
	m.runEvent(func() {
		m.word = &o
		m.quitBeforeBegin(o.Message)
		if m.own.state.Phase < engine.Ending { // it was given up, and is there after all
			m.own.sendCommand(stopCommand(m.own.state.Phase, attempt.Command{Ref: m.plan.Ref, Grace: m.plan.Grace, Cause: o.Cause, Text: o.Message}))
		}
	})
}

// lastWord is a member's answer to the attempt's end.
type lastWord struct {
	Kills int `json:"kills,omitempty"` // of its processes, at the memory limit of its pod
}

// countLeader counts the connections of member 0. Without any the member ends after a while.
func (m *member) countLeader(n int) {
	m.heads += n
	if m.alone.Stop(); m.heads == 0 {
		m.alone.Reset(m.at.Lost)
	}
}

// endWithoutLeader ends the member's part because member 0 is not to be reached.
func (m *member) endWithoutLeader() {
	if m.heads > 0 || m.given {
		return
	}
	m.given = true
	head := m.plan.Members[0].Name
	m.quitBeforeBegin(head + ", which leads the attempt and has the working directory, is not heard of")
	if m.own.state.Phase < engine.Running {
		text := fmt.Sprintf("%s, which leads the attempt, is not heard of", head)
		m.own.sendCommand(stopCommand(m.own.state.Phase, attempt.Command{Ref: m.plan.Ref, Cause: engine.Unready, Text: text}))
		return
	}
	m.own.sendCommand(attempt.Command{Op: attempt.OpStop, Ref: m.plan.Ref, Grace: m.plan.Grace, Cause: engine.NodeLost, Text: head + " was lost"})
}

// handleSIGTERM obeys a SIGTERM to this process.
func (m *member) handleSIGTERM() {
	m.stops++
	m.hurried = m.stops > 1
	grace, text := m.plan.Grace, "its pod was told to end (SIGTERM)"
	if m.hurried {
		grace = 0
	}
	if m.gang == nil && !m.begun {
		m.given = true
		m.quitBeforeBegin(text)
	}
	if m.gang != nil {
		m.gang.stopAttempt(attempt.Command{Grace: grace, Cause: engine.Stopped, Text: text})
		return
	}
	m.own.sendCommand(stopCommand(m.own.state.Phase, attempt.Command{Ref: m.plan.Ref, Grace: grace, Cause: engine.Stopped, Text: text}))
}

// advanceState does what follows from what was heard, and reports whether all is over.
func (m *member) advanceState() bool {
	if s := &m.own.state; s.Phase >= engine.Running && !s.Started.IsZero() {
		if _, err := os.Lstat(m.at.startedFile()); err != nil {
			_ = os.WriteFile(m.at.startedFile(), []byte(s.Started.Format(time.RFC3339Nano)+"\n"), 0o644)
		}
	}
	if m.gang != nil {
		return m.gang.advanceState()
	}
	// The others wait for the attempt's end, which is in member 0's word; but one of which nothing
	// has run, and that was told to end itself, not for a member 0 that it has not met.
	alone := m.stops > 0 && m.heads == 0 && m.own.state.Started.IsZero()
	return m.own.isGone() && (m.word != nil || m.given || m.hurried || alone)
}

// memberOutcome is how the attempt ended on a member other than 0, as which this process exits.
func (m *member) memberOutcome() Outcome {
	s := &m.own.state
	o := Outcome{Ref: m.plan.Ref, Index: m.index, Cause: s.Cause, Started: s.Started, Ended: s.Ended, Message: m.own.statusText(), Tasks: s.Tasks}
	switch {
	case m.own.lost:
		o.Cause, o.Exit = engine.NodeLost, job.ExitCode{Status: 1}
		if o.Started.IsZero() {
			o.Cause = causeOf(m.own)
		}
	case m.word != nil:
		o.Cause, o.Exit, o.Message = m.word.Cause, m.word.Exit, cmp.Or(m.word.Message, o.Message)
	default:
		o.Cause = cmp.Or(o.Cause, engine.NodeLost)
		o.Exit = job.ExitCode{Status: 1}
	}
	if o.Ended.IsZero() {
		o.Ended = time.Now().Round(0)
	}
	return o
}
