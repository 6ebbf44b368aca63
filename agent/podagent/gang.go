package podagent

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// gang is all members, as member 0 leads them. It is driver/local's gang without its log
// and its slots: what outlives member 0 here is nothing, and who hears of its end is the
// driver, by the pods. Only the goroutine of its member touches it.
type gang struct {
	*member
	parts   []*memberState // the first is the member's own
	decided attempt.EntryKind
	started time.Time
	cause   engine.Cause // as decided here; empty: the head's
	message string
	asked   time.Time        // when it was told to end; zero: it was not
	end     *attempt.Command // what all were told to end by; nil: nobody was
	held    holding
	late    *time.Timer
	allocs  map[string][]byte // by the members' Dir
	ctx     context.Context
	leave   context.CancelFunc
	wg      sync.WaitGroup
}

func newGang(m *member) *gang {
	g := &gang{member: m, parts: []*memberState{m.own}, allocs: map[string][]byte{}}
	g.ctx, g.leave = context.WithCancel(context.Background())
	for i := 1; i < len(m.plan.Members); i++ {
		g.parts = append(g.parts, &memberState{index: i, name: m.plan.Members[i].Name})
	}
	g.late = time.AfterFunc(m.plan.Ready, func() { m.runEvent(g.tooLate) })
	return g
}

// followMember keeps a connection to a member's supervisor.
func (g *gang) followMember(p *memberState) {
	wait := 20 * time.Millisecond
	for g.ctx.Err() == nil {
		met, said, err := g.visitMember(p)
		if said {
			return
		}
		if met {
			wait = 20 * time.Millisecond
		}
		g.runEvent(func() { p.last = err })
		select {
		case <-time.After(wait):
		case <-g.ctx.Done():
		}
		wait = min(2*wait, time.Second)
	}
}

// visitMember connects to a member and listens until the connection ends. met says that the
// member was there, said that it says of itself that it is lost.
func (g *gang) visitMember(p *memberState) (met, said bool, err error) {
	c, err := g.tunnel.dialMember(g.ctx, p.index, forGang)
	if err != nil {
		return false, false, err
	}
	defer c.Close()
	stop := context.AfterFunc(g.ctx, func() { _ = c.Close() })
	defer stop()
	in := json.NewDecoder(silentConn{c, g.at.silenceLimit()})
	var h hello
	if err := in.Decode(&h); err != nil {
		if g.plan.Upload != nil && errors.Is(err, io.EOF) {
			err = errors.New("it has not got the working directory yet")
		}
		return false, false, err
	}
	if h.Ref != g.plan.Ref {
		return false, false, fmt.Errorf("it belongs to attempt %s", h.Ref)
	}
	l := newLink(c)
	g.runEvent(func() { g.memberAttached(p, l, h, c) })
	g.wg.Go(func() { g.askPeriodically(l) })
	err = g.readRecords(io.MultiReader(in.Buffered(), silentConn{c, g.at.silenceLimit()}), p)
	g.runEvent(func() { g.memberDetached(p, l) })
	close(l.over)
	return true, h.Why != "", err
}

// askPeriodically asks a supervisor again and again whether it is there.
func (g *gang) askPeriodically(l *link) {
	tick := time.NewTicker(g.at.heartbeat())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.queueCommand(attempt.Command{Op: attempt.OpPing, Ref: g.plan.Ref})
		case <-l.over:
			return
		}
	}
}

// memberAttached takes up a connection to a member.
func (g *gang) memberAttached(p *memberState, l *link, h hello, c *tls.Conn) {
	p.link, p.met, p.dir, p.turn = l, true, h.Dir, 0
	p.addr, _, _ = net.SplitHostPort(c.RemoteAddr().String())
	if g.own.addr == "" {
		g.own.addr, _, _ = net.SplitHostPort(c.LocalAddr().String())
	}
	if h.Why != "" {
		p.said, p.noFiles = true, h.NoFiles
		p.markLost(h.Why)
		return
	}
	// It may not have heard what was decided while it was away.
	switch {
	case g.end != nil:
		p.endMember(*g.end)
	case g.decided == attempt.EntryGo && p.state.Phase == engine.Ready:
		g.tellGo(p)
	}
}

