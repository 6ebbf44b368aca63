package policy_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// withReservations is a server with two reservations, in revision 5 of the rules.
func withReservations(t *testing.T) *clitest.Server {
	f := newFake(t)
	from, until := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	f.Answer("GET /v1/reservations", func(*http.Request) (any, error) {
		return api.Reservations{Revision: 5, Reservations: []api.Reservation{
			{Name: "course", Nodes: []string{"gpu1", "gpu2"}, Start: "2026-12-01T08:00:00Z", Duration: 7200, Every: "weekday", Accounts: []string{"teaching"}, Note: "lab 3", Flex: true, From: &from, Until: &until, CPUs: 16, Count: 2},
			{Name: "power", Start: "2026-10-01T08:00:00Z", Duration: 14400},
		}}, nil
	})
	return f
}

func TestReservationsAreShown(t *testing.T) {
	f := withReservations(t)
	f.Cox(t, "reserve", "list").Check(t, 0, `NAME    FROM                  UNTIL                 EVERY    NODES     FOR       NOTE
course  2026-12-01T08:00:00Z  2026-12-01T10:00:00Z  weekday  gpu[1-2]  teaching  lab 3
power   -                     -                     -        all       nobody    -
`, "")
	f.Cox(t, "reserve", "list", "-o", "name").Check(t, 0, "course\npower\n", "")
	f.Cox(t, "reserve", "list", "-o", "json").Check(t, 0, "~\"name\": \"power\"", "")
	f.Cox(t, "reserve", "show", "course").Check(t, 0, `name      course
note      lab 3
time      2026-12-01T08:00:00Z to 2026-12-01T10:00:00Z
lasts     2h0m0s
every     weekday
nodes     gpu[1-2] (2)
accounts  teaching
flags     flex
`, "")
	f.Cox(t, "reserve", "show", "power").Check(t, 0, "name      power\ntime      over\nlasts     4h0m0s\nnodes     all\nfor       nobody: maintenance\n", "")
	f.Cox(t, "reserve", "show", "nowhere").Check(t, 3, "", "cox: there is no reservation nowhere\n  cox reserve list shows them\n")
	f.Cox(t, "reserve").Check(t, 2, "", "cox reserve needs a command: create, delete, list, show or update\n  for example: cox reserve list\n")
	if got := f.Cox(t, "__complete", "reserve", "show", "").Out; got != "course\npower\n:4\n" {
		t.Errorf("completed: %q", got)
	}
	none := newFake(t)
	none.Answer("GET /v1/reservations", func(*http.Request) (any, error) { return api.Reservations{}, nil })
	none.Cox(t, "reserve", "list").Check(t, 0, "", "there are no reservations\n")
}

func TestReserveCreate(t *testing.T) {
	f := withReservations(t)
	refuse := false
	f.Answer("POST /v1/reservations", func(*http.Request) (any, error) {
		if refuse {
			return nil, fault.New(fault.Conflict, "job 7 runs on gpu1 until 2026-12-01T09:00:00Z").Advise("--ignore-jobs makes it all the same")
		}
		promised := time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC)
		return api.ReservationDone{
			Reservation: api.Reservation{Name: "demo", Duration: 7200, Users: []string{"anna"}}, Revision: 6,
			Late: []api.Belated{{Job: "9", User: "ben", Start: &promised}}, Warnings: []string{"gpu9 is down"},
		}, nil
	})
	const made = "name      demo\ntime      over\nlasts     2h0m0s\nnodes     all\nusers     anna\njob 9 of ben was promised 2026-12-01T08:30:00Z, and may start later now\nwarning: gpu9 is down\n"
	f.Cox(t, "reserve", "create", "demo", "--start", "2026-12-01T08:00:00", "--duration", "2h", "--count", "4", "--features", "nvlink,a100", "--users", "anna").Check(t, 0, made, "")
	var got api.SetReservation
	f.Last(t, &got)
	start, err := time.Parse(time.RFC3339, got.Start)
	if want := time.Date(2026, 12, 1, 8, 0, 0, 0, time.Local); err != nil || !start.Equal(want) {
		t.Errorf("it starts at %q, want %s", got.Start, want)
	}
	got.Start = ""
	if d := cmp.Diff(api.SetReservation{Reservation: api.Reservation{Name: "demo", Duration: 7200, Count: 4, Features: []string{"nvlink", "a100"}, Users: []string{"anna"}}}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "reserve", "create", "quick", "--ahead", "1h", "--duration", "24h", "--nodes", "gpu[5-6]", "--dry-run").Check(t, 0, "nothing was changed; this is what it would be:\n"+made, "")
	got = api.SetReservation{}
	f.Last(t, &got)
	if d := cmp.Diff(api.SetReservation{Reservation: api.Reservation{Name: "quick", Duration: 86400, Ahead: 3600, Nodes: []string{"gpu5", "gpu6"}}, DryRun: true}, got); d != "" {
		t.Error(d)
	}
	refuse = true
	f.Cox(t, "reserve", "create", "demo", "--start", "now", "--duration", "2h").Check(t, 4, "", "cox: job 7 runs on gpu1 until 2026-12-01T09:00:00Z\n  --ignore-jobs makes it all the same\nnothing was changed                                          exit 4 (conflict)\n")
	asked := len(f.Asked)
	f.Cox(t, "reserve", "create", "demo", "--start", "soonish").Check(t, 2, "", "~write 2026-12-01T08:00 or now+2hours")
	f.Cox(t, "reserve", "create", "demo", "--nodes", "gpu[1-").Check(t, 2, "", "~write a host list, as gpu[1-4]")
	f.Cox(t, "reserve", "create").Check(t, 2, "", "~cox reserve create needs NAME")
	if len(f.Asked) != asked {
		t.Errorf("the server was asked: %q", f.Asked[asked:])
	}
}

