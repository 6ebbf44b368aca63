package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

var errEnough = errors.New("enough")

// collect watches until an event of job last.
func collect(t testing.TB, c *client.Client, o client.WatchOptions, last job.ID) []api.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got []api.Event
	err := c.Watch(ctx, o, func(e api.Event) error {
		got = append(got, e)
		if e.Job == last {
			return errEnough
		}
		return nil
	})
	if err != errEnough {
		t.Fatalf("%v after %+v", err, got)
	}
	return got
}

func jobsOf(evs []api.Event) (ids []job.ID) {
	for _, e := range evs {
		ids = append(ids, e.Job)
	}
	return ids
}

func TestWatchFilters(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)                                    // 1, 2
	p.Fill(t, 1, "ben", 2002, &job.ArraySpec{Indices: []uint32{5, 6}}) // 3, 4
	p.Start(4, "v1")
	p.Fill(t, 1, "anna", 2001, nil) // 5
	r := start(t, p, nil)
	c := r.As(t, "anna")
	for _, x := range []struct {
		name string
		o    client.WatchOptions
		last job.ID
		want []job.ID
	}{
		{"all", client.WatchOptions{}, 5, []job.ID{1, 2, 3, 4, 5}},
		{"from the third on", client.WatchOptions{After: 2}, 5, []job.ID{3, 4, 5}},
		{"a user", client.WatchOptions{User: "anna"}, 5, []job.ID{1, 2, 5}},
		{"a user by number", client.WatchOptions{User: "2001"}, 5, []job.ID{1, 2, 5}},
		{"jobs", client.WatchOptions{Jobs: []string{"2", "5"}}, 5, []job.ID{2, 5}},
		{"an array", client.WatchOptions{Jobs: []string{"3"}}, 4, []job.ID{3, 4}},
		{"a task", client.WatchOptions{Jobs: []string{"3_[6]"}}, 4, []job.ID{4}},
	} {
		if got := jobsOf(collect(t, c, x.o, x.last)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, not %v", x.name, got, x.want)
		}
	}
	private := start(t, p, func(c *Config) { c.Policy = auth.Policy{Private: true} })
	if got := jobsOf(collect(t, private.As(t, "anna"), client.WatchOptions{}, 5)); !slices.Equal(got, []job.ID{1, 2, 5}) {
		t.Errorf("private: %v", got)
	}
	if got := jobsOf(collect(t, private.Admin(t), client.WatchOptions{}, 5)); len(got) != 5 {
		t.Errorf("private, administrator: %v", got)
	}
}

func TestWatchFromNowOn(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 3, "anna", 2001, nil)
	r := start(t, p, nil)
	conn, br := r.DialWatch(t, "/v1/watch")
	defer conn.Close()
	p.Fill(t, 1, "anna", 2001, nil)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "id: ") {
			if line != "id: 4\n" {
				t.Errorf("%q", line)
			}
			return
		}
	}
}

// TestEachEventOnceOnTheWire reads what the server writes, which the client would
// mend.
func TestEachEventOnceOnTheWire(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Heartbeat = 5 * time.Millisecond })
	conn, br := r.DialWatch(t, "/v1/watch?after=0")
	defer conn.Close()
	for n := 1; n <= 3; n++ {
		p.Fill(t, 1, "anna", 2001, nil)
		for events, beats := 0, 0; beats < 3; {
			line, err := br.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "event: change\n" {
				events++
			}
			if line == fmt.Sprintf("id: %d\n", n) {
				if next, err := br.Peek(1); err != nil || next[0] == '\n' {
					beats++
				}
			}
			if events > 1 {
				t.Fatalf("event %d came again", n)
			}
		}
	}
}

func TestEventsOfTokensAreForAdministrators(t *testing.T) {
	p := servertest.NewPlane()
	p.Mu.Lock()
	p.Emit(state.Event{Kind: state.EventToken})
	p.Emit(state.Event{Kind: state.EventController, Message: "service/ml/chat"})
	p.Mu.Unlock()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	if got := collect(t, r.As(t, "anna"), client.WatchOptions{}, 1); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got := collect(t, r.Admin(t), client.WatchOptions{}, 1); len(got) != 3 || got[0].Kind != state.EventToken || got[1].Kind != state.EventController {
		t.Errorf("%+v", got)
	}
}

// TestANumberFromTheFutureIsAGap is a client of another state directory.
func TestANumberFromTheFutureIsAGap(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	r := start(t, p, nil)
	var got []api.Event
	err := r.As(t, "anna").Watch(t.Context(), client.WatchOptions{After: 700}, func(e api.Event) error {
		if got = append(got, e); len(got) == 2 {
			return errEnough
		}
		p.Fill(t, 1, "anna", 2001, nil)
		return nil
	})
	if err != errEnough || got[0].Kind != api.KindGap || got[0].Seq != 2 || got[1].Seq != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAGapIsSaid(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 30, "anna", 2001, nil)
	p.Purge(10)
	r := start(t, p, nil)
	var got []api.Event
	err := r.As(t, "anna").Watch(t.Context(), client.WatchOptions{After: 3}, func(e api.Event) error {
		if len(got) == 0 {
			p.Fill(t, 1, "anna", 2001, nil)
		}
		if got = append(got, e); len(got) == 2 {
			return errEnough
		}
		return nil
	})
	if err != errEnough || got[0].Kind != api.KindGap || got[0].Seq != 30 || got[1].Seq != 31 || got[1].Job != 31 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestHeartbeatsCarryTheNumber(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Heartbeat = 5 * time.Millisecond })
	conn, br := r.DialWatch(t, "/v1/watch?after=0&user=nobody")
	defer conn.Close()
	p.Fill(t, 3, "anna", 2001, nil)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data:") {
			t.Fatalf("an event of anna: %q", line)
		}
		if line == "id: 3\n" {
			return
		}
	}
}

// TestTheWindowIsBounded reads from before the window.
func TestTheWindowIsBounded(t *testing.T) {
	p := servertest.NewPlane()
	h := newHub(p, slog.New(slog.DiscardHandler))
	defer h.close()
	const n = 5 * window
	for i := 0; i < n; i += 1000 {
		var items []*item
		for k := range 1000 {
			items = append(items, newItem(state.Event{Seq: uint64(i + k + 1)}))
		}
		h.append(items, uint64(i+1000), false)
	}
	if len(h.items) > 2*window {
		t.Errorf("%d items", len(h.items))
	}
	if _, _, _, ok := h.next(0); ok {
		t.Error("the window claims to have everything")
	}
	items, last, _, ok := h.next(h.from)
	if !ok || items[0].Seq != h.from+1 || items[len(items)-1].Seq != last {
		t.Errorf("from %d: %d to %d, %v", h.from, items[0].Seq, last, ok)
	}
}