// memberDetached gives a member some time to be there again.
func (g *gang) memberDetached(p *memberState, l *link) {
	if p.link != l {
		return
	}
	p.link = nil
	if p.isGone() || g.ctx.Err() != nil {
		return
	}
	time.AfterFunc(g.at.Lost, func() {
		g.runEvent(func() {
			if p.link == nil && !p.isGone() {
				p.markLost(p.name + " was lost: " + errorReason(p.last))
			}
		})
	})
}

func errorReason(err error) string {
	if err == nil {
		return "no answer"
	}
	return err.Error()
}

// advanceState decides what follows from the state of the parts, and reports whether all is over.
func (g *gang) advanceState() bool {
	head := g.parts[0]
	if head.state.Phase == engine.Ready && g.echo == nil {
		_, out, errs := supervise.Files(g.launch)
		g.echo = newEcho(out, errs)
	}
	if g.decided == "" {
		if p := g.failedPart(); p != nil {
			g.abandonLaunch(causeOf(p), p.statusText())
		} else if g.allParts(func(p *memberState) bool { return p.state.Phase == engine.Ready }) {
			g.openBarrier()
		}
	}
	if g.decided == attempt.EntryGo {
		g.endTogether()
		g.settleHold()
	}
	if g.decided == attempt.EntryAbort {
		g.quitBeforeBegin("")
		for _, p := range g.parts[1:] {
			if !p.met { // what was never reached has run nothing
				p.lost = true
			}
		}
	}
	return g.allParts((*memberState).isGone)
}

func (g *gang) allParts(f func(*memberState) bool) bool {
	for _, p := range g.parts {
		if !f(p) {
			return false
		}
	}
	return true
}

// failedPart returns a part that will never be ready.
func (g *gang) failedPart() *memberState {
	for _, p := range g.parts {
		if p.lost || p.state.Refused || p.state.Phase >= engine.Ending {
			return p
		}
	}
	return nil
}

func causeOf(p *memberState) engine.Cause {
	switch {
	case p.state.Cause == engine.Unready || p.state.Cause == engine.Stopped || p.state.Cause == engine.Refused:
		return p.state.Cause
	case p.lost && p.index > 0 && !p.state.Refused && !p.noFiles: // a member that refused has told why before it ended
		return engine.Unready
	}
	return engine.LaunchFailed
}

// openBarrier opens the barrier.
func (g *gang) openBarrier() {
	g.started = time.Now().Round(0)
	if _, err := g.allocText(g.parts[0]); err != nil {
		g.started = time.Time{}
		g.abandonLaunch(engine.LaunchFailed, err.Error())
		return
	}
	g.decided = attempt.EntryGo
	g.late.Stop()
	_ = os.Remove(g.at.archivePath()) // all have it, if there was one
	for _, p := range g.parts {
		g.tellGo(p)
	}
}

// tellGo opens the barrier of one member.
func (g *gang) tellGo(p *memberState) {
	text, err := g.allocText(p)
	if err != nil {
		p.markLost(err.Error())
		return
	}
	c := attempt.Command{Op: attempt.OpGo, Ref: g.plan.Ref, Time: g.started, Alloc: text}
	if p.index == 0 { // the head's supervisor tells the others when it ends
		for i := range g.parts {
			c.Peers = append(c.Peers, slotOf(g.at.rootDir(), i).ControlSocket())
		}
	}
	p.sendCommand(c)
}

