package local_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// BenchmarkContainerJob runs jobs in an image, each after the same runtime by hand: the figures are
// milliseconds to the end of both, and how much longer the job takes.
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
	var hand, job time.Duration
	ref := uint64(0)
	for b.Loop() {
		from := time.Now()
		if out, err := exec.Command(lab.Podman, "run", "--rm", "--pull=never", "--network=host", "--cgroups=disabled", "--log-driver=none", "--entrypoint=/bin/true", podmanlab.Image).CombinedOutput(); err != nil {
			b.Fatalf("%v; %s", err, out)
		}
		hand += time.Since(from)
		l := plan(b, e, 1, "true")
		ref++
		l.Ref.Allocation, l.Job.Spec.Image = ref, podmanlab.Image
		from = time.Now()
		if err := e.Launch(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		r := until(b, e, l.Ref, func(r engine.Report) bool { return !r.Started.IsZero() })
		job += r.Started.Sub(from)
		until(b, e, l.Ref, gone)
	}
	n := float64(b.N)
	b.ReportMetric(float64(hand.Milliseconds())/n, "ms-by-hand")
	b.ReportMetric(float64(job.Milliseconds())/n, "ms-to-start")
	b.ReportMetric(float64((job-hand).Milliseconds())/n, "ms-longer")
}
