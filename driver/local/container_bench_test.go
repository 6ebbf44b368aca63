package local_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// BenchmarkContainerJob runs jobs in an image, each after the same runtime by hand: the figures are
// medians in milliseconds: to the first output by hand, to the start of the job, and how much longer this is.
func BenchmarkContainerJob(b *testing.B) {
	lab := podmanlab.Start(b)
	root := b.TempDir()
	e, err := local.New(local.Config{
		Root: root, Nodes: local.VirtualRoom(local.RoomConfig{Seed: root}, four()), Cox: lab.Cox,
		Containers: container.Settings{Runtime: container.Podman, Program: lab.Podman},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	var hands, jobs, longer []time.Duration
	ref := uint64(0)
	for b.Loop() {
		from := time.Now()
		cmd := exec.Command(lab.Podman, "run", "--rm", "--pull=never", "--network=host", "--cgroups=disabled", "--log-driver=none", "--entrypoint=/bin/echo", podmanlab.Image, "begun")
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		hand := time.Since(from)
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		l := plan(b, e, 1, "true")
		ref++
		l.Ref.Allocation, l.Job.Spec.Image = ref, podmanlab.Image
		from = time.Now()
		if err := e.Launch(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		r := until(b, e, l.Ref, func(r engine.Report) bool { return !r.Started.IsZero() })
		job := r.Started.Sub(from)
		hands, jobs, longer = append(hands, hand), append(jobs, job), append(longer, job-hand)
		until(b, e, l.Ref, gone)
	}
	for unit, all := range map[string][]time.Duration{"ms-by-hand": hands, "ms-to-start": jobs, "ms-longer": longer} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, unit)
	}
}
