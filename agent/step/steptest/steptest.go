// Package steptest has allocations, requests, a spawner of processes and the comparison of
// generated documents that the tests of the packages of agent/step share.
package steptest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
)

var update = flag.Bool("update", false, "write generated documents anew")

// Uniform is an allocation of n nodes, v1 to vn, with the same on each.
func Uniform(n, tasks, cpus, gpus int) *step.Alloc {
	a := &step.Alloc{
		Job: 1, Attempt: 1, Name: "test", Cluster: "coxswain", Partition: "main",
		Owner: job.Owner{User: "nobody", UID: uint32(os.Getuid())}, Started: time.Unix(1700000000, 0),
		Given: map[string]string{}, Groups: []step.AllocGroup{{}},
	}
	for i := range n {
		a.Nodes = append(a.Nodes, step.AllocNode{Name: fmt.Sprintf("v%d", i+1), Address: fmt.Sprintf("127.0.10.%d", i+1), CPUs: cpus})
		p := step.Part{Node: i, Tasks: tasks, CPUs: cpus}
		for d := range gpus {
			p.Devices = append(p.Devices, step.AllocDevice{Index: d, Kind: "gpu", Type: "h100", Shown: deviceenv.Device{Vendor: deviceenv.Declared, Index: d}})
		}
		a.Groups[0].Parts = append(a.Groups[0].Parts, p)
		a.Groups[0].Tasks += tasks
	}
	return a
}

// WithOptions adds options of the submission.
func WithOptions(a *step.Alloc, options ...string) *step.Alloc {
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		a.Given[name] = value
		switch name {
		case "ntasks-per-node":
			fmt.Sscan(value, &a.Groups[0].TasksPerNode)
		case "cpus-per-task":
			fmt.Sscan(value, &a.Groups[0].CPUsPerTask)
		}
	}
	return a
}

// Het is a job of two components: 1 task on v1; 4 tasks of 2 CPUs on v2 and v3.
func Het() *step.Alloc {
	a := Uniform(3, 2, 4, 0)
	parts := a.Groups[0].Parts
	parts[0].Tasks, parts[0].CPUs = 1, 1
	a.Groups = []step.AllocGroup{{Tasks: 1, Parts: parts[:1]}, {Tasks: 4, CPUsPerTask: 2, Parts: parts[1:]}}
	a.Given["ntasks"] = "1"
	return a
}

// Anna is the allocation that was recorded.
func Anna(a *step.Alloc) *step.Alloc {
	a.Name, a.Owner = "train", job.Owner{User: "anna", UID: 1000, GID: 1000}
	a.SubmitDir, a.SubmitHost, a.TimeLimit = "/home/anna/run", "login", 5*time.Minute
	return a
}

// RandomRequest draws a component on an allocation.
func RandomRequest(r *rapid.T, a *step.Alloc) wire.ComponentRequest {
	q := wire.ComponentRequest{
		Tasks:        rapid.IntRange(0, 12).Draw(r, "step tasks"),
		NodesMin:     rapid.IntRange(0, len(a.Nodes)).Draw(r, "step nodes"),
		TasksPerNode: rapid.IntRange(0, 3).Draw(r, "per node"),
		CPUsPerTask:  rapid.IntRange(0, 3).Draw(r, "cpus per task"),
		Overcommit:   rapid.Bool().Draw(r, "overcommit"),
		Relative:     rapid.IntRange(0, 1).Draw(r, "relative"),
		Distribution: rapid.SampledFrom([]string{"", "block", "cyclic", "plane=2", "block,pack"}).Draw(r, "distribution"),
	}
	if rapid.Bool().Draw(r, "list") {
		q.NodeList = []string{rapid.SampledFrom(a.Nodes).Draw(r, "node").Name}
	}
	if rapid.Bool().Draw(r, "without") {
		q.Exclude = []string{rapid.SampledFrom(a.Nodes).Draw(r, "not").Name}
	}
	n := rapid.IntRange(0, 3).Draw(r, "devices")
	switch rapid.IntRange(0, 4).Draw(r, "kind") {
	case 1:
		q.Devices.Total = n
	case 2:
		q.Devices.PerNode = n
	case 3:
		q.Devices.PerTask = n
	case 4:
		q.Devices.None = true
	}
	return q
}

// Document compares a generated file of docs/ with what it must be.
func Document(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "docs", "reference", name)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the table says; go test ./agent/step/... -run Document -update writes it (%v)", file, err)
	}
}
