package boards

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// TestSeries: of a job that computes on one of its two nodes and sleeps on the other, the series says so, with what
// an exporter says of its GPUs; the next server goes on with it, and it is kept when the job has ended.
//
// Seen to fail with a recorder that begins anew, and with one that writes no file.
func TestSeries(t *testing.T) {
	t.Parallel()
	uuid := "GPU-" + rand.Text() // the folders of locks are this machine's
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"%s-1\"} 75\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"of somebody else\"} 99\n", uuid)
	}))
	defer exporter.Close()
	p := plane.New(t, func(c *config.Config) {
		c.Room.Nodes, c.Room.GPUsPerNode, c.Room.GPUMetrics = 2, -1, exporter.URL+"/metrics"
	})
	often := func(o *daemon.Options) {
		o.SeriesEach = 100 * time.Millisecond
		o.Look = func(context.Context, discover.Options) (discover.Machine, []discover.Note, error) {
			gpu := func(i int) discover.GPU {
				return discover.GPU{Vendor: discover.NVIDIA, Index: i, Minor: i, UUID: fmt.Sprintf("%s-%d", uuid, i), Type: "h100", NUMA: -1}
			}
			return discover.Machine{CPUs: []discover.CPU{{}}, MemoryBytes: 1 << 40, GPUs: []discover.GPU{gpu(0), gpu(1)}}, nil, nil
		}
	}
	p.Start(often)
	gate := p.Gate("gate")
	job := p.Submit("srun sh -c 'if [ $SLURM_PROCID = 0 ]; then while [ ! -e "+filepath.Join(p.Dir, "enough")+" ]; do :; done; fi; "+gate.Wait+"'", "--nodes=2", "--ntasks=2", "--mem=1G", "--gpus-per-node=1")
	read := func() *api.Series {
		s, err := p.Series(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	var s *api.Series
	p.Await("the series says which node computes", func() bool {
		s = read()
		if len(s.Nodes) < 2 || peakOf(s.Nodes[0].Memory) == 0 || peakOf(s.Nodes[1].Memory) == 0 || peakOf(s.Memory) < 1<<20 {
			return false
		}
		busy, idle := lastOf(s.Nodes[0].CPUs), lastOf(s.Nodes[1].CPUs) // both also began
		return busy > 0.05 && busy > 3*idle
	})
	if s.State != "RUNNING" || s.HeldCPUs < 2 || s.HeldMemory != 2<<30 || s.Points == 0 || s.Points > 240 || s.HeldGPUs != 2 || !slices.Equal(slices.Sorted(slices.Values(s.Sources)), []string{"dcgm", "supervisor"}) {
		t.Errorf("the series is %+v", s)
	}
	if len(s.Devices) != 1 || s.Devices[0].Node != s.Nodes[1].Node || peakOf(s.Devices[0].Busy) != 75 || peakOf(s.GPUs) != 75 {
		t.Errorf("the exporter knows the second node's GPU, and the devices are %+v", s.Devices)
	}
	p.Write("enough", "")
	p.Stop()
	p.Start(often)
	p.Await("the next server adds to it", func() bool { return read().Points > s.Points })
	if next := read(); !next.Start.Equal(s.Start) || peakOf(next.CPUs) == 0 || next.CPUs[0] == nil {
		t.Errorf("it was %+v and is %+v", s, next)
	}
	gate.Open()
	p.Ends(job, "COMPLETED")
	p.Await("its file is written", func() bool {
		_, err := os.Stat(filepath.Join(p.State, "series/0", job+".json"))
		return err == nil
	})
	if s = read(); s.State != "COMPLETED" || peakOf(s.CPUs) == 0 {
		t.Errorf("it is %+v", s)
	}
}

// peakOf is the highest known value of a line.
func peakOf(line []*float64) (peak float64) {
	for _, v := range line {
		if v != nil {
			peak = max(peak, *v)
		}
	}
	return peak
}

// lastOf is the last known value of a line.
func lastOf(line []*float64) float64 {
	for _, v := range slices.Backward(line) {
		if v != nil {
			return *v
		}
	}
	return 0
}
