package demand

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// reasonOf says why a machine of a choice moves.
func (p *plan) reasonOf(c *choice, m *candidate) string {
	var b strings.Builder
	to, from := c.to.rules.Name, m.from.rules.Name
	if c.least {
		fmt.Fprintf(&b, "%s has %s of its minimum of %d", to, countOf(c.to.machineCount(), "machine"), c.to.rules.Min)
	} else {
		fmt.Fprintf(&b, "%s lacks %s for %s", to, countOf(c.lack.units, p.in.Unit), waitingWork(&c.lack))
		if since := p.out.Memory.Lacks[to]; p.in.Now.Sub(since) >= time.Second {
			fmt.Fprintf(&b, " since %s", shortTime(p.in.Now.Sub(since)))
		}
	}
	fmt.Fprintf(&b, "; %s of %s ", m.Name, from)
	switch {
	case len(m.Runs) == 0:
		b.WriteString("is idle")
	case m.forced:
		fmt.Fprintf(&b, "is empty in %s, with jobs requeued that lose %d %s-seconds", shortTime(m.takes), m.lost, p.in.Unit)
	default:
		fmt.Fprintf(&b, "is empty in %s", shortTime(m.takes))
	}
	if m.loss > 0 {
		fmt.Fprintf(&b, ", which its pool is expected to miss by %d %s-seconds", m.loss, p.in.Unit)
	}
	if !c.least {
		fmt.Fprintf(&b, "; %s: gain %d, cost %d %s-seconds in %s", countOf(len(c.machines), "machine"), c.gain, c.cost, p.in.Unit, shortTime(c.to.rules.StaysFor()))
	}
	return b.String()
}

// waitingWork names what waits.
func waitingWork(l *lack) string {
	switch {
	case l.service != "" && l.held > 0:
		return fmt.Sprintf("%s (replicas of %s, for which %s wait)", countOf(l.jobs, "job"), l.service, countOf(l.held, "request"))
	case l.service != "":
		return fmt.Sprintf("%s (replicas of %s)", countOf(l.jobs, "job"), l.service)
	}
	return countOf(l.jobs, "job")
}

// explainStanding says why a pool that lacks machines gets none.
func (p *plan) explainStanding(s *Standing, x *pool) {
	for i := range p.out.Moves {
		if p.out.Moves[i].To == x.rules.Name {
			s.Why = ""
			return
		}
	}
	if s.Since.IsZero() {
		s.Why = ""
	}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// shortTime is a duration to the second, without parts that are 0: 1h, 5m30s.
func shortTime(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}
