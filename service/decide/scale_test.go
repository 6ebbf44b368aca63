package decide

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// scaled is a specification whose number follows a metric.
func scaled(least, most int, s service.Scale) *service.Spec {
	spec := specOf("a", least)
	spec.Replicas.Max, spec.Scale = most, &s
	return spec
}

// TestRecommendation: what a load asks for, with the tolerance and the rule for replicas that are not
// ready.
//
// Seen to fail with: a tolerance of 0, and replicas that are not ready left out of full.
func TestRecommendation(t *testing.T) {
	for name, c := range map[string]struct {
		want, ready int
		load        Load
		metric      string
		n           int
		ok          bool
	}{
		"in flight":                    {2, 2, Load{Known: true, InFlight: 30, Held: 2}, service.MetricInFlight, 4, true},
		"within the tolerance":         {4, 4, Load{Known: true, InFlight: 35}, service.MetricInFlight, 4, true},
		"above the tolerance":          {4, 4, Load{Known: true, InFlight: 36}, service.MetricInFlight, 5, true},
		"below the tolerance":          {4, 4, Load{Known: true, InFlight: 24}, service.MetricInFlight, 3, true},
		"unready ones count as full":   {4, 2, Load{Known: true, InFlight: 8}, service.MetricInFlight, 3, true},
		"unready ones count as zero":   {4, 1, Load{Known: true, InFlight: 40}, service.MetricInFlight, 5, true},
		"nothing":                      {3, 3, Load{Known: true}, service.MetricInFlight, 0, true},
		"no gateway":                   {3, 3, Load{}, service.MetricInFlight, 0, false},
		"requests a second":            {1, 1, Load{Known: true, Rate: 20}, service.MetricRate, 3, true},
		"a page":                       {2, 2, Load{Pages: map[job.ID]float64{1: 20, 2: 13}}, "vllm:num_requests_waiting", 5, true},
		"a page that is missing: more": {2, 2, Load{Pages: map[job.ID]float64{1: 40}}, "vllm:num_requests_waiting", 5, true},
		"a page that is missing: less": {2, 2, Load{Pages: map[job.ID]float64{1: 1}}, "vllm:num_requests_waiting", 2, true},
		"no page":                      {2, 2, Load{Pages: map[job.ID]float64{}}, "vllm:num_requests_waiting", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plan{in: &Input{Load: c.load}, now: epoch}
			p.doc.Want = c.want
			for i := range c.want {
				j := &Job{ID: job.ID(i + 1), State: job.Running, Health: Unready}
				if i < c.ready {
					j.Health = Ready
				}
				p.replicas = append(p.replicas, &replica{job: j})
			}
			n, text, ok := p.recommend(&service.Scale{Metric: c.metric, Target: 8})
			if n != c.n || ok != c.ok {
				t.Errorf("%d, %v (%s); want %d, %v", n, ok, text, c.n, c.ok)
			}
		})
	}
}

// TestScaleOutAndIn: out by steps, at most doubled or 4 more in 15 s; in after the cool-down, to the
// largest recommendation within it.
//
// Seen to fail with: no steps, and a cool-down of 0.
func TestScaleOutAndIn(t *testing.T) {
	w := newWorld(t)
	w.submit(scaled(1, 40, service.Scale{Metric: service.MetricInFlight, Target: 1, Cooldown: time.Minute}))
	w.run(time.Minute, w.settled)
	w.load.InFlight = 100
	began := w.now
	reached := map[int]time.Duration{}
	w.run(5*time.Minute, func() bool {
		if _, ok := reached[w.doc.Want]; !ok {
			reached[w.doc.Want] = w.now.Sub(began)
		}
		return w.doc.Want == 40
	})
	for n, at := range map[int]time.Duration{5: 0, 10: 15 * time.Second, 20: 30 * time.Second, 40: 45 * time.Second} {
		if got, ok := reached[n]; !ok || got < at-time.Second || got > at+3*time.Second {
			t.Errorf("%d replicas after %s, not %s: %v", n, got, at, reached)
		}
	}
	w.says(Scaled, "40 replicas wanted", "100 requests in flight, target 1 for each replica")
	w.run(time.Minute, w.settled)

	w.load.InFlight = 2
	began = w.now
	w.step()
	w.says(Scaled, "2 would do", "cool-down of 1m0s")
	w.now = w.now.Add(20 * time.Second)
	w.load.InFlight = 7
	w.step()
	w.load.InFlight = 2
	w.run(2*time.Minute, func() bool { return w.doc.Want != 40 })
	if d := w.now.Sub(began); w.doc.Want != 7 || d < 59*time.Second || d > 63*time.Second {
		t.Errorf("%d replicas after %s", w.doc.Want, d)
	}
	w.run(time.Minute, func() bool { return w.doc.Want == 2 })
	w.run(time.Minute, w.settled)
	w.load.InFlight = 0
	w.run(3*time.Minute, func() bool { return w.doc.Want == 1 })
	for range 100 {
		w.step()
	}
	if w.doc.Want != 1 {
		t.Errorf("%d replicas without a request, of at least 1", w.doc.Want)
	}
}

