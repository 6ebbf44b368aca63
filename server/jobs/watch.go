package jobs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
)

type watchInput struct {
	After  uint64   `query:"after" doc:"number of the last event that is known; left out: from now on"`
	LastID string   `header:"Last-Event-ID" doc:"outranks after"`
	Jobs   []string `query:"jobs" doc:"only events of these jobs and arrays"`
	User   string   `query:"user" doc:"only events of this user's jobs; name or number"`
	Others float64  `query:"others" minimum:"0" maximum:"3600" doc:"seconds: events that jobs and user leave out are counted, and told at most so often by an event named others; 0: not at all"`
}

func (s *Service) registerWatch() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/watch", Verb: auth.Watch, ID: "watch", Tag: "watch", Owned: true, Lasts: true, Media: []string{transport.EventStream}, Answer: transport.TypeOf[api.Event](),
		Summary: "Watch changes as they become durable",
		About: "Server-sent events; each id is a number of the journal. Come back with the last id, by Last-Event-ID or after, " +
			"and nothing is lost or doubled, also over a restart of the server. An event named gap says that what was missed is no longer kept: list anew. " +
			"With others, an event named others has seq and count: so many other events have happened. A session of the web console has at most 8 watches of one user. " +
			"A comment or an id alone is a heartbeat. A reader that does not read is cut off.",
	}, func(c *call, in *watchInput) error { return s.watchEvents(c, in) })
}

// filter says which events a watcher gets.
type filter struct {
	jobs map[job.ID]bool
	user string
	mine string // where jobs are private: of this user, and of nobody

	admin bool
}

func (f *filter) matchesItem(it *item) bool {
	if !f.maySeeItem(it) || f.user != "" && it.User != f.user {
		return false
	}
	return f.jobs == nil || it.concernsAny(f.jobs)
}

// maySeeItem says whether the watcher may see an event.
func (f *filter) maySeeItem(it *item) bool {
	return !(it.admin && !f.admin || f.mine != "" && it.Job != 0 && it.User != f.mine)
}

func (s *Service) watchEvents(c *call, in *watchInput) error {
	f := s.visibleTo(c.Call)
	f.user = in.User
	if n, err := strconv.ParseUint(in.User, 10, 32); err == nil {
		f.user = s.cfg.Users.ByUID(uint32(n)).Name
	}
	ids, err := parseIDs(joinBrackets(in.Jobs))
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		f.jobs = c.watchedNumbers(ids)
	}
	after := in.After
	if in.LastID != "" {
		n, err := strconv.ParseUint(in.LastID, 10, 64)
		if err != nil {
			return fault.New(fault.Invalid, "Last-Event-ID: %q is no number", in.LastID).Advise("begin without it")
		}
		after = n
	} else if c.R.URL.Query().Get("after") == "" {
		after = s.hub.lastSeq()
	}
	u, err := s.watches.addWatch(&c.ID, c.ID.UID != 0 && c.ID.UID != s.Self.UID)
	if err != nil {
		return err
	}
	defer s.watches.removeWatch(&c.ID, u)
	s.Metrics.Watchers.Add(1)
	defer s.Metrics.Watchers.Add(-1)
	w := &eventWriter{c: c, user: u, others: others{every: time.Duration(in.Others * float64(time.Second))}, ctl: http.NewResponseController(c.W.ResponseWriter), stall: s.cfg.Stall}
	if !w.beginStream() {
		return nil
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	if n := s.cfg.Plane.LastEvent(); after > n { // of another journal, or one that lost its end
		w.writeGap(n)
		after = n
	}
	s.followEvents(ctx, w, &f, after)
	return nil
}

// watchedNumbers are the numbers whose events concern the ids: an array's own number stands
// for all of its tasks.
func (c *call) watchedNumbers(ids []slurmfmt.JobID) map[job.ID]bool {
	out := map[job.ID]bool{}
	var tasks []slurmfmt.JobID
	for _, id := range ids {
		if id.Tasks == "" {
			out[job.ID(id.Job)] = true
		} else {
			tasks = append(tasks, id)
		}
	}
	numbers, _ := c.selectedNumbers(tasks)
	for _, n := range numbers {
		out[n] = true
	}
	return out
}

// streamContext is a context for the request's answer; see watchSession.
func (c *call) streamContext() (context.Context, context.CancelFunc) { return c.WatchSession(c.Ctx()) }

