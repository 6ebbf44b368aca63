package controller_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/sim/trace/tracetest"
)

// batchJob is work that saves a checkpoint when it is told to end, and goes on from there.
type batchJob struct {
	left     time.Duration
	ref      engine.Ref
	began    time.Time
	attempts int
	done     bool
}

func (s *site) launchBatch(l *engine.Launch) fake.Outcome {
	b := s.batch[l.Job.ID]
	if b == nil {
		b = &batchJob{left: 20*time.Minute + time.Duration(l.Job.ID%5)*5*time.Minute}
		s.batch[l.Job.ID] = b
	}
	b.ref, b.attempts = l.Ref, b.attempts+1
	return fake.Outcome{Run: b.left}
}

func (s *site) noteBatch(r engine.Report) {
	b := s.batch[r.Job]
	switch {
	case b == nil || b.ref != r.Ref:
	case r.Phase == engine.Running && b.began.IsZero() && !r.Started.IsZero():
		b.began = time.Now()
	case r.Phase == engine.Ended && !b.began.IsZero():
		b.left -= time.Since(b.began)
		b.began, b.done = time.Time{}, b.left <= 0
	}
}

// arrivals are the requests of each minute of the trace.
func arrivals(t *testing.T) (minutes []float64) {
	f, err := os.Open(tracetest.Path(t, "inference/AzureLLMInferenceTrace_conv.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Scan() // the head
	var first time.Time
	for lines.Scan() {
		at, _, _ := strings.Cut(lines.Text(), ",")
		when, err := time.Parse("2006-01-02 15:04:05.9999999", at)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = when
		}
		m := int(when.Sub(first) / time.Minute)
		for len(minutes) <= m {
			minutes = append(minutes, 0)
		}
		minutes[m]++
	}
	return minutes[:len(minutes)-1] // the last one is not whole
}

// shape is how much of the trace's load each hour of a day has.
var shape = [24]float64{.15, .1, .1, .1, .1, .15, .25, .45, .7, .9, 1, 1.05, 1, 1, 1.05, 1.1, 1.05, .95, .85, .75, .6, .45, .3, .2}

// day is what is measured.
type day struct {
	steps, idle, short    int           // steps; devices that were idle, summed; steps in which fewer were ready than wanted
	slowestOut, slowestIn time.Duration // from a change of the number wanted until it was so
	most                  int           // replicas wanted
	held                  float64       // requests that waited, summed over steps
	served                float64
}

const (
	dayStep   = time.Second
	takes     = 7.0 // seconds that a request takes
	perDevice = 12  // requests that a replica works on at once
)

// TestOneDay: a service that follows the load of a published trace, and batch, share 8 devices. Batch
// yields by preemption, with what it did saved; scale-in gives devices back at once; no device is idle
// for long while there is work.
//
// Seen to fail with: a QOS of the service that preempts nothing, and scale-in that does not end replicas.
func TestOneDay(t *testing.T) {
	minutes := arrivals(t)
	from, hours := 7, 2
	if os.Getenv("COX_LONG") != "" {
		from, hours = 0, 24
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := context.Background()
		rules := &account.Policy{
			QOS:        []account.QOS{{Name: "serving", Priority: 10, Preempts: []string{"batch"}}, {Name: "batch"}},
			Preemption: account.Preemption{By: []string{"qos"}, Grace: account.Duration(5 * time.Second)},
		}
		if _, err := s.control.SetPolicy(ctx, anna, control.PolicyChange{Rules: rules, Text: "a service before batch"}); err != nil {
			t.Fatal(err)
		}
		spec := replicaOf("a")
		spec.Job.QOS, spec.Job.Groups[0].PerTask = "serving", oneDevice
		spec.Replicas = service.Bounds{Min: 1, Max: 7}
		spec.Scale = &service.Scale{Metric: service.MetricInFlight, Target: 8, Cooldown: 3 * time.Minute}
		s.ask(func() error { _, err := s.Submit(ctx, anna, spec, nil); return err })
		m := s.runDay(ctx, minutes, from, hours)

		done, preempted, unfinished := 0, 0, 0
		s.mu.Lock()
		for _, b := range s.batch {
			switch {
			case b.done:
				done++
			case b.attempts > 0:
				unfinished++
			}
			preempted += max(b.attempts-1, 0)
		}
		s.mu.Unlock()
		t.Logf("%d h: %.0f requests, at most %d replicas, out in at most %s, in in at most %s, too few in %.2f %% of the time, %.2f requests waited on average", hours, m.served, m.most,
			m.slowestOut, m.slowestIn, 100*float64(m.short)/float64(m.steps), m.held/float64(m.steps))
		t.Logf("batch: %d done, %d running, preempted %d times; %.2f %% of the devices idle", done, unfinished, preempted, 100*float64(m.idle)/float64(8*m.steps))
		switch {
		case m.most < 4 || preempted < 3 || done < 5*hours:
			t.Errorf("little happened")
		case m.slowestOut > 20*time.Second:
			t.Errorf("a replica more took %s", m.slowestOut)
		case m.slowestIn > 10*time.Second:
			t.Errorf("a replica fewer took %s", m.slowestIn)
		case float64(m.idle) > 0.02*float64(8*m.steps):
			t.Errorf("devices are idle")
		}
		s.ask(func() error { return s.Stop(ctx, anna, "chat") })
	})
}

