package server

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/store"
)

// TestReservations makes, changes and ends reservations on a real control plane: one
// that a running job is in the way of is refused with its number, nodes by number are
// those that are free, a waiting job whose promise is broken is told of, and the rest
// of the document stays as it was.
func TestReservations(t *testing.T) {
	var nodes []fleet.Node
	for _, name := range []string{"v1", "v2", "v3"} {
		nodes = append(nodes, fleet.Node{Name: name, Pool: "local", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB}})
	}
	forever := func(*engine.Launch) fake.Outcome { return fake.Outcome{Run: fake.Never} }
	s := &site{t: t, store: &store.Memory{}, world: fake.NewWorld(fake.Config{Now: time.Now, Nodes: nodes, Script: forever}), socket: filepath.Join(t.TempDir(), "cox.sock")}
	s.start()
	t.Cleanup(func() { s.stop() })
	ctx, c := t.Context(), s.client()
	const rest = "# ours\nlicenses:\n  - {name: matlab, count: 2} # two\n"
	if _, err := c.SetPolicy(ctx, &api.SetPolicy{Text: rest, File: "queues.yaml"}); err != nil {
		t.Fatal(err)
	}
	submit := func(args ...string) *api.Submitted {
		req := servertest.Request()
		req.Args = args
		got, err := c.Submit(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	submit("-N1", "--exclusive", "-t", "600", "-w", "v2")
	awaitStart(ctx, t, c, "1")
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	make1 := func(r api.Reservation) (*api.ReservationDone, error) {
		return c.NewReservation(ctx, &api.SetReservation{Reservation: r})
	}
	_, err := make1(api.Reservation{Name: "power", Start: at(time.Hour), Duration: 3600})
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "job 1 of ") || !strings.Contains(err.Error(), "runs on v2 until") {
		t.Errorf("over a running job: %v", err)
	}
	document := rest + "reservations:\n  - {name: power, start: \"" + at(time.Hour) + "\", duration: 1h}\n"
	if _, err := c.SetPolicy(ctx, &api.SetPolicy{Text: document}); err == nil || !strings.Contains(err.Error(), "job 1 of ") {
		t.Errorf("the same by a document: %v", err)
	}
	if _, err := c.SetPolicy(ctx, &api.SetPolicy{Text: strings.Replace(document, "duration", "ignore_jobs: true, duration", 1), DryRun: true}); err != nil {
		t.Errorf("by a document that ignores jobs: %v", err)
	}
	done, err := make1(api.Reservation{Start: at(time.Hour), Duration: 3600, Count: 2, Users: []string{"anna"}})
	if err != nil || done.Reservation.Name != "anna_1" || !slices.Equal(done.Reservation.Nodes, []string{"v1", "v3"}) || len(done.Late) != 0 {
		t.Fatalf("two nodes by number: %+v, %v", done, err)
	}
	if _, err := make1(api.Reservation{Name: "more", Start: at(90 * time.Minute), Duration: 60, Count: 1, Users: []string{"anna"}}); err == nil || !strings.Contains(err.Error(), "v1 is reserved by anna_1; job 1 of ") {
		t.Errorf("one more than there is: %v", err)
	}
	submit("-N1", "--exclusive", "-t", "30", "-w", "v2") // promised v2 in ten hours
	submit("--hold")                                     // the answer comes after all that follows from the job before
	if j, err := c.Job(ctx, "2"); err != nil || j.StartsBy.IsZero() {
		t.Fatalf("job 2 has no promised start: %+v, %v", j, err)
	}
	update := done.Reservation
	update.From, update.Until, update.Active, update.Count, update.CPUs = nil, nil, false, 0, 0
	update.Start, update.Nodes = at(9*time.Hour+59*time.Minute), []string{"v2"}
	_, err = c.SetReservation(ctx, "anna_1", &api.SetReservation{Reservation: update})
	if err == nil || !strings.Contains(err.Error(), "job 1 of ") {
		t.Errorf("onto the node in use: %v", err)
	}
	update.Ignore = true
	done, err = c.SetReservation(ctx, "anna_1", &api.SetReservation{Reservation: update})
	if err != nil || len(done.Late) != 1 || done.Late[0].Job != "2" || done.Late[0].Start == nil {
		t.Errorf("onto the node of a promised start: %+v, %v", done, err)
	}
	stale := uint64(1)
	if _, err := c.SetReservation(ctx, "anna_1", &api.SetReservation{Reservation: update, Base: &stale}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("on an old revision: %v", err)
	}
	all, err := c.Reservations(ctx)
	if err != nil || len(all.Reservations) != 1 || all.Reservations[0].Count != 1 || all.Reservations[0].CPUs != 8 || all.Reservations[0].From == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := c.DeleteReservation(ctx, "anna_1"); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteReservation(ctx, "anna_1"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if p, err := c.Policy(ctx, 0); err != nil || p.Text != rest {
		t.Errorf("the rest of the document is %q now, %v", p.Text, err)
	}
}

// awaitStart waits until a job has started.
func awaitStart(ctx context.Context, t *testing.T, c *client.Client, id string) {
	t.Helper()
	started := errors.New("started")
	err := c.Watch(ctx, client.WatchOptions{Jobs: []string{id}}, func(e api.Event) error {
		if e.Kind == state.EventStarted {
			return started
		}
		return nil
	})
	if !errors.Is(err, started) {
		t.Fatalf("job %s does not start: %v", id, err)
	}
}