// allocText is what the processes of one member may know: the same for all that have their
// files in the same place, as pods do.
func (g *gang) allocText(p *memberState) ([]byte, error) {
	if text, ok := g.allocs[p.dir]; ok {
		return text, nil
	}
	nodes := g.plan.fleetNodes(func(i int) string { return g.parts[i].addr })
	text, err := g.plan.allocText(p.dir, nodes, g.launch, g.started)
	if err == nil {
		g.allocs[p.dir] = text
	}
	return text, err
}

// endTogether ends all when one is lost or was told to end, and when the head has ended.
func (g *gang) endTogether() {
	head := g.parts[0]
	for _, p := range g.parts {
		cause := p.endCause()
		if cause == "" {
			continue
		}
		// The script may have ended with an error because of it: its srun does, and is quicker
		// than those who wait whether a member comes back, and may be quicker than its word.
		if p.index > 0 && g.cause == "" && head.state.Cause == engine.Exited && head.state.Exit != nil && !head.state.Exit.OK() {
			g.cause, g.message = cause, p.statusText()
		}
		if g.end == nil && head.state.Cause == "" {
			g.cause, g.message = cause, p.statusText()
			g.endAll(attempt.Command{Grace: g.plan.Grace, Cause: g.cause, Text: g.message})
			return
		}
	}
	if (head.state.Phase >= engine.Ending || head.lost) && g.end == nil {
		g.endAll(attempt.Command{Grace: g.plan.Grace, Cause: cmp.Or(head.state.Cause, engine.NodeLost)})
	}
}

// endCause is why all have to end because of this member: it is lost, or ends without having been
// told by member 0, as by its own clock or with its pod. Empty: they have not.
func (p *memberState) endCause() engine.Cause {
	c := p.state.Cause
	switch {
	case p.lost && (p.index == 0 || p.state.Phase < engine.Ending):
		return engine.NodeLost
	case p.index == 0 || p.state.Phase < engine.Ending || slices.Contains(p.told, c):
		return ""
	case c == engine.Exited || c == engine.OutOfMemory: // the head's, whose supervisor has told it first
		return ""
	}
	return c
}

// endMember tells a member to end its part.
func (p *memberState) endMember(c attempt.Command) {
	if p.link != nil {
		p.told = append(p.told, c.Cause)
		p.sendCommand(stopCommand(p.state.Phase, c))
	}
}

// endAll tells every part that is not being ended yet.
func (g *gang) endAll(c attempt.Command) {
	c.Ref = g.plan.Ref
	g.end = &c
	for _, p := range g.parts {
		if p.state.Phase < engine.Ending && !p.isGone() {
			p.endMember(c)
		}
	}
}

// abandonLaunch undoes a launch whose barrier was not opened.
func (g *gang) abandonLaunch(cause engine.Cause, text string) {
	g.cause, g.message = cmp.Or(g.cause, cause), cmp.Or(g.message, text)
	g.decided = attempt.EntryAbort
	g.late.Stop()
	g.endAll(attempt.Command{Cause: g.cause, Text: g.message})
}

// afterColon is what is said after a colon, if there is something and it is about this member.
func afterColon(text string, about bool) string {
	if text == "" || !about {
		return ""
	}
	return ": " + text
}

func (g *gang) tooLate() {
	if g.decided != "" {
		return
	}
	var slow []string
	for _, p := range g.parts {
		switch {
		case p.index > 0 && !p.met:
			slow = append(slow, fmt.Sprintf("%s at %s is not reached: %s", p.name, g.plan.Members[p.index].listenAddress(), errorReason(p.last)))
		case p.state.Phase < engine.Ready:
			slow = append(slow, p.name+" is not ready"+afterColon(g.missingFiles(), p.index == 0))
		}
	}
	const most = 3
	if n := len(slow); n > most {
		slow = append(slow[:most], fmt.Sprintf("and %d more", n-most))
	}
	g.abandonLaunch(engine.Unready, fmt.Sprintf("not all %d members were there in %s: %s", len(g.parts), g.plan.Ready, strings.Join(slow, "; ")))
}

