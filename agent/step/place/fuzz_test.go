package place

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/internal/sweep"
)

// wanted are steps with almost every field, for the allocations of TestSweepOfRequests.
func wanted() []wire.Request {
	return []wire.Request{
		{Name: "train", Components: []wire.ComponentRequest{{
			Tasks: 4, NodesMin: 2, NodesMax: 3, TasksPerNode: 2, CPUsPerTask: 2, Soft: true, NodeList: []string{"v1"}, Exclude: []string{"v3"}, Relative: 0,
			Distribution: "cyclic", Devices: wire.DeviceRequest{Type: "h100", PerTask: 1},
		}}, Exact: true},
		{Components: []wire.ComponentRequest{{Group: 0, Tasks: 1, Devices: wire.DeviceRequest{Total: 1}}, {Group: 1, Tasks: 2, Overcommit: true, Devices: wire.DeviceRequest{None: true}}}, Overlap: true},
		{Components: []wire.ComponentRequest{{Devices: wire.DeviceRequest{PerNode: 1}}}, Immediate: true},
	}
}

// judgeRequest places a step that any text asks for. One that is made has each of its
// ranks once, on nodes and with CPUs and devices that the job has, and is a step that
// its nodes take.
func judgeRequest(t *testing.T, text []byte) (made bool) {
	t.Helper()
	for _, a := range []*step.Alloc{steptest.Uniform(3, 2, 4, 2), steptest.Het()} {
		var r wire.Request
		if (wire.Frame{Body: text}).Decode(&r) != nil || r.Check() != nil {
			return false
		}
		info, err := layoutStep(a, allParts(a), r)
		if err != nil {
			continue
		}
		made = true
		p := wire.Preparation{Info: *info, Programs: make([]wire.Program, len(info.Components))}
		if err := p.Check(a); err != nil {
			t.Fatalf("%s is made, and its nodes refuse it: %v", text, err)
		}
		var ranks []int
		for _, part := range info.Parts {
			ranks = append(ranks, part.Ranks...)
			have := allParts(a)[info.Components[part.Component].Group]
			i := slices.IndexFunc(a.Groups[info.Components[part.Component].Group].Parts, func(p step.Part) bool { return p.Node == part.Node })
			if i < 0 || part.CPUs < 0 || part.CPUs > have[i].cpus || len(part.Devices) > len(have[i].devices) {
				t.Fatalf("%s: part %+v of what the job does not have", text, part)
			}
		}
		slices.Sort(ranks)
		for i, rank := range ranks {
			if rank != i {
				t.Fatalf("%s: ranks %v", text, ranks)
			}
		}
		if len(ranks) != info.Tasks {
			t.Fatalf("%s: %d ranks of %d tasks", text, len(ranks), info.Tasks)
		}
	}
	return made
}

// TestSweepOfRequests changes one place of what srun asks for at a time.
func TestSweepOfRequests(t *testing.T) {
	for _, r := range wanted() {
		n, made := 0, 0
		for c := range sweep.JSON(wire.MustJSON(r)) {
			n++
			if judgeRequest(t, c.Doc) {
				made++
			}
		}
		if made == 0 {
			t.Errorf("none of %d changes of %+v is a step", n, r)
		}
	}
}

// TestSweepOfPreparations changes one place of what a node is told of a step: what it
// takes names only components, groups, nodes and ranks that there are.
func TestSweepOfPreparations(t *testing.T) {
	a := steptest.Uniform(3, 2, 4, 2)
	info, err := layoutStep(a, allParts(a), wanted()[2])
	if err != nil {
		t.Fatal(err)
	}
	p := wire.Preparation{Info: *info, Programs: []wire.Program{{Args: []string{"true"}, PerRank: map[int][]string{0: {"a"}}, Dir: "/"}}, Env: []string{"A=1"}, Limits: []barrier.Rlimit{{Resource: 1, Soft: 2}}}
	for c := range sweep.JSON(wire.MustJSON(p)) {
		var got wire.Preparation
		if json.Unmarshal(c.Doc, &got) != nil || got.Check(a) != nil {
			continue
		}
		for _, part := range got.Info.Parts {
			_ = got.Programs[part.Component]
			_ = a.Groups[got.Info.Components[part.Component].Group]
			_ = a.Nodes[part.Node]
			for _, rank := range part.Ranks {
				if rank < 0 || rank >= got.Info.Tasks {
					t.Fatalf("%s: rank %d of %d", c.What, rank, got.Info.Tasks)
				}
			}
		}
	}
}

// What a program of the job says to its supervisor in srun's name is refused, or is a
// step of the job: see judgeRequest.
func FuzzMessages(f *testing.F) {
	for _, r := range wanted() {
		f.Add(wire.MustJSON(r))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 64<<10 {
			judgeRequest(t, text)
		}
	})
}