// followEvents writes events until the watcher has gone.
func (s *Service) followEvents(ctx context.Context, w *eventWriter, f *filter, after uint64) {
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	tick, stop := w.others.ticks()
	defer stop()
	for ctx.Err() == nil {
		items, last, wake, ok := s.hub.next(after)
		if !ok {
			if after, ok = s.catchUp(ctx, w, f, after); !ok {
				return
			}
			continue
		}
		if len(items) > manyEvents {
			if items = items[:min(len(items), pageEvents)]; !w.user.inTurn(ctx, func() { ok = w.addItems(f, items) }) || !ok {
				return
			}
			after = items[len(items)-1].Seq
			continue
		}
		if !w.addItems(f, items) {
			return
		}
		after = last
		if len(items) > 0 {
			s.gatherEvents(ctx)
			continue
		}
		select {
		case <-wake:
		case now := <-tick:
			w.writeOthers(now)
			if !w.flush() {
				return
			}
		case <-beat.C:
			w.writeHeartbeat(after)
			if !w.flush() {
				return
			}
		case <-ctx.Done():
		}
	}
}

// gatherEvents lets events come together where many watch: a write for each of them and
// each event would leave the server no time for anything else. With 1,000 watchers
// an event comes up to 20 ms late.
func (s *Service) gatherEvents(ctx context.Context) {
	if n := s.Metrics.Watchers.Load(); n > 50 {
		sleepContext(ctx, min(time.Duration(n)*20*time.Microsecond, 200*time.Millisecond))
	}
}

// catchUp writes from the journal what the window no longer has, in the user's turn.
func (s *Service) catchUp(ctx context.Context, w *eventWriter, f *filter, after uint64) (to uint64, ok bool) {
	had := w.user.inTurn(ctx, func() {
		items, last, gap, err := s.past.eventsAfter(ctx, after)
		switch {
		case err != nil:
		case gap:
			to = max(last, s.hub.lastSeq())
			w.writeGap(to)
			ok = w.flush()
		default:
			to, ok = last, w.addItems(f, items)
		}
	})
	return to, had && ok
}

// eventWriter writes to one watcher, and gives up on one that does not read.
type eventWriter struct {
	c     *call
	user  *userWatches
	ctl   *http.ResponseController
	stall time.Duration
	buf   []byte

	others others
}

// Bytes of a watcher's buffer: from sendSize on it is sent, and one of more than keepSize is not
// kept. Who reads slowly holds no more beside the events that are kept anyway; a thousand who read
// hold nothing to speak of.
const (
	sendSize = 32 << 10
	keepSize = 8 << 10
)

func (w *eventWriter) beginStream() bool {
	h := w.c.W.Header()
	h.Set("Content-Type", transport.EventStream+"; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.c.W.WriteHeader(http.StatusOK)
	w.buf = append(w.buf, ": here\n\n"...)
	return w.flush()
}

// add sends a text, or keeps it for the next flush; false: the watcher has gone or does not read.
func (w *eventWriter) add(text []byte) bool {
	w.buf = append(w.buf, text...)
	return len(w.buf) < sendSize || w.flush()
}

// addItems sends the events that the filter lets through; false: the watcher has gone or does not read.
func (w *eventWriter) addItems(f *filter, items []*item) bool {
	for i := range items {
		if f.matchesItem(items[i]) {
			if !w.add(items[i].eventText()) {
				return false
			}
		} else if w.others.every > 0 && f.maySeeItem(items[i]) {
			w.others.count++
			w.others.last = items[i].Seq
		}
	}
	w.writeOthers(time.Now())
	return w.flush()
}

// writeGap says that what was missed is gone, and from where it goes on.
func (w *eventWriter) writeGap(to uint64) {
	n := strconv.FormatUint(to, 10)
	w.add([]byte("id: " + n + "\nevent: gap\ndata: {\"seq\":" + n + ",\"kind\":\"" + api.KindGap + "\"}\n\n"))
}

// writeHeartbeat tells a watcher whose filter lets little through how far he is.
func (w *eventWriter) writeHeartbeat(after uint64) {
	w.add([]byte("id: " + strconv.FormatUint(after, 10) + "\n\n"))
}

// flush sends what was added; false: the watcher has gone or does not read.
func (w *eventWriter) flush() bool {
	if len(w.buf) == 0 {
		return true
	}
	_ = w.ctl.SetWriteDeadline(time.Now().Add(w.stall)) // a recorder of a test has none
	_, err := w.c.W.Write(w.buf)
	w.buf = w.buf[:0]
	if cap(w.buf) > keepSize {
		w.buf = nil
	}
	if err == nil {
		err = w.ctl.Flush()
	}
	if err != nil {
		w.c.s.Metrics.Cut.Add(1)
		return false
	}
	return true
}
