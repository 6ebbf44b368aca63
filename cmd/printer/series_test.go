package printer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
)

// TestSeriesIsDrawn: CPUs against what is held, memory without a request against its peak, a gap as a blank.
//
// Seen to fail with a gap that is drawn as nothing used.
func TestSeriesIsDrawn(t *testing.T) {
	line := func(values ...float64) (out []*float64) {
		for i := range values {
			if values[i] < 0 {
				out = append(out, nil)
				continue
			}
			out = append(out, &values[i])
		}
		return out
	}
	s := &api.Series{
		Name: "7", State: "RUNNING", Start: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), Step: 10, Points: 6,
		CPUs: line(0, 2, 4, -1, 8, 16), HeldCPUs: 16, Memory: line(1<<30, 2<<30, 2<<30),
		GPUs: line(10, 100), GPUMemory: line(40<<30, 40<<30),
		Devices: []api.DeviceSeries{
			{Node: "v1", Index: 0, Of: 80 << 30, Busy: line(20, 100), Memory: line(40<<30, 40<<30)},
			{Node: "v1", Index: 1, Profile: "1g.10gb", Busy: line(0, 100)},
		},
	}
	want := `7 RUNNING
from      2026-03-02 08:00:00 to 2026-03-02 08:01:00, each 10 s
CPUs      ▁▂▃ ▅█  average 6, highest 16 of 16
memory    ▅██     average 1.7 GiB, highest 2 GiB
GPUs      ▁█      average 55 %, highest 100 %
GPU mem   ▅▅      average 40 GiB, highest 40 GiB of 80 GiB
GPU 0     ▂█      average 60 %, highest 100 %
          ▅▅      average 40 GiB, highest 40 GiB of 80 GiB
GPU 1 1g.10gb ▁█      average 50 %, highest 100 %
`
	if d := cmp.Diff(want, Series(Page{}, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := Series(Page{}, &api.Series{Name: "8", State: "FAILED"}); got != "8 FAILED\nseries    nobody measured it: it ran for a few seconds, its engine measures nothing, or the series was removed\n" {
		t.Error(got)
	}
}
