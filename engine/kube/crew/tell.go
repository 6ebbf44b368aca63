package crew

import (
	"bufio"
	"encoding/json"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/step/socket"
)

// Word is what the driver tells a running attempt, by `cox-pod tell` in member 0. One with
// a Scope is a signal and nothing more; one without is a stop: Signal at once (0: SIGTERM),
// SIGKILL after Grace.
type Word struct {
	Signal int           `json:"signal,omitempty"`
	Scope  engine.Scope  `json:"scope,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"` // nanoseconds
	Cause  engine.Cause  `json:"cause,omitempty"` // empty: stopped
	Text   string        `json:"text,omitempty"`
}

// answer is what comes back.
type answer struct {
	Kind  fault.Kind `json:"kind,omitempty"`
	Error string     `json:"error,omitempty"`
}

// Tell passes a Word to member 0, in whose pod it is called, and returns once that has
// acted on it; what follows shows in the pods.
func Tell(at Place, text []byte) error {
	var w Word
	if err := json.Unmarshal(text, &w); err != nil {
		return fault.New(fault.Invalid, "tell: %w", err).Advise(`write {"signal":10,"scope":"tasks"}, or {"grace":30000000000} to stop`)
	}
	c, err := socket.Dial(at.ear(), dialWithin)
	if err != nil {
		return fault.New(fault.Unavailable, "tell: %w", err).Advise("member 0 of an attempt that has not ended takes words")
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialWithin))
	if err := json.NewEncoder(c).Encode(w); err != nil {
		return fault.New(fault.Unavailable, "tell: %w", err)
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return fault.New(fault.Unavailable, "tell: no answer: %w", err)
	}
	if a.Error != "" {
		return fault.New(a.Kind, "%s", a.Error)
	}
	return nil
}

// listen takes words.
func (g *gang) listen() error {
	l, err := socket.Listen(g.at.ear())
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
	var w Word
	if !sameUser(c) || json.NewDecoder(bufio.NewReader(c)).Decode(&w) != nil {
		return
	}
	heard := make(chan error, 1)
	g.event(func() { heard <- g.obey(w) })
	var a answer
	select {
	case err := <-heard:
		if err != nil {
			a = answer{fault.KindOf(err), err.Error()}
		}
	case <-g.done:
		a = answer{fault.Conflict, "the attempt has ended"}
	}
	_ = json.NewEncoder(c).Encode(a)
}

// obey acts on a word.
func (g *gang) obey(w Word) error {
	switch {
	case w.Signal < 0 || w.Signal > 64:
		return fault.New(fault.Invalid, "%d is no signal", w.Signal)
	case w.Grace < 0:
		return fault.New(fault.Invalid, "a grace of %s", w.Grace)
	case w.Scope == "":
		g.stop(attempt.Command{Signal: w.Signal, Grace: w.Grace, Cause: w.Cause, Text: w.Text})
		return nil
	case w.Scope != engine.ToTasks && w.Scope != engine.ToBatch && w.Scope != engine.ToAll:
		return fault.New(fault.Invalid, "%q is no scope", w.Scope).Advise("it is tasks, batch or all")
	case w.Signal == 0:
		return fault.New(fault.Invalid, "which signal is not said")
	}
	return g.signal(int(unix.Signal(w.Signal)), w.Scope)
}