// stopAttempt ends the attempt as it was asked to. A second word hastens the first.
func (g *gang) stopAttempt(c attempt.Command) {
	c.Ref, c.Cause = g.plan.Ref, cmp.Or(c.Cause, engine.Stopped)
	if g.asked.IsZero() {
		g.asked = time.Now().Round(0)
	}
	if g.decided == "" {
		g.abandonLaunch(c.Cause, c.Text)
		return
	}
	if g.parts[0].state.Cause == "" && g.cause == "" {
		g.cause, g.message = c.Cause, c.Text
	}
	g.end = &c
	for _, p := range g.parts {
		if !p.isGone() {
			p.endMember(c)
		}
	}
}

// signalProgram sends a signal to the program.
func (g *gang) signalProgram(n int, to engine.Scope) error {
	if g.decided != attempt.EntryGo {
		return fault.New(fault.Conflict, "attempt %s has not started", g.plan.Ref)
	}
	for i, p := range g.parts {
		if to != engine.ToBatch || i == 0 {
			p.sendCommand(attempt.Command{Op: attempt.OpSignal, Ref: g.plan.Ref, Signal: n, Scope: to})
		}
	}
	return nil
}

// gangOutcome is the attempt's.
func (g *gang) gangOutcome() Outcome {
	head := &g.parts[0].state
	o := Outcome{Ref: g.plan.Ref, Saved: boundedSaved(head.Saved), Started: g.started, Cause: cmp.Or(g.cause, head.Cause), Message: cmp.Or(g.message, g.parts[0].statusText())}
	var used []*attempt.Usage
	for _, p := range g.parts {
		used = append(used, p.state.Used)
		o.Tasks = append(o.Tasks, p.state.Tasks...)
		if p.state.Ended.After(o.Ended) {
			o.Ended = p.state.Ended
		}
	}
	o.Used = boundedUsage(attempt.JoinUsage(used), mostUsedSteps)
	if o.Ended.IsZero() {
		o.Ended = time.Now().Round(0)
	}
	switch {
	case head.Exit != nil:
		o.Exit = *head.Exit
	case o.Cause == engine.Stopped:
		o.Exit = job.ExitCode{Signal: 15}
	default:
		o.Exit = job.ExitCode{Status: 1} // never a success: nobody saw it end
	}
	// A script that ended well by itself before it heard of the end has ended well.
	if g.cause != "" && !g.asked.IsZero() && head.Exit != nil && head.Exit.OK() && head.Ended.Before(g.asked) {
		o.Cause, o.Message = engine.Exited, ""
	}
	return o
}

// blameMemory corrects how an attempt ended of which the kernel ended some processes at the
// memory limit of a pod, whatever its script made of that.
func (o *Outcome) blameMemory(kills int, name string) {
	if kills > 0 && o.Cause == engine.Exited {
		o.Cause, o.Message, o.Exit = engine.OutOfMemory, oomText(kills, name), job.OutOfMemoryExit
	}
}

// tellEnd says to the others how the attempt ended, to each for a short while, and takes
// up what they know of why.
func (g *gang) tellEnd(o *Outcome) {
	bare := *o
	bare.Tasks, bare.Left, bare.Used = nil, 0, nil
	text := append(bare.Text(), '\n')
	farewells := make([]lastWord, len(g.parts))
	ctx, cancel := context.WithTimeout(context.Background(), dialWithin/2)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range g.parts[1:] {
		if !p.met && g.plan.Upload == nil || p.met && p.lost && !p.said && p.link == nil {
			continue
		}
		wg.Go(func() {
			c, err := g.tunnel.dialMember(ctx, p.index, forEnd)
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(dialWithin / 2))
			if _, err := c.Write(text); err == nil {
				_ = json.NewDecoder(c).Decode(&farewells[p.index])
			}
		})
	}
	wg.Wait()
	for i, f := range farewells {
		o.blameMemory(f.Kills, g.parts[i].name)
	}
}
