package localrun

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func TestARoomIsFoundAgainAndGrows(t *testing.T) {
	dir := t.TempDir()
	small := Machine{CPUs: 2, Memory: resource.GiB}
	build := func(g job.TaskGroup) Room {
		t.Helper()
		r, err := BuildRoom(small, Shape{0, -1}, []*job.Spec{onlyGroup(g)})
		if err != nil {
			t.Fatal(err)
		}
		if err := keepRoom(dir, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	build(job.TaskGroup{Nodes: job.Range{Min: 3}, PerNode: resource.Requirements{Devices: gpus(2, "h100")}, NodeList: []string{"gpu1"}})
	r := build(job.TaskGroup{
		Nodes: job.Range{Min: 1}, PerNode: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(8)}},
		Constraint: job.Constraint{Alternatives: [][]string{{"ib"}}},
	})
	if len(r.Nodes) != 3 || len(r.Names) != 3 || r.Names[0] != "gpu1" || r.Declared != 6 {
		t.Fatalf("%d nodes %q, %d declared devices", len(r.Nodes), r.Names, r.Declared)
	}
	first, last := r.Nodes[0], r.Nodes[2]
	if first.Capacity.CPU != resource.CPUs(8) || len(first.Devices) != 2 || len(first.Features) != 1 {
		t.Errorf("the first node: %+v", first)
	}
	if last.Capacity.CPU != resource.CPUs(2) || len(last.Devices) != 2 {
		t.Errorf("the last node: %+v", last)
	}
}

func TestADamagedRoomIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, roomFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keepRoom(dir, &Room{}); err == nil {
		t.Error("a damaged room was taken")
	}
}
