package nodefence

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// A node that Slurm drained because it could not clean up after a job is not known to be empty, though no job is
// listed on it. Seen to fail without leftBehind.
func TestFailedCleanupIsNotEmpty(t *testing.T) {
	to := engine.NodeFence{Epoch: 5, Reason: "pool b has it"}
	for reason, unknown := range map[string]bool{
		formatReason(to):   false,
		"fan is noisy":     false,
		"checked":          false,
		"Low RealMemory":   false,
		"Kill task failed": true,
		"Kill task failed [root@2026-11-29T08:00]": true,
		"Job step not running":                     true,
		"Prolog error":                             true,
		"epilog error":                             true,
		"batch job complete failure":               true,
		"Duplicate jobid":                          true,
	} {
		s := &oneNode{node: site.Node{Name: "gpu7", State: "idle+drain", Reason: reason, Extra: withMark("", to), Drained: true}}
		f, err := New(s, filepath.Join(t.TempDir(), "fences"), func(string) bool { return false }, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.Empty(t.Context(), "gpu7")
		if err != nil || c.Fence == nil || c.ProvedEmpty(5) == unknown {
			t.Errorf("%q: %+v, %v", reason, c, err)
		}
		if unknown && (len(c.Unknown) != 1 || !strings.Contains(c.Unknown[0], reason)) {
			t.Errorf("%q: %q", reason, c.Unknown)
		}
	}
}

// A pool says which nodes Slurm drained because of a job that it began twice, and how they come back.
func TestBegunTwice(t *testing.T) {
	dup := site.Node{Name: "gpu7", State: "idle+drain", Reason: "Duplicate jobid", Drained: true}
	other, open, fenced := dup, dup, dup
	other.Reason, open.Drained, fenced.Extra = "Kill task failed", false, withMark("", engine.NodeFence{Epoch: 5})
	if got := BegunTwice([]site.Node{other, open, fenced}); got != "" {
		t.Errorf("%q", got)
	}
	second := dup
	second.Name = "gpu8"
	if got := BegunTwice([]site.Node{other, dup, second}); !strings.Contains(got, "scontrol update nodename=gpu[7-8] state=resume") {
		t.Errorf("%q", got)
	}
}

// oneNode is a cluster of one node with no job.
type oneNode struct {
	site.Site
	node site.Node
}

func (s *oneNode) Nodes(context.Context) ([]site.Node, error) { return []site.Node{s.node}, nil }

func (s *oneNode) UpdateNode(context.Context, string, site.NodeChange) error { return nil }

func (s *oneNode) WorkOn(context.Context, string) ([]site.Work, error) { return nil, nil }
