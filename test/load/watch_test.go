package load

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/job"
)

// watchers follow the day's events.
type watchers struct {
	t      *testing.T
	raw    *http.Client
	ctx    context.Context // ends with the test
	stop   context.CancelFunc
	done   sync.WaitGroup
	events sync.Map // of one user, by name: *[]uint64, in order; written by the one that stays

	mu      sync.Mutex
	moved   *sync.Cond
	first   uint64 // what the one that stays has seen, without a gap
	seen    uint64
	resumed uint64 // the same of the one that is cut off
	cuts    int
	late    int // times that it came back after the server's window
	settled bool
	ended   bool
	jobs    map[job.ID]*fate
	visits  []visit
	shift   context.Context // visitors leave when it ends
	leave   context.CancelFunc
}

// fate is what was told of a job.
type fate struct {
	submitted, final int
	state            string
	story            []string // kinds of its events
}

// visit is what somebody saw who watched one user for a while.
type visit struct {
	user  string
	after uint64
	seqs  []uint64
}

func follow(t *testing.T, socket string, admin *client.Client, seed uint64) *watchers {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	w := &watchers{t: t, raw: &http.Client{Transport: &http.Transport{DialContext: dial}}, jobs: map[job.ID]*fate{}}
	w.moved = sync.NewCond(&w.mu)
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.shift, w.leave = context.WithCancel(w.ctx)
	t.Cleanup(w.end)
	w.done.Go(func() {
		err := admin.Watch(w.ctx, client.WatchOptions{}, w.stayed)
		if w.ctx.Err() == nil {
			t.Errorf("the watch of everything ended: %v", err)
		}
	})
	w.done.Go(func() { w.cutOff(rand.New(rand.NewPCG(seed, 2))) })
	return w
}

func (w *watchers) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.moved.Broadcast()
	w.leave()
	w.stop()
	w.done.Wait()
	w.raw.CloseIdleConnections()
}

// stayed is told of every event.
func (w *watchers) stayed(ev api.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ev.Kind == api.KindGap || w.seen != 0 && ev.Seq != w.seen+1 {
		w.t.Errorf("event %d (%s) came after %d", ev.Seq, ev.Kind, w.seen)
	}
	if w.seen == 0 {
		w.first = ev.Seq
	}
	w.seen = ev.Seq
	if ev.User != "" && !strings.HasPrefix(ev.Kind, "token-") { // of tokens administrators alone are told
		list, _ := w.events.LoadOrStore(ev.User, &[]uint64{})
		*list.(*[]uint64) = append(*list.(*[]uint64), ev.Seq)
	}
	w.judge(&ev)
	w.moved.Broadcast()
	return nil
}

// judge notes what an event says of its jobs: one that has ended comes back only by a
// requeue.
func (w *watchers) judge(ev *api.Event) {
	if ev.Job == 0 {
		return
	}
	for i := range max(ev.Count, 1) {
		id := ev.Job + job.ID(i)
		f := w.jobs[id]
		if f == nil {
			f = &fate{}
			w.jobs[id] = f
		}
		was := finals[f.state]
		switch {
		case ev.Kind == "submitted":
			f.submitted++
		case was && ev.Kind == "updated": // a comment: it stays what it is
		case was && ev.State != "" && ev.Kind != "requeued":
			w.t.Errorf("job %d is %s by event %d (%s), and had ended as %s before: %q", id, ev.State, ev.Seq, ev.Kind, f.state, f.story)
		}
		f.story = append(f.story, ev.Kind)
		f.state = cmp.Or(ev.State, f.state)
		if finals[f.state] && !was {
			f.final++
		}
	}
}

var finals = func() map[string]bool {
	m := map[string]bool{}
	for _, s := range job.States() {
		m[s.String()] = s.Final()
	}
	return m
}()

// get asks for a stream as the administrator; last is the last event known.
func (w *watchers) get(ctx context.Context, path string, last uint64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cox"+path, nil)
	if err != nil {
		return nil, err
	}
	if last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	resp, err := w.raw.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s answered %s", path, resp.Status), resp.Body.Close())
	}
	return resp, err
}

