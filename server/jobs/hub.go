package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// hub reads the events of the control plane once and lets any number of watchers
// read them from a window. Nothing is kept per watcher: who is slower than the
// window reads the journal for himself.
type hub struct {
	plane  Changes
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	items []*item // the window, by Seq; begins anew by copying
	last  uint64  // Seq up to which the window is complete
	from  uint64  // everything after it is in the window
	wake  chan struct{}
}

// item is one event of the window.
type item struct {
	state.Event
	array job.ID // number before the "_" of its name; 0: none
	final bool   // the job may have ended with it
	admin bool   // for administrators alone

	written atomic.Pointer[[]byte] // text, once somebody wanted it
}

const window = 4096 // events; twice that is kept at most

func newHub(p Changes, log *slog.Logger) *hub {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hub{plane: p, log: log, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{})}
	h.last = p.LastEvent()
	h.from = h.last
	go h.main(ctx, h.last)
	return h
}

func (h *hub) close() {
	h.cancel()
	<-h.done
}

func (h *hub) main(ctx context.Context, after uint64) {
	defer close(h.done)
	for ctx.Err() == nil {
		evs, last, gap, err := h.plane.Events(ctx, after)
		if err != nil {
			if ctx.Err() == nil {
				h.log.Warn("the control plane gives no events", "error", err)
				sleepContext(ctx, time.Second)
			}
			continue
		}
		items := make([]*item, 0, len(evs))
		for i := range evs {
			items = append(items, newItem(evs[i]))
		}
		h.append(items, last, gap)
		after = last
	}
}

func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (h *hub) append(items []*item, last uint64, gap bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gap {
		h.items, h.from = nil, last
		if len(items) > 0 {
			h.from = items[0].Seq - 1
		}
	}
	if len(h.items)+len(items) > 2*window && len(h.items) > window {
		cut := len(h.items) - window
		h.from = h.items[cut-1].Seq
		h.items = append(make([]*item, 0, 2*window), h.items[cut:]...) // watchers may hold the old one
	}
	h.items = append(h.items, items...)
	h.last = last
	close(h.wake)
	h.wake = make(chan struct{})
}

// next returns the events after a number that the window has. ok false: the window
// begins later. Nothing there: wake is closed when there is.
func (h *hub) next(after uint64) (items []*item, last uint64, wake <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.from {
		return nil, after, nil, false
	}
	i := sort.Search(len(h.items), func(i int) bool { return h.items[i].Seq > after })
	return h.items[i:len(h.items):len(h.items)], max(h.last, after), h.wake, true
}

// lastSeq is the number up to which the window is complete.
func (h *hub) lastSeq() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// forAdmins are the kinds of event that administrators alone see. Those of controllers name services of
// all accounts; who owns one asks for the service itself.
var forAdmins = map[string]bool{state.EventToken: true, state.EventRevoked: true, state.EventController: true, state.EventControllerGone: true}

func newItem(e state.Event) *item {
	out := &item{Event: e, final: e.State == "" || finals[e.State], admin: forAdmins[e.Kind]}
	if head, _, ok := strings.Cut(e.Name, "_"); ok {
		n, _ := strconv.ParseUint(head, 10, 64) // our own form
		out.array = job.ID(n)
	}
	return out
}

// eventText is the whole message of the event. It is made for the first watcher who
// wants it; with nobody watching nothing is made.
func (it *item) eventText() []byte {
	if b := it.written.Load(); b != nil {
		return *b
	}
	data, err := json.Marshal(shownEvent(&it.Event))
	if err != nil {
		panic(err) // texts, numbers and times
	}
	b := strconv.AppendUint(append(make([]byte, 0, len(data)+48), "id: "...), it.Seq, 10)
	b = append(append(b, "\nevent: change\ndata: "...), data...)
	b = append(b, "\n\n"...)
	it.written.Store(&b)
	return b
}

// concernsAny says whether the event concerns one of the jobs, or a task of one of them.
func (it *item) concernsAny(jobs map[job.ID]bool) bool {
	return jobs[it.Job] || it.array != 0 && jobs[it.array]
}

var finals = func() map[string]bool {
	m := map[string]bool{}
	for _, st := range job.States() {
		m[st.String()] = st.Final()
	}
	return m
}()

func shownEvent(e *state.Event) api.Event {
	return api.Event{
		Seq: e.Seq, At: e.At, Kind: e.Kind, Job: e.Job, Name: e.Name, Count: e.Count, User: e.User, State: e.State,
		Attempt: e.Attempt, Exit: e.Exit, Nodes: e.Nodes, By: e.By, Message: e.Message,
	}
}
