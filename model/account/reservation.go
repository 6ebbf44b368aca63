package account

import (
	"fmt"
	"slices"
	"time"
)

// Reservation keeps nodes for some accounts and users, or for nobody, for a time.
type Reservation struct {
	Name     string   `json:"name" yaml:"name" doc:"name, as in sbatch --reservation"`
	Note     string   `json:"note,omitempty" yaml:"note,omitempty" doc:"a note for people"`
	Nodes    []string `json:"nodes,omitempty" yaml:"nodes,omitempty" doc:"names of nodes; empty: all nodes"`
	Start    string   `json:"start,omitempty" yaml:"start,omitempty" doc:"start, for example 2026-12-01T08:00:00Z"`
	Duration Duration `json:"duration" yaml:"duration" doc:"length"`
	Every    string   `json:"every,omitempty" yaml:"every,omitempty" doc:"repeat each hour, day, weekday, weekend (day) or week; empty: once"`
	Ahead    Duration `json:"ahead,omitempty" yaml:"ahead,omitempty" doc:"instead of start: it always begins this long from now, so that only shorter jobs run on its nodes"`
	Accounts []string `json:"accounts,omitempty" yaml:"accounts,omitempty" doc:"accounts whose jobs may use it"`
	Users    []string `json:"users,omitempty" yaml:"users,omitempty" doc:"users who may use it; without accounts and users: nobody (maintenance)"`
	Flex     bool     `json:"flex,omitempty" yaml:"flex,omitempty" doc:"its jobs may begin before it, end after it, and use other nodes too"`
	Ignore   bool     `json:"ignore_jobs,omitempty" yaml:"ignore_jobs,omitempty" doc:"make it even if jobs on its nodes run beyond its start; they continue"`
	Overlap  bool     `json:"overlap,omitempty" yaml:"overlap,omitempty" doc:"it may have nodes that another reservation has at the same time"`
}

// Admits reports whether somebody's jobs may use a reservation.
func (r *Reservation) Admits(account, user string) bool {
	return slices.Contains(r.Users, user) || account != "" && slices.Contains(r.Accounts, account)
}

// Window is when a reservation holds. Instants are nanoseconds since the Unix epoch.
type Window struct {
	Start, Length int64
	Ahead         int64 // it begins so long after whatever is asked about; 0: at Start
	every         string
}