// TestReserveUpdate: what is not said stays as it is, and the change is of the revision that was
// read. What only answers have is not sent back.
//
// Seen to fail with: Count and CPUs sent back.
func TestReserveUpdate(t *testing.T) {
	f := withReservations(t)
	f.Answer("PUT /v1/reservations/{name}", func(r *http.Request) (any, error) {
		return api.ReservationDone{Reservation: api.Reservation{Name: r.PathValue("name"), Duration: 21600}, Revision: 6}, nil
	})
	five := uint64(5)
	kept := api.Reservation{Name: "course", Nodes: []string{"gpu1", "gpu2"}, Start: "2026-12-01T08:00:00Z", Duration: 7200, Every: "weekday", Accounts: []string{"teaching"}, Note: "lab 3", Flex: true}
	for _, c := range []struct {
		args   []string
		change func(*api.Reservation)
	}{
		{[]string{"--duration", "6h"}, func(r *api.Reservation) { r.Duration = 21600 }},
		{[]string{"--count", "3"}, func(r *api.Reservation) { r.Count, r.Nodes = 3, nil }},
		{[]string{"--count", "1", "--nodes", "gpu7"}, func(r *api.Reservation) { r.Count, r.Nodes = 1, []string{"gpu7"} }},
		{[]string{"--ahead", "1h"}, func(r *api.Reservation) { r.Ahead, r.Start = 3600, "" }},
		{[]string{"--flex=false", "--every", "", "--users", "anna,ben"}, func(r *api.Reservation) { r.Flex, r.Every, r.Users = false, "", []string{"anna", "ben"} }},
	} {
		f.Cox(t, append([]string{"reserve", "update", "course"}, c.args...)...).Check(t, 0, "~name      course\n", "")
		want := api.SetReservation{Reservation: kept, Base: &five}
		c.change(&want.Reservation)
		var got api.SetReservation
		if last := f.Last(t, &got); last != "PUT /v1/reservations/course" {
			t.Errorf("%v: asked %s", c.args, last)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v: %s", c.args, d)
		}
	}
	f.Cox(t, "reserve", "update", "nowhere", "--duration", "6h").Check(t, 3, "", "cox: there is no reservation nowhere\n  cox reserve list shows them\n")
}

func TestReserveDelete(t *testing.T) {
	f := withReservations(t)
	f.Answer("DELETE /v1/reservations/{name}", func(r *http.Request) (any, error) {
		if r.PathValue("name") != "power" {
			return nil, fault.New(fault.NotFound, "there is no reservation %s", r.PathValue("name")).Advise("cox reserve list shows them")
		}
		return api.ReservationDone{Revision: 6}, nil
	})
	f.Cox(t, "reserve", "delete", "power").Check(t, 0, "reservation power is gone\n", "")
	f.Cox(t, "reserve", "delete", "nowhere").Check(t, 3, "", "cox: there is no reservation nowhere\n  cox reserve list shows them\nnothing was changed                                          exit 3 (not found)\n")
}
