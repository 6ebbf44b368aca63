package slurm_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// TestOthers: what foreign jobs hold is counted, and devices that they hold are not free.
//
// Seen to fail with: no subtraction of ours; marks on devices that ours claim;
// memory alone said.
func TestOthers(t *testing.T) {
	s := &stage{nodes: []site.Node{
		{Name: "n1", CPUs: 8, Available: true, UsedCPUs: 3, UsedBytes: 5 << 20, GRES: "gpu:h100:4(S:0-1)", Taken: "gpu:h100:3(IDX:0,2-3)"},
		{Name: "n2", CPUs: 8, Available: true, GRES: "gpu:h100:4", Taken: "gpu:h100:0(IDX:N/A)", Path: []string{"spine", "leaf1"}},
	}}
	e, _, _ := play(t, s) // one CPU and device 3 of n1
	nodes, err := e.Nodes(t.Context())
	if err != nil || len(nodes) != 2 || len(nodes[1].Path) != 2 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	var marks strings.Builder
	for _, n := range nodes {
		for _, d := range n.Devices {
			marks.WriteByte("-x"[min(d.Foreign, 1)])
		}
	}
	if marks.String() != "-xx-"+"----" {
		t.Errorf("held by others: %s", marks.String())
	}
	if got, want := e.Others(), (slurm.ForeignUse{CPUs: 2, Memory: 5 << 20, Devices: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if o := (slurm.ForeignUse{Memory: 1600 << 20}); o.String() != "" {
		t.Errorf("memory that ours were given beyond their claims is others': %s", o)
	}
	info, err := e.Info(t.Context())
	if err != nil || !strings.Contains(strings.Join(info.Notes, "\n"), "2 CPUs, 5 MiB of memory and 2 GPUs") {
		t.Errorf("%q, %v", info.Notes, err)
	}
}
