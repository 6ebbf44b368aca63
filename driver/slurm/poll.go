package slurm

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// most is how many numbers are asked for at once.
const most = 10_000

// thrift: what a poll cost the cluster is followed by a pause of so many times that.
const thrift = 40

// urgentThrift is the same for a poll of those alone of which something was heard.
const urgentThrift = 4

// breath lies between two polls in any case, but for tests that ask for less.
const breath = 100 * time.Millisecond

// hintThrift is the same for a look for hints, which is cheap, but not over SSH.
const hintThrift = 10

// urgency is how long an attempt is asked about more often than the others after something
// was heard of it, or done to it.
const urgency = 10 * time.Second

// unseen is how many attempts that were just handed over are asked about in one poll while
// more are being handed over.
const unseen = 8

// poller asks for the live jobs again and again, and hands the answers to their attempts.
type poller struct {
	e    *Engine
	kick chan struct{} // a poll is wanted

	// The engine's lock guards these.
	polls Polls
	urged map[*attempt]bool // of which something is to be heard soon
}

// soon has an attempt asked about soon. The caller holds the lock.
func (q *poller) soon(a *attempt) {
	a.poll.urgent = time.Now()
	q.urged[a] = true
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// now is soon for a caller that does not hold the lock.
func (q *poller) now(a *attempt) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	q.soon(a)
}

// pollPace is what the polls cost, and when they were.
type pollPace struct {
	all, some           time.Time     // of all live jobs; of some
	allCost, someCost   time.Duration // how long the answer took; of two the quicker one
	lastCost            time.Duration // how long the last answer about all took
	floor               time.Duration // how long a question about one job takes, about
	longest, betweenTwo time.Duration
}

// costOfAll is what a poll of all costs the cluster: not what a question costs that asks for
// nothing, as starting a command does on a machine that is busy.
func (p *pollPace) costOfAll() time.Duration { return max(p.allCost-p.floor, p.allCost/8) }

// allDue reports whether it is time to ask about all.
func (p *pollPace) allDue(now time.Time) bool {
	return now.Sub(p.all) >= min(max(p.longest, thrift*p.costOfAll()), max(lastPause, p.longest))
}

// someDue reports whether it is time to ask about those of which something was heard just
// now (wanted), or before.
func (p *pollPace) someDue(now time.Time, wanted bool) bool {
	wait := max(urgentThrift*p.someCost, min(breath, p.betweenTwo))
	if !wanted {
		wait = max(wait, p.betweenTwo)
	}
	last := p.some
	if p.all.After(last) {
		last = p.all
	}
	return now.Sub(last) >= min(wait, lastPause)
}

// run asks for the live jobs until the engine is closed: for all of them at an interval that
// the answers' cost decides, and for those alone of which a hint or a caller says something.
func (q *poller) run() {
	look := time.NewTicker(q.e.cfg.Hints)
	defer look.Stop()
	var looked time.Time
	var price time.Duration // of a look for hints
	known := map[string]bool{}
	p := pollPace{longest: q.e.cfg.Longest, betweenTwo: q.e.cfg.Shortest}
	wanted, some := false, false
	for {
		var live, urgent []uint32
		now := time.Now()
		if p.allDue(now) { // not each time: going through all takes long where there are many
			live = q.liveJobs(now)
			some = len(live) > 0
		}
		if len(live) == 0 && p.someDue(now, wanted) {
			urgent = q.urgentJobs(now)
		}
		switch {
		case len(live) > 0:
			wanted = false
			q.askForJobs(live)
			p.all = time.Now()
			p.allCost, p.lastCost = min(p.all.Sub(now), max(p.lastCost, p.longest/thrift)), p.all.Sub(now)
			if p.floor == 0 && thrift*p.allCost > p.longest {
				q.askForJobs(live[:1])
				p.floor = time.Since(p.all)
			}
		case len(urgent) > 0:
			wanted = false
			q.askForJobs(urgent)
			p.some = time.Now()
			p.someCost = p.some.Sub(now)
			if len(urgent) == 1 && p.floor > 0 {
				p.floor = (3*p.floor + p.someCost) / 4
			}
		}
		select {
		case <-q.e.ctx.Done():
			return
		case <-q.kick:
			wanted = true
		case <-look.C:
			if q.e.blind || !some || time.Since(looked) < min(hintThrift*price, lastPause) {
				continue
			}
			began := time.Now()
			news, err := q.readHints(known)
			wanted = wanted || news
			looked = time.Now()
			if price = looked.Sub(began); err != nil { // a login that is away is not asked again and again
				price = max(price, time.Second/hintThrift)
			}
		}
	}
}

