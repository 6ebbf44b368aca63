package podagent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/auth/peer"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Word is what the driver tells a running attempt, by `cox-pod tell` in member 0. One with
// a Hold is about suspending; one with a Scope is a signal and nothing more; one without is a
// stop: Signal at once (0: SIGTERM), SIGKILL after Grace. With a Hold goes the Scope Holding,
// which those that know no Hold refuse.
type Word struct {
	Hold   *Hold         `json:"hold,omitempty"`
	Signal int           `json:"signal,omitempty"`
	Scope  engine.Scope  `json:"scope,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"` // nanoseconds
	Cause  engine.Cause  `json:"cause,omitempty"` // empty: stopped
	Text   string        `json:"text,omitempty"`
}

// Holding is the Scope of a Word with a Hold.
const Holding engine.Scope = "hold"

// Question is what the driver asks a running attempt, by `cox-pod ask` in member 0.
type Question struct {
	Find  *Find `json:"find,omitempty"`
	Saved bool  `json:"saved,omitempty"` // what the job reported last as saved; the answer is JSON, or nothing
	Usage bool  `json:"usage,omitempty"` // what all members have used so far; the answer is JSON of a rusage.Record, or nothing
}

// message is what goes over the socket: a question, or else a word.
type message struct {
	Word
	Question
	Arrived bool `json:"arrived,omitempty"` // the archive of Plan.Upload is there
}

// Find asks on which member a rank runs. The answer is its number.
type Find struct {
	Rank int  `json:"rank"`
	Step *int `json:"step,omitempty"` // nil: the last one in which it runs
}

// answer is what comes back.
type answer struct {
	Kind  fault.Kind `json:"kind,omitempty"`
	Error string     `json:"error,omitempty"`
	Index *int       `json:"index,omitempty"` // of a Find

	Saved *engine.Saved `json:"saved,omitempty"`
}

// Tell passes a Word to member 0, in whose pod it is called, and returns once that has
// acted on it; what follows shows in the pods. Of a Hold it returns once all members are as it
// says, or are ending.
func Tell(at Place, text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m.Word); err != nil {
		return fault.New(fault.Invalid, "tell: %w", err).Advise(`write {"signal":10,"scope":"tasks"}, or {"grace":30000000000} to stop`)
	}
	_, err := m.sendToLeader(at)
	return err
}

// Ask passes a Question to member 0, in whose pod it is called, and prints the answer to out.
func Ask(at Place, text []byte, out io.Writer) error {
	var m message
	if err := json.Unmarshal(text, &m.Question); err != nil || m.Question == (Question{}) {
		return fault.New(fault.Invalid, "ask: %.200s is no question", text).Advise(`write {"find":{"rank":0}}`)
	}
	if m.Usage {
		return writeUsage(at, out)
	}
	a, err := m.sendToLeader(at)
	switch {
	case err != nil:
	case a.Index != nil:
		_, err = fmt.Fprintln(out, *a.Index)
	case a.Saved != nil:
		err = json.NewEncoder(out).Encode(a.Saved)
	}
	return err
}

// sendToLeader is the way of a message to member 0, and of the answer back.
func (m *message) sendToLeader(at Place) (a answer, err error) {
	c, err := socket.Dial(at.tellSocket(), dialWithin)
	if err != nil {
		return a, fault.New(fault.Unavailable, "member 0: %w", err).Advise("member 0 of an attempt that has not ended takes words")
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialWithin))
	if err := json.NewEncoder(c).Encode(m); err != nil {
		return a, fault.New(fault.Unavailable, "member 0: %w", err)
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return a, fault.New(fault.Unavailable, "member 0: no answer: %w", err)
	}
	if a.Error != "" {
		return a, fault.New(a.Kind, "%s", a.Error)
	}
	return a, nil
}

// listenWords takes words.
func (g *gang) listenWords() error {
	l, err := socket.Listen(g.at.tellSocket())
	if err != nil {
		return err
	}
	g.ear = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serveWord(c)
		}
	}()
	return nil
}

func (g *gang) serveWord(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialWithin))
	var m message
	if !peer.IsOurs(c) || json.NewDecoder(bufio.NewReader(c)).Decode(&m) != nil {
		return
	}
	heard := make(chan answer, 1)
	g.runEvent(func() {
		g.answerMessage(&m, func(a answer, err error) {
			if err != nil {
				a = answer{Kind: fault.KindOf(err), Error: err.Error()}
			}
			heard <- a
		})
	})
	var a answer
	select {
	case a = <-heard:
	case <-time.After(dialWithin / 2):
		a = answer{Kind: fault.Unavailable, Error: "not all members have done it yet"}
	case <-g.done:
		a = answer{Kind: fault.Conflict, Error: "the attempt has ended"}
	}
	_ = json.NewEncoder(c).Encode(a)
}

// answerMessage acts on a message, and calls then once, now or later.
func (g *gang) answerMessage(m *message, then func(answer, error)) {
	switch {
	case m.Arrived:
		g.archiveArrived()
		then(answer{}, nil)
	case m.Find != nil:
		i := g.memberOfRank(m.Find)
		if i < 0 {
			then(answer{}, fault.New(fault.NotFound, "attempt %s has no task %d that runs", g.plan.Ref, m.Find.Rank))
			return
		}
		then(answer{Index: &i}, nil)
	case m.Saved:
		then(answer{Saved: g.parts[0].state.Saved}, nil)
	case m.Hold != nil:
		g.suspendAll(*m.Hold, func(err error) { then(answer{}, err) })
	default:
		then(answer{}, g.runWord(m.Word))
	}
}

// runWord acts on a word.
func (g *gang) runWord(w Word) error {
	switch {
	case w.Signal < 0 || w.Signal > 64:
		return fault.New(fault.Invalid, "%d is no signal", w.Signal)
	case w.Grace < 0:
		return fault.New(fault.Invalid, "a grace of %s", w.Grace)
	case w.Scope == "":
		g.stopAttempt(attempt.Command{Signal: w.Signal, Grace: w.Grace, Cause: w.Cause, Text: w.Text})
		return nil
	case w.Scope != engine.ToTasks && w.Scope != engine.ToBatch && w.Scope != engine.ToAll:
		return fault.New(fault.Invalid, "%q is no scope", w.Scope).Advise("it is tasks, batch or all")
	case w.Signal == 0:
		return fault.New(fault.Invalid, "which signal is not said")
	}
	return g.signalProgram(int(unix.Signal(w.Signal)), w.Scope)
}

// memberOfRank is the member on which a rank runs; -1: none.
func (g *gang) memberOfRank(f *Find) int {
	member, last := -1, engine.BatchStep
	for _, p := range g.parts {
		for _, t := range p.state.Tasks {
			if t.Running && t.Rank == f.Rank && t.Step > last && (f.Step == nil || t.Step == *f.Step) {
				member, last = p.index, t.Step
			}
		}
	}
	return member
}