// TestToZeroAndBack: no replica is left after so long without a request, and a held one wakes it.
func TestToZeroAndBack(t *testing.T) {
	w := newWorld(t)
	w.submit(scaled(1, 4, service.Scale{Metric: service.MetricInFlight, Target: 2, ToZero: time.Minute}))
	w.run(time.Minute, w.settled)
	w.load.Last = w.now
	w.run(2*time.Minute, func() bool { return w.doc.Want == 0 })
	if d := w.now.Sub(w.load.Last); d < time.Minute || d > time.Minute+2*time.Second {
		t.Errorf("it sleeps after %s", d)
	}
	w.run(time.Minute, w.settled)
	w.says(Scaled, "the service sleeps", "no request for 1m0s")
	w.load.Held, w.load.Last = 3, w.now
	at := w.now
	w.decide(-1)
	if w.doc.Want != 2 || w.living()[0].Submitted != at {
		t.Errorf("%d replicas for 3 held requests, %+v", w.doc.Want, w.living())
	}
	w.says(Scaled, "woken by 3 requests")
	w.run(time.Minute, w.settled)
}

// TestAStrangeSilence: without a gateway nobody knows that no request came, so nothing sleeps and
// nothing shrinks.
func TestAStrangeSilence(t *testing.T) {
	w := newWorld(t)
	w.submit(scaled(1, 4, service.Scale{Metric: service.MetricInFlight, Target: 2, ToZero: time.Minute, Cooldown: time.Second}))
	w.load.InFlight = 8
	w.run(time.Minute, func() bool { return w.doc.Want == 4 && w.settled() })
	w.load = Load{Since: epoch}
	for range 200 {
		w.step()
	}
	if w.doc.Want != 4 {
		t.Errorf("%d replicas", w.doc.Want)
	}
	w.says(Scaled, "no gateway has reported lately")
}

// TestSpareQOS: replicas above the least are submitted in the QOS of those, after an update too.
func TestSpareQOS(t *testing.T) {
	spec := scaled(1, 4, service.Scale{Metric: service.MetricInFlight, Target: 1})
	spec.SpareQOS = "scavenger"
	w := newWorld(t)
	w.submit(spec)
	w.load.InFlight = 3
	w.run(time.Minute, func() bool { return w.doc.Want == 3 && w.settled() })
	spares := func() (n int) {
		for _, s := range w.doc.Replicas {
			if s.Spare {
				n++
			}
		}
		return n
	}
	if spares() != 2 {
		t.Errorf("%d of 3 are spare", spares())
	}
	next := *spec
	next.Job.Comment = "b"
	w.submit(&next)
	w.run(2*time.Minute, w.settled)
	if spares() != 2 {
		t.Errorf("%d of 3 are spare after an update", spares())
	}
}

// TestScaleByHand: a fixed number is what a person says; one with bounds stays within them.
func TestScaleByHand(t *testing.T) {
	w := begin(t, specOf("a", 2))
	w.apply(ScaleTo(w.doc, 5, "anna", w.now))
	w.run(time.Minute, w.settled)
	w.says(Scaled, "5 replicas wanted", "anna said so")
	if did := w.submit(specOf("b", 2)); !did.New || w.doc.Want != 5 {
		t.Errorf("an update changes the number to %d", w.doc.Want)
	}
	w.run(2*time.Minute, w.settled)
	if _, err := ScaleTo(w.doc, service.MostReplicas+1, "anna", w.now); err == nil {
		t.Error("too many are taken")
	}
	bounded := begin(t, scaled(1, 3, service.Scale{Metric: service.MetricInFlight, Target: 1}))
	if _, err := ScaleTo(bounded.doc, 4, "anna", bounded.now); err == nil {
		t.Error("4 of 1 to 3 are taken")
	}
}

// TestBadSpecifications are refused, and the old revision goes on.
func TestBadSpecifications(t *testing.T) {
	w := begin(t, specOf("a", 1))
	for name, change := range map[string]func(*service.Spec){
		"bounds reversed": func(s *service.Spec) { s.Replicas = service.Bounds{Min: 3, Max: 1} },
		"too many":        func(s *service.Spec) { s.Replicas.Max = service.MostReplicas + 1 },
		"no target":       func(s *service.Spec) { s.Scale = &service.Scale{Metric: "x"} },
		"no port":         func(s *service.Spec) { s.Job.Serve = nil },
		"canary descends": func(s *service.Spec) { s.Update.Canary = []int{50, 10} },
		"canary of all":   func(s *service.Spec) { s.Update.Canary = []int{100} },
	} {
		s := specOf("b", 1)
		change(s)
		if d, _, err := Submit(w.doc, s, "anna", "", w.now); err == nil || d != nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}