// urgentJobs are the numbers of jobs of which something is to be heard soon.
func (q *poller) urgentJobs(now time.Time) (ids []uint32) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	for a := range q.urged {
		switch {
		case a.ended || now.Sub(a.poll.urgent) >= urgency:
			delete(q.urged, a)
		case a.id != 0:
			ids = append(ids, a.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// liveJobs are the numbers of jobs that have not ended.
func (q *poller) liveJobs(now time.Time) (ids []uint32) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	sending := false
	for _, a := range q.e.attempts {
		sending = sending || a.id == 0 && !a.ended
	}
	fresh := 0
	for _, a := range q.e.attempts {
		if a.id == 0 || a.ended {
			continue
		}
		if a.poll.job == nil && a.poll.unknownSince.IsZero() && sending && now.Sub(a.poll.urgent) >= urgency {
			if fresh++; fresh > unseen {
				continue
			}
		}
		ids = append(ids, a.id)
	}
	slices.Sort(ids)
	return ids
}

// askForJobs asks for jobs and hands the answers to their attempts.
func (q *poller) askForJobs(ids []uint32) {
	for part := range slices.Chunk(ids, most) {
		ctx, cancel := q.e.controller.callContext()
		began := time.Now()
		all, err := q.e.cfg.Site.Jobs(ctx, part)
		var past []site.Job
		if err == nil {
			past, err = q.askAccounting(ctx, part, all)
		}
		cancel()
		q.e.mu.Lock()
		q.polls.Count++
		q.polls.Jobs += uint64(len(part))
		q.polls.Latency = time.Since(began)
		if err != nil {
			q.polls.Errors++
		}
		q.e.mu.Unlock()
		if err != nil {
			if q.e.ctx.Err() == nil {
				q.e.cfg.Log.Warn("slurm: poll", "error", err)
			}
			return
		}
		q.deliverAnswers(part, all, past, began)
	}
}

// askAccounting asks accounting for those of which slurmctld said nothing.
func (q *poller) askAccounting(ctx context.Context, ids []uint32, all []site.Job) ([]site.Job, error) {
	there := map[uint32]bool{}
	for i := range all {
		there[all[i].ID] = true
	}
	var lost []uint32
	for _, id := range ids {
		if !there[id] {
			lost = append(lost, id)
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	if c, err := q.e.cfg.Site.Cluster(ctx); err != nil {
		return nil, err
	} else {
		q.e.mu.Lock()
		q.e.seen.cluster = c
		q.e.mu.Unlock()
	}
	past, err := q.e.cfg.Site.Past(ctx, lost)
	if fault.KindOf(err) == fault.Unsupported {
		return nil, nil
	}
	return past, err
}

// deliverAnswers hands to each attempt what was said of its job.
func (q *poller) deliverAnswers(ids []uint32, all, past []site.Job, now time.Time) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	for _, a := range q.e.attempts {
		if a.id == 0 || a.ended {
			continue
		}
		if _, asked := slices.BinarySearch(ids, a.id); !asked || now.Before(a.suspension.changed) { // or it was asked before that changed
			continue
		}
		j := findJob(all, a)
		if j == nil {
			if a.poll.unknownSince.IsZero() {
				a.poll.unknownSince = now
			}
			if j = findJob(past, a); j != nil && (!j.State.Final() || closedUnknown(j)) {
				j = nil // what accounting says of the living lags behind
			}
			if j == nil {
				a.wakeUp()
				continue
			}
		} else {
			a.poll.unknownSince, a.poll.at = time.Time{}, now
		}
		a.poll.job = j
		a.wakeUp()
	}
}

// findJob is the job of an attempt: with its number and its tag. Accounting may keep no
// comments, and a number may be given out again after slurmctld lost it: then it is the
// one that was submitted when ours was. Of several beginnings the last counts. The
// components of a heterogeneous job are one with their first.
func findJob(all []site.Job, a *attempt) (found *site.Job) {
	for i := range all {
		j := &all[i]
		if j.ID != a.id || !hasTag(j.Comment, a.tag) && (j.Comment != "" || !a.wasSubmittedAt(j.Submitted)) {
			continue
		}
		found = j
	}
	if found == nil || found.Het == 0 {
		return found
	}
	whole := *found
	for i := range all {
		c := &all[i]
		if c.Het != a.id || c.ID == a.id || !hasTag(c.Comment, a.tag) {
			continue
		}
		whole.More = append(whole.More, c.Nodes...)
		if whole.State.Final() && (!c.State.Final() || c.Completing) {
			whole.Completing = true // a part of it lives
		}
	}
	return &whole
}

// closedUnknown reports whether a record of accounting's was closed because slurmctld did not
// know the job when it began anew: cancelled, and by nobody. The job may live.
func closedUnknown(j *site.Job) bool { return j.State == site.Cancelled && j.CancelledBy == "" }

// wasSubmittedAt reports whether an attempt's job was submitted at a time.
func (a *attempt) wasSubmittedAt(at time.Time) bool {
	if a.poll.job != nil {
		return at.Equal(a.poll.job.Submitted)
	}
	// While it was handed over, to the second. Clocks that differ more lead to the lock,
	// which decides without accounting.
	return !at.Before(a.handover.tried.Add(-time.Second)) && !at.After(a.handover.numbered.Add(time.Second))
}

// readHints looks for files that scripts wrote since the last look, and reports whether
// there are any of live attempts.
func (q *poller) readHints(known map[string]bool) (bool, error) {
	ctx, cancel := q.e.controller.callContext()
	defer cancel()
	names, err := q.e.cfg.Room.List(ctx)
	if err != nil {
		q.e.cfg.Log.Warn("slurm: hints", "error", err)
		return false, err
	}
	var news []string
	there := make(map[string]bool, len(names))
	for _, n := range names {
		there[n] = true
		if !known[n] && (strings.HasSuffix(n, ".begun") || strings.HasSuffix(n, ".done")) {
			news = append(news, n)
		}
	}
	if news = q.liveAttemptFiles(news, known); len(news) > 0 {
		slices.Sort(news) // a beginning before its end
	}
	for n := range known {
		if !there[n] {
			delete(known, n)
		}
	}
	if len(news) == 0 {
		return false, nil
	}
	marks, err := q.e.cfg.Room.Look(ctx, news)
	if err != nil {
		return false, err
	}
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	of, any := q.byPrefix(), false
	for i := range marks {
		m := &marks[i]
		if halfWritten(m) {
			continue
		}
		known[m.Name] = true
		stem, _ := cutLast(m.Name)
		prefix, restarts := cutLast(stem)
		a := of[prefix]
		if a == nil || restarts != strconv.Itoa(a.base) {
			continue
		}
		if !a.noteHint(m) {
			q.e.cfg.Log.Warn("slurm: the file of an attempt's end is another user's, and does not count", "attempt", a.ref.String(), "uid", m.Owner)
			continue
		}
		any = true
		a.poll.urgent = time.Now()
		q.urged[a] = true
		a.wakeUp()
	}
	return any, nil
}

// byPrefix are the attempts that live, by the beginning of their files' names. The caller
// holds the lock.
func (q *poller) byPrefix() map[string]*attempt {
	of := map[string]*attempt{}
	for _, a := range q.e.attempts {
		if !a.ended {
			of[a.prefix] = a
		}
	}
	return of
}

// liveAttemptFiles are the files of attempts that live. Whatever else is there nobody reads: everybody
// may put files there, as many as he likes.
func (q *poller) liveAttemptFiles(names []string, known map[string]bool) []string {
	if len(names) == 0 {
		return nil
	}
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	of := q.byPrefix()
	return slices.DeleteFunc(names, func(n string) bool {
		stem, _ := cutLast(n)
		prefix, _ := cutLast(stem)
		known[n] = of[prefix] == nil
		return known[n]
	})
}

// noteHint notes a hint. Only who wrote that an attempt began can say that it ended: the names of
// its files can be read off the processes of a login node by then. The caller holds the lock.
func (a *attempt) noteHint(m *lockdir.Mark) bool {
	switch {
	case strings.HasSuffix(m.Name, ".begun"):
		a.hint.writer = cmp.Or(a.hint.writer, m.Owner)
		if a.hint.begun.IsZero() {
			a.hint.begun = m.Time
		}
	case a.hint.writer != "" && m.Owner != a.hint.writer:
		return false
	default:
		a.hint.done, a.hint.status, a.hint.noted = m.Time, m.Text, time.Now()
	}
	return true
}

// halfWritten reports whether a script has created the file of its end and not yet written
// its exit status into it. One that is killed just then never does.
func halfWritten(m *lockdir.Mark) bool {
	return strings.HasSuffix(m.Name, ".done") && m.Text == "" && time.Since(m.Time) < skew
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// parseExitStatus reads the exit status in a hint.
func parseExitStatus(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= 255
}