// cutOff reads what the server sends as it is, breaks the connection after some
// hundreds of events, and comes back: at once, or when the server's window (4,096
// events), or what control remembers (8,192), has gone on without it.
func (w *watchers) cutOff(r *rand.Rand) {
	path := "/v1/watch?after=0"
	for !w.over() {
		if err := w.readSome(path, 100+r.IntN(900)); err != nil && w.ctx.Err() == nil {
			w.t.Errorf("the watch that is cut off: %v", err)
			return
		}
		path = "/v1/watch"
		w.pause([]uint64{0, 0, 300, 5000, 9000}[r.IntN(5)])
	}
}

func (w *watchers) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// pause waits until so many events went by, or the shift ends.
func (w *watchers) pause(events uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts++
	for !w.ended && !w.settled && w.seen < w.resumed+events {
		w.moved.Wait()
	}
	if w.seen >= w.resumed+4096 {
		w.late++
	}
}

// readSome reads a stream until so many events have come and the shift goes on.
func (w *watchers) readSome(path string, n int) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	resp, err := w.get(ctx, path, w.resumed)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return events(resp.Body, func(id uint64, kind string, _ []byte) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if kind == api.KindGap || w.resumed != 0 && id != w.resumed+1 {
			w.t.Errorf("event %d (%s) came after %d by a watch that was cut off", id, kind, w.resumed)
		}
		w.resumed = id
		w.moved.Broadcast()
		n--
		return !w.ended && (n > 0 || w.settled)
	})
}

// events reads a stream of events until f says that it is enough.
func events(r io.Reader, f func(id uint64, kind string, data []byte) bool) error {
	var id uint64
	var kind string
	var data []byte
	for br := bufio.NewReader(r); ; {
		line, err := br.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "id":
			if id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return err
			}
		case "event":
			kind = value
		case "data":
			data = []byte(value)
		case "":
			if value == "" && data != nil && !f(id, kind, data) {
				return nil
			}
			kind, data = "", nil
		}
	}
}

// visit watches one user's jobs until n events have come or the shift ends.
func (w *watchers) visit(ctx context.Context, who *client.Client, user string, n int) error {
	w.mu.Lock()
	shift := w.shift
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(shift, cancel)()
	info, err := who.Info(ctx)
	if err != nil {
		return ignore(ctx, err)
	}
	v := visit{user: user, after: info.Change}
	err = who.Watch(ctx, client.WatchOptions{After: info.Change, User: user}, func(ev api.Event) error {
		if ev.Kind == api.KindGap || ev.User != user {
			return fmt.Errorf("event %d (%s) of user %q", ev.Seq, ev.Kind, ev.User)
		}
		if v.seqs = append(v.seqs, ev.Seq); len(v.seqs) == n {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visits = append(w.visits, v)
	return ignore(ctx, err)
}

var errEnough = errors.New("enough")

func ignore(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// atLeast waits until the watcher that stays has come to within slack events of a
// number, and the one that is cut off to within lag.
func (w *watchers) atLeast(seq, slack, lag uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.ended && !w.t.Failed() && (w.seen+slack < seq || w.resumed+lag < seq) {
		w.moved.Wait()
	}
}

// settle lets every visitor leave and the one that is cut off stay, until the shift
// begins.
func (w *watchers) settle(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = on
	if on {
		w.leave()
	} else {
		w.shift, w.leave = context.WithCancel(w.ctx)
	}
	w.moved.Broadcast()
}

// verify compares what the visitors and the clients know with what the watcher that
// stayed was told.
func (w *watchers) verify(accepted map[job.ID]struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.visits {
		all := []uint64{}
		if list, ok := w.events.Load(v.user); ok {
			all = *list.(*[]uint64)
		}
		from, _ := slices.BinarySearch(all, v.after+1)
		for i, seq := range v.seqs {
			if from+i == len(all) || all[from+i] != seq {
				w.t.Errorf("who watched %s after %d saw event %d; it was %v", v.user, v.after, seq, all[min(from+i, len(all)):min(from+i+3, len(all))])
				break
			}
		}
	}
	for id := range accepted {
		if f := w.jobs[id]; f == nil || f.submitted != 1 || f.final == 0 || !finals[f.state] {
			w.t.Errorf("job %d was accepted; its events tell %+v", id, f)
		}
	}
	for id := range w.jobs {
		if _, ok := accepted[id]; !ok {
			w.t.Errorf("there are events of job %d, which nobody submitted", id)
		}
	}
}
