package series

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

var began = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// used is a record with so much CPU time and memory, and a GPU if it was sampled.
func used(cpu time.Duration, memory int64, gpus ...rusage.GPU) *rusage.Record {
	n := rusage.Node{Name: "v1", Use: rusage.Use{Known: rusage.CPU | rusage.Memory, User: cpu, Memory: memory, Now: memory}, GPUs: gpus}
	return rusage.Make([]rusage.Node{n}, nil)
}

var unknown = math.NaN()

func sameLine(t *testing.T, what string, got, want Line) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestIntervals adds samples that fall into one interval, into several, and after a time without any.
//
// Seen to fail with an average of the last sample alone, and with memory that is drawn through the gap.
func TestIntervals(t *testing.T) {
	s := New(engine.Ref{Allocation: 1, Attempt: 1}, began, 10*time.Second)
	add := func(after time.Duration, r *rusage.Record) {
		s.AddUsed(began.Add(after), r, Supervisor, 10*time.Second)
	}
	add(5*time.Second, used(10*time.Second, 100))    // 2 CPUs in the first half
	add(10*time.Second, used(10*time.Second, 50))    // none in the second
	add(10*time.Second, used(99*time.Second, 50))    // the same moment says nothing new
	add(30*time.Second, used(50*time.Second, 200))   // 2 CPUs
	add(100*time.Second, used(120*time.Second, 300)) // 1 CPU; nobody saw the memory meanwhile
	sameLine(t, "CPUs", s.Total.CPUs, Line{1, 2, 2, 1, 1, 1, 1, 1, 1, 1})
	sameLine(t, "memory", s.Total.Memory, Line{100, 200, 200, unknown, unknown, unknown, unknown, unknown, unknown, 300})
	if len(s.Nodes) != 0 || s.Points() != 10 {
		t.Errorf("%d points, nodes %v", s.Points(), s.Nodes)
	}

	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again Series
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, &again, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("read again (-wrote +read):\n%s", d)
	}
}

// TestFull: a series that is full has half as many intervals, of twice the time, with the same average and
// the same peak; a month is no larger than an hour.
func TestFull(t *testing.T) {
	s := New(engine.Ref{}, began, 10*time.Second)
	var cpu time.Duration
	for after := 10 * time.Second; after <= 30*24*time.Hour; after += max(s.Step, 10*time.Second) {
		cpu = 3 * after
		memory := int64(1000)
		if after == 1000*time.Second {
			memory = 5000
		}
		s.AddUsed(began.Add(after), used(cpu, memory), Supervisor, s.Step)
		if n := s.Points(); n > MaxPoints || after > time.Hour && n < MaxPoints/2-1 {
			t.Fatalf("%d points after %s", n, after)
		}
	}
	peak := 0.0
	for i, v := range s.Total.CPUs {
		if math.Abs(v-3) > 1e-6 {
			t.Errorf("interval %d: %g CPUs, want 3", i, v)
		}
		peak = max(peak, s.Total.Memory[i])
	}
	if peak != 5000 || s.Step != 10*time.Second<<11 {
		t.Errorf("the peak is %g, the step %s", peak, s.Step)
	}
	if text, err := json.Marshal(s); err != nil || len(text) > 4000 {
		t.Errorf("a file of %d bytes, %v", len(text), err)
	}
}

// TestGPUs: what is sampled is counted since the last time, also when the server begins anew; an exporter is
// believed rather than the server's own look.
func TestGPUs(t *testing.T) {
	s := New(engine.Ref{}, began, 10*time.Second)
	gpu := func(samples int, busy float64) rusage.GPU {
		return rusage.GPU{Index: 3, Samples: samples, Busy: busy, Memory: 70, Now: 60, Of: 80}
	}
	for i, g := range []rusage.GPU{gpu(1, 40), gpu(3, 80), gpu(3, 80), gpu(1, 10)} { // 40, 100, nothing new, begun anew
		s.AddUsed(began.Add(time.Duration(i+1)*10*time.Second), used(time.Second, 1, g), Supervisor, 10*time.Second)
	}
	sameLine(t, "busy", s.Devices[0].Busy, Line{40, 100, unknown, 10})
	sameLine(t, "memory", s.Devices[0].Memory, Line{60, 60, 60, 60})
	s.Last.Exported = began.Add(40 * time.Second)
	s.AddGPUs(began.Add(50*time.Second), []GPUSample{
		{Node: "v1", Index: 3, Busy: 50, Used: 20, Of: 80}, {Node: "v1", Index: 1, Instance: "7", Profile: "1g.10gb", Busy: 100, Used: 40, Of: 100}, {Node: "v0", Index: 9, Busy: unknown, Used: 1, Of: 100},
	}, 10*time.Second)
	s.AddUsed(began.Add(50*time.Second), used(time.Second, 1, gpu(2, 90)), Supervisor, 10*time.Second)
	if len(s.Devices) != 3 || s.Devices[0].Node != "v0" || s.Devices[1].Profile != "1g.10gb" || s.Devices[2].Source != DCGM {
		t.Fatalf("the devices are %+v", s.Devices)
	}
	sameLine(t, "busy", s.Devices[2].Busy, Line{40, 100, unknown, 10, 50})
	busy, memory := s.GPUs()
	sameLine(t, "average", busy, Line{40, 100, unknown, 10, 75})
	sameLine(t, "sum of memory", memory, Line{60, 60, 60, 60, 61})
	if d := cmp.Diff([]string{NVML, Supervisor, DCGM}, s.Sources, cmpopts.SortSlices(func(a, b string) bool { return a < b })); d != "" {
		t.Error(d)
	}
}
