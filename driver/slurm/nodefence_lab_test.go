package slurm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// conformFences is the part of the contract that closes nodes, on a real cluster, with jobs of others and an
// administrator beside the driver.
//
// Seen to fail with: a fence that is the field of Extra alone; one that is the drain alone; an Unfence that
// undrains whatever the reason is; an Empty that does not count jobs of others.
func conformFences(t *testing.T, l *lab.Lab, b *bench) {
	h := b.harness()
	h.Shared, h.Topics = false, []string{"NodeFence"}
	h.Outside = enginetest.Outside{
		Start: func(t *testing.T, _ engine.Engine, node string) (runs bool, end func()) {
			id, _, _ := strings.Cut(strings.TrimSpace(l.Run(t, "sbatch", "--parsable", "--nodelist="+node, "--output=/dev/null", "--mem=1M", "--wrap=exec sleep 600")), ";")
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				state, reason, _ := strings.Cut(strings.TrimSpace(l.Run(t, "squeue", "--noheader", "--jobs="+id, "--format=%T|%r")), "|")
				if runs = state == "RUNNING"; runs || state == "PENDING" && strings.Contains(reason, "Node") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("job %s is %s for %s", id, state, reason)
				}
			}
			return runs, func() { l.Run(t, "scancel", id) }
		},
		Drain: func(t *testing.T, _ engine.Engine, node, why string) {
			if why == "" {
				_, _ = l.Try(context.Background(), "scontrol", "update", "NodeName="+node, "State=UNDRAIN") // which may have been done
				return
			}
			l.Run(t, "scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason="+why)
		},
		Silence: func(t *testing.T, _ engine.Engine, node string) func() {
			l.Kill(t, "slurmd."+node)
			l.Run(t, "scontrol", "update", "NodeName="+node, "State=NORESP")
			return func() { l.Begin(t, "slurmd."+node) }
		},
	}
	enginetest.Run(t, h)
}
