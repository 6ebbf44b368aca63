package admin

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestReservationsAreBounded: a number that means nothing is refused with the name of its
// field. A negative count was taken for none, and all nodes were kept.
func TestReservationsAreBounded(t *testing.T) {
	for field, change := range map[string]func(*api.SetReservation){
		"count:":    func(r *api.SetReservation) { r.Count = -3 },
		"count":     func(r *api.SetReservation) { r.Count, r.Nodes = 2, []string{"n1"} },
		"duration":  func(r *api.SetReservation) { r.Duration = 1e300 },
		"duration:": func(r *api.SetReservation) { r.Duration = -1 },
		"ahead":     func(r *api.SetReservation) { r.Ahead = -1 },
		"ahead:":    func(r *api.SetReservation) { r.Ahead = 1e12 },
		"start":     func(r *api.SetReservation) { r.Start = "tomorrow" },
	} {
		r := &api.SetReservation{Reservation: api.Reservation{Name: "r", Start: "2026-12-01T08:00:00Z", Duration: 60}}
		if err := checkReservation(r); err != nil {
			t.Fatalf("a good one: %v", err)
		}
		change(r)
		if err := checkReservation(r); fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), strings.TrimSuffix(field, ":")+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzReservation: whatever is asked for is refused, or a reservation whose instants can
// be added up: when it holds next, and whether it meets another one, has an answer.
func FuzzReservation(f *testing.F) {
	f.Add(3, 3600.0, 0.0, "2026-12-01T08:00:00Z", "")
	f.Add(-1, -1.0, -1.0, "", "hour")
	f.Add(0, 1e-9, 0.0, "1970-01-01T00:00:00Z", "hour")
	f.Add(0, math.MaxFloat64, math.NaN(), "9999-12-31T23:59:59Z", "weekend")
	f.Add(1<<62, 1576800000.0, 0.0, "2199-12-31T23:59:59Z", "week")
	f.Fuzz(func(t *testing.T, count int, duration, ahead float64, start, every string) {
		req := &api.SetReservation{Reservation: api.Reservation{Name: "r", Count: count, Duration: duration, Ahead: ahead, Start: start, Every: every}}
		if checkReservation(req) != nil {
			return
		}
		r := reservationOf(&req.Reservation, "r")
		other := account.Reservation{Name: "o", Start: "2026-12-01T08:00:00Z", Duration: account.Duration(time.Hour), Every: "week"}
		p := &account.Policy{Reservations: []account.Reservation{other, r}}
		p.Reservations[0].Overlap = true
		if len(p.Check()) > 0 {
			return
		}
		w, ok := r.Window()
		if !ok {
			t.Fatalf("%+v was not refused and has no window", r)
		}
		now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).UnixNano()
		if begin, end, ok := w.Next(now); ok && (begin <= 0 || end <= begin || end <= now) {
			t.Fatalf("%+v holds next from %d to %d", r, begin, end)
		}
		o, _ := other.Window()
		o.Overlaps(&w, now)
	})
}