var oneDevice = resource.Requirements{Devices: []resource.DeviceRequest{{Kind: "gpu", Count: 1}}}

// runDay lets time pass: requests come and are served, and batch is always there.
func (s *site) runDay(ctx context.Context, minutes []float64, from, hours int) (m day) {
	var waiting, active, requests float64
	var changedAt time.Time
	wanted, open := 0, false
	began := time.Now()
	for {
		at := time.Since(began)
		if at >= time.Duration(hours)*time.Hour {
			return m
		}
		s.topUpBatch(ctx)
		st, err := s.Get(ctx, "chat")
		if err != nil {
			s.t.Fatal(err)
		}
		now := minutes[int(at/time.Minute)%len(minutes)] / 60 * shape[(from+int(at/time.Hour))%24] * dayStep.Seconds()
		requests += now
		finished := active * min(1, dayStep.Seconds()/takes)
		m.served += finished
		waiting, active = waiting+now, active-finished
		begin := max(0, min(waiting, float64(st.Ready*perDevice)-active))
		waiting, active = waiting-begin, active+begin
		s.postLoad(uint64(requests), int(waiting), int(active))

		m.steps++
		m.held += waiting
		m.most = max(m.most, st.Want)
		if st.Ready < st.Want {
			m.short++
		}
		if st.Want != wanted {
			changedAt, open = time.Now(), true
			if st.Want < wanted && len(st.Replicas) > wanted {
				s.t.Errorf("%d replicas of %d", len(st.Replicas), wanted)
			}
		}
		took := time.Since(changedAt)
		switch out := st.Want >= wanted; {
		case !open:
		case len(st.Replicas) == st.Want && st.Ready == st.Want:
			open = false
		case out && st.Ready < st.Want:
			m.slowestOut = max(m.slowestOut, took)
		case len(st.Replicas) > st.Want:
			m.slowestIn = max(m.slowestIn, took)
		}
		wanted = st.Want
		m.idle += 8 - s.busyDevices()
		time.Sleep(dayStep) // of the bubble
		synctest.Wait()
	}
}

// topUpBatch keeps batch waiting.
func (s *site) topUpBatch(ctx context.Context) {
	s.mu.Lock()
	waiting := 0
	for _, b := range s.batch {
		if !b.done {
			waiting++
		}
	}
	s.mu.Unlock()
	for ; waiting < 12; waiting++ {
		got, err := s.control.Submit(ctx, control.Submission{By: anna, Spec: &job.Spec{
			Name: "train", Owner: job.Owner{User: "bob", UID: 2002}, QOS: "batch", Requeue: true, WorkDir: "/work",
			Program: job.Program{Kind: job.Direct, Args: []string{"train"}}, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: oneDevice}},
		}})
		if err != nil {
			s.t.Fatal(err)
		}
		s.mu.Lock()
		if s.batch[got.ID] == nil {
			s.batch[got.ID] = &batchJob{left: 20*time.Minute + time.Duration(got.ID%5)*5*time.Minute}
		}
		s.mu.Unlock()
	}
}

// postLoad is a gateway: requests in flight are shared by the replicas that are ready.
func (s *site) postLoad(requests uint64, held, active int) {
	load := api.ServiceLoad{Service: "chat", Requests: requests, Held: held, InFlight: map[string]int{}}
	if ready := s.hub.Replicas("chat"); len(ready) > 0 {
		load.InFlight["all"] = active
	}
	s.hub.PutLoad(api.GatewayLoad{Gateway: "g", Services: []api.ServiceLoad{load}})
}

// busyDevices counts the devices on which something runs, or is being started or ended.
func (s *site) busyDevices() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.attempts)
	for _, b := range s.batch {
		if !b.began.IsZero() {
			n++
		}
	}
	return n
}
