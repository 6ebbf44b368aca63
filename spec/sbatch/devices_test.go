package sbatch

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// gpus is how many GPUs a group gets on so many nodes with so many tasks, and of
// which type.
func gpus(g job.TaskGroup, nodes, tasks int) (count int, gpuType string) {
	for _, part := range []struct {
		list  []resource.DeviceRequest
		times int
	}{{g.PerNode.Devices, nodes}, {g.PerTask.Devices, tasks}, {g.Total.Devices, 1}} {
		for _, d := range part.list {
			count += d.Count * part.times
			gpuType = d.Type
		}
	}
	return count, gpuType
}

// However GPUs are asked for, the same number comes out, claimed once.
func TestSevenWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 16).Draw(t, "nodes")
		perNode := rapid.IntRange(1, 8).Draw(t, "tasks per node")
		each := rapid.IntRange(1, 4).Draw(t, "GPUs per task")
		sockets := rapid.SampledFrom([]int{1, perNode, perNode * each}).Draw(t, "sockets")
		tasks, onNode := nodes*perNode, perNode*each
		gpuType := rapid.SampledFrom([]string{"", "h100", "a100_80"}).Draw(t, "type")
		typed := func(n int) string {
			if gpuType == "" {
				return fmt.Sprint(n)
			}
			return fmt.Sprintf("%s:%d", gpuType, n)
		}
		ways := []string{
			"--gres=gpu:" + typed(onNode),
			"--gpus-per-node=" + typed(onNode),
			"--gpus=" + typed(onNode*nodes),
			"-G " + typed(onNode*nodes),
			"--gpus-per-task=" + typed(each),
			"--tres-per-task=gres/gpu:" + typed(each),
			fmt.Sprintf("--sockets-per-node=%d --gpus-per-socket=%s", sockets, typed(onNode/sockets)),
			"--gpus=gpu:" + typed(onNode*nodes),
		}
		layout := rapid.SampledFrom([]string{
			fmt.Sprintf("--nodes=%d --ntasks-per-node=%d ", nodes, perNode),
			fmt.Sprintf("--nodes=%d --ntasks=%d ", nodes, tasks),
		}).Draw(t, "layout")
		// One way alone, and every two of them together, which must agree.
		first := rapid.IntRange(0, len(ways)-1).Draw(t, "way")
		second := rapid.IntRange(0, len(ways)-1).Draw(t, "other way")
		for _, options := range []string{layout + ways[first], layout + ways[first] + " " + ways[second]} {
			s, _, err := Parse(source("#!/bin/sh\n#SBATCH "+options+"\n"), Options{Dir: "/d"})
			if err != nil {
				t.Fatalf("%s: %v", options, err)
			}
			got, gotType := gpus(s.Groups[0], nodes, tasks)
			if got != tasks*each || gotType != gpuType {
				t.Fatalf("%s: %d GPUs of type %q, want %d of %q", options, got, gotType, tasks*each, gpuType)
			}
		}
	})
}

// Ways that contradict each other are refused, not silently resolved.
func TestWaysContradict(t *testing.T) {
	for _, options := range []string{
		"-N2 --gres=gpu:2 --gpus-per-node=3", "-N2 --gres=gpu:2 --gpus=5", "-N2 --gres=gpu:2 --gpus=8", "-n4 --gpus=4 --gpus-per-task=2",
		"-N1 -n4 --gres=gpu:2 --gpus-per-task=1", "--gpus-per-node=h100:2 --gres=gpu:a100:2", "-n2 --gpus-per-task=1 --tres-per-task=gres/gpu:2",
		"--gpus-per-socket=1 --sockets-per-node=2 --gpus-per-node=4", "--gres=gpu:99999999999",
	} {
		if s, _, err := Parse(source("#!/bin/sh\n#SBATCH "+options+"\n"), Options{Dir: "/d"}); err == nil {
			t.Errorf("%s is accepted: %s", options, group(s.Groups[0]))
		}
	}
}

func TestProfiles(t *testing.T) {
	for text, want := range map[string]string{
		"1g.10gb": "|1g.10gb", "a100_1g.5gb": "a100|1g.5gb", "a100_sxm_7g.80gb": "a100_sxm|7g.80gb", "h100_1g.10gb+me": "h100|1g.10gb+me", "1g.5gb+me.all": "|1g.5gb+me.all",
		"": "no", "h100": "no", "_1g.5gb": "no", "1g.5gb+": "no", "1g.gb": "no", "g.5gb": "no", "1g5gb": "no", "1g.5gb+1": "no", "x1g.5gb": "no", "1g.5gb_x": "no",
	} {
		gpu, part, ok := splitProfile(text)
		if got := gpu + "|" + part; ok != (want != "no") || ok && got != want {
			t.Errorf("%s is %s, %v, want %s", text, got, ok, want)
		}
	}
}
