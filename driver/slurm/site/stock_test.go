package site_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// Forms are those of sbatch's manual (--time), and of scontrol and sacctmgr.
func TestSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"30": 1800, "1:30": 90, "01:30:00": 5400, "2-00": 2 * 86400, "2-12:30": 2*86400 + 12*3600 + 1800, "1-00:00:01": 86401,
		"UNLIMITED": 0, "NONE": 0, "": 0, "INVALID": 0, "1:2:3:4": 0,
	} {
		if got := site.Seconds(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// GPUs are of the amounts where these count GPUs, else of what was asked for.
func TestGPUs(t *testing.T) {
	for _, c := range []struct {
		tres, node, job string
		nodes, want     int
	}{
		{"cpu=2,gres/gpu=4", "gres:gpu:2", "N/A", 2, 4},
		{"cpu=2,node=2", "gres:gpu:2", "N/A", 2, 4},
		{"cpu=2", "gres/gpu:h100:3", "", 2, 6},
		{"cpu=2", "gres:gpu", "", 2, 2},
		{"cpu=2", "", "gres:gpu:5,gres:shard:2", 2, 5},
		{"cpu=2,gres/gpumem=4", "", "", 1, 0},
	} {
		if got := site.GPUs(c.tres, c.node, c.job, c.nodes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
