package fleet

import (
	"testing"

	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// TestCounted: GPUs of a pool as a whole are in Slurm's words for them, those of no known type
// once.
//
// Seen to fail with: those of a type counted twice.
func TestCounted(t *testing.T) {
	for text, want := range map[string]Node{
		`{"name":"@site","counted":[{"name":"gpu","all":12,"used":5},{"name":"gpu:a100","all":4,"used":1},{"name":"gpu:h100","all":6,"used":2}]}`: {GPUs: 12, GPUsUsed: 5, GRES: "gpu:a100:4,gpu:h100:6,gpu:2", GRESUsed: "gpu:a100:1,gpu:h100:2,gpu:2"},
		`{"name":"@k8s","counted":[{"name":"gpu","all":8,"used":0}]}`:                                                                             {GPUs: 8, GRES: "gpu:8", GRESUsed: "gpu:0"},
		`{"name":"n1","devices":[{"kind":"gpu","type":"h100","index":0}]}`:                                                                        {GPUs: 1, GRES: "gpu:h100:1", GRESUsed: "gpu:h100:0(IDX:N/A)"},
		`{"name":"v1","devices":[{"kind":"gpu","type":"gpu","index":0},{"kind":"gpu","type":"gpu","index":1,"jobs":["7"]}]}`:                      {GPUs: 2, GPUsUsed: 1, GRES: "gpu:2", GRESUsed: "gpu:1(IDX:1)"},
		`{"name":"@k8s","counted":[{"name":"gpu","all":8,"used":2},{"name":"gpu:gpu","all":8,"used":2}]}`:                                         {GPUs: 8, GPUsUsed: 2, GRES: "gpu:8", GRESUsed: "gpu:2"},
		`{"name":"n2"}`: {},
	} {
		v, err := fastclient.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		n := readNode(v)
		if got := (Node{GPUs: n.GPUs, GPUsUsed: n.GPUsUsed, GRES: n.GRES, GRESUsed: n.GRESUsed}); got.GPUs != want.GPUs || got.GPUsUsed != want.GPUsUsed || got.GRES != want.GRES || got.GRESUsed != want.GRESUsed {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
