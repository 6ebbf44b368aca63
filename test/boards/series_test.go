package boards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// TestSeries: of a job that computes on one of its two nodes and sleeps on the other, the series says so; the
// next server goes on with it, and it is kept when the job has ended.
//
// Seen to fail with a recorder that begins anew, and with one that writes no file.
func TestSeries(t *testing.T) {
	t.Parallel()
	p := plane.New(t, func(c *config.Config) { c.Room.Nodes = 2 })
	often := func(o *daemon.Options) { o.SeriesEach = 100 * time.Millisecond }
	p.Start(often)
	gate := p.Gate("gate")
	job := p.Submit("srun sh -c 'if [ $SLURM_PROCID = 0 ]; then while [ ! -e "+filepath.Join(p.Dir, "enough")+" ]; do :; done; fi; "+gate.Wait+"'", "--nodes=2", "--ntasks=2", "--mem=1G")
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
	if s.State != "RUNNING" || s.HeldCPUs < 2 || s.HeldMemory != 2<<30 || s.Points == 0 || s.Points > 240 || len(s.Sources) != 1 || s.Sources[0] != "supervisor" {
		t.Errorf("the series is %+v", s)
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