// repeats are the words of Reservation.Every and how far apart two occurrences may be.
var repeats = map[string]time.Duration{
	"hour": time.Hour, "day": 24 * time.Hour, "weekday": 24 * time.Hour, "weekend": 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// Window is when it holds; false if its start cannot be read.
func (r *Reservation) Window() (Window, bool) {
	w := Window{Length: int64(r.Duration), Ahead: int64(r.Ahead), every: r.Every}
	if w.Ahead > 0 {
		return w, true
	}
	at, err := time.Parse(time.RFC3339, r.Start)
	w.Start = at.UnixNano()
	return w, err == nil
}

// Next is the first occurrence that has not ended by an instant; false: there is
// none any more. Days are those of UTC.
func (w *Window) Next(from int64) (begin, end int64, ok bool) {
	switch period := int64(repeats[w.every]); {
	case w.Ahead > 0:
		return from + w.Ahead, from + w.Ahead + w.Length, true
	case period == 0:
		return w.Start, w.Start + w.Length, w.Start+w.Length > from
	default:
		begin = w.Start
		if past := from - w.Start - w.Length; past >= 0 {
			begin += (past/period + 1) * period
		}
		for !w.beginsOnDay(begin) {
			begin += period
		}
		return begin, begin + w.Length, true
	}
}

// beginsOnDay reports whether an occurrence may begin on the day of an instant.
func (w *Window) beginsOnDay(at int64) bool {
	day := time.Unix(0, at).UTC().Weekday()
	rest := day == time.Saturday || day == time.Sunday
	return w.every == "weekday" && !rest || w.every == "weekend" && rest || w.every != "weekday" && w.every != "weekend"
}

// Overlaps returns an instant at which two reservations hold at once, of those within
// a year from an instant on; false: there is none.
func (w *Window) Overlaps(o *Window, from int64) (int64, bool) {
	if w.Ahead > 0 || o.Ahead > 0 {
		return 0, false // a floating one holds nobody's nodes, it keeps long jobs off
	}
	last := max(from, w.Start, o.Start) + int64(366*24*time.Hour)
	for at := from; at < last; {
		a, aEnd, ok := w.Next(at)
		b, bEnd, also := o.Next(at)
		if !ok || !also {
			return 0, false
		}
		if begin := max(a, b); begin < min(aEnd, bEnd) {
			return begin, true
		}
		at = max(min(aEnd, bEnd), at+1)
	}
	return 0, false
}

// LongestReservation bounds how long a reservation lasts, and how far ahead it is, so
// that instants can be added up.
const LongestReservation = Duration(50 * 365 * 24 * time.Hour)

// isCountable reports whether a start, which can be read, is an instant to which times can
// be added.
func isCountable(start string) bool {
	at, _ := time.Parse(time.RFC3339, start)
	return at.Year() >= 1970 && at.Year() < 2200
}

// checkReservation finds what is wrong with one reservation, and which one before it has
// its nodes at the same time.
func (c *check) checkReservation(i int) {
	r, path := &c.p.Reservations[i], fmt.Sprintf("reservations[%d]", i)
	w, ok := r.Window()
	period, known := repeats[r.Every]
	switch {
	case r.Ahead > 0 && (r.Start != "" || r.Every != ""):
		c.addProblem(path+".ahead", "leave out start and every", "one that is always so far ahead has no start of its own")
	case !ok:
		c.addProblem(path+".start", "write it as 2026-12-01T08:00:00Z", "%q is no time", r.Start)
	case r.Ahead < 0 || r.Ahead > LongestReservation:
		c.addProblem(path+".ahead", "write a time of at most 50 years, as 2h", "no reservation is so far ahead")
	case r.Ahead == 0 && !isCountable(r.Start):
		c.addProblem(path+".start", "write a time from 1970 to 2199, as 2026-12-01T08:00:00Z", "%q is too far away", r.Start)
	case r.Duration <= 0:
		c.addProblem(path+".duration", "write how long it lasts, as 2h", "it would never hold")
	case r.Duration > LongestReservation:
		c.addProblem(path+".duration", "write at most 50 years (438000h)", "it lasts longer than can be reckoned")
	case r.Every != "" && !known:
		c.addProblem(path+".every", "write hour, day, weekday, weekend or week", "%q is not how often", r.Every)
	case known && time.Duration(r.Duration) > period:
		c.addProblem(path+".duration", "make it shorter, or leave out every", "it lasts longer than until it comes again")
	default:
		c.checkOverlap(path, i, &w)
	}
	for k, name := range r.Accounts {
		if _, known := c.accounts[name]; !known && len(c.accounts) > 0 {
			c.addUnknown(fmt.Sprintf("%s.accounts[%d]", path, k), "account", name)
		}
	}
}

func (c *check) checkOverlap(path string, i int, w *Window) {
	r := &c.p.Reservations[i]
	for k := range c.p.Reservations[:i] {
		o := &c.p.Reservations[k]
		other, ok := o.Window()
		if !ok || r.Overlap || o.Overlap || !r.sharesNodes(o) {
			continue
		}
		if at, both := w.Overlaps(&other, min(w.Start, other.Start)); both {
			c.addProblem(path, "choose other nodes or another time, or write overlap: true", "%s has nodes of it at %s",
				o.Name, time.Unix(0, at).UTC().Format(time.RFC3339))
		}
	}
}

// sharesNodes reports whether two reservations have a node in common.
func (r *Reservation) sharesNodes(o *Reservation) bool {
	return len(r.Nodes) == 0 || len(o.Nodes) == 0 || slices.ContainsFunc(r.Nodes, func(n string) bool { return slices.Contains(o.Nodes, n) })
}
