package slurmcmdtest

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// Queue fills the server with a queue in which everything occurs.
func (s *Server) Queue() *Server {
	at := func(d time.Duration) string { return fmt.Sprint(Now.Add(d).Unix()) }
	s.Jobs = []map[string]string{
		{
			"id": "201", "job_name": "train", "user": "anna", "uid": "1001", "gid": "3999999999", "account": "nlp", "partition": "gpu", "state": "RUNNING",
			"priority": "100", "submitted": at(-2 * time.Hour), "eligible": at(-2 * time.Hour), "started": at(-65 * time.Minute), "attempt": "1",
			"time_limit": "36000", "nodes_min": "2", "node_list": "n[1-2]", "batch_host": "n1", "cpus": "64", "tasks": "16", "gres": "gres/gpu:h100:8",
			"tres": "cpu=64,mem=256G,node=2,gres/gpu=16", "command": "/home/anna/train.sh", "work_dir": "/home/anna", "script_hash": "ab", "memory": "137438953472",
			"stdout": "/home/anna/slurm-201.out", "stderr": "/home/anna/slurm-201.out", "stdin": "/dev/null", "requeue": "1", "submit_host": "login1",
		},
		{
			"id": "202", "name": "202_[2-9%2]", "array_job": "202", "array_task": "2-9%2", "array_limit": "2", "job_name": "sweep-of-many", "user": "anna", "uid": "1001",
			"partition": "gpu", "state": "PENDING", "reason": "array-limit", "priority": "90", "submitted": at(-time.Hour), "time_limit": "600", "script_hash": "ac",
		},
		{
			"id": "203", "name": "202_1", "array_job": "202", "array_task": "1", "array_limit": "2", "job_name": "sweep-of-many", "user": "anna", "uid": "1001",
			"partition": "gpu", "state": "RUNNING", "priority": "90", "submitted": at(-time.Hour), "started": at(-25 * time.Hour), "attempt": "1", "node_list": "n3", "batch_host": "n3",
			"flags": "STOPPING", "script_hash": "ac",
		},
		{"id": "213", "job_name": "held", "user": "ben", "uid": "1002", "partition": "cpu", "state": "PENDING", "flags": "HELD", "reason": "held-user", "submitted": at(-time.Minute)},
		{
			"id": "214", "job_name": "big", "user": "ben", "uid": "1002", "partition": "gpu,cpu", "features": "fast&new", "state": "PENDING", "reason": "resources", "priority": "95",
			"reason_text": "needs 16 GPUs, free now: 8 GPUs", "submitted": at(-time.Minute), "starts_by": at(3 * time.Hour), "nodes_min": "4", "comment": "a b\tc", "licenses": "matlab:2|fluent",
		},
		{"id": "215", "job_name": "both", "user": "ben", "uid": "1002", "partition": "gpu", "state": "RUNNING", "het_size": "2", "started": at(-time.Minute), "submitted": at(-time.Minute), "node_list": "n[4-5]", "attempt": "1"},
		{
			"id": "216", "job_name": "broken", "user": "ben", "uid": "1002", "partition": "cpu", "state": "FAILED", "exit_status": "3", "submitted": at(-time.Hour),
			"started": at(-30 * time.Minute), "ended": at(-29 * time.Minute), "node_list": "n6", "batch_host": "n6", "attempt": "1", "script_hash": "ad", "cpus": "4",
		},
	}
	s.Answer["GET /v1/jobs/201"] = map[string]any{"name": "201", "state": "RUNNING", "claims": []map[string]any{
		{"node": "n1", "cpus": 32, "memory": 128 << 30, "devices": []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"node": "n2", "cpus": 32, "memory": 128 << 30, "devices": []int{0, 1, 2, 3, 4, 5, 6, 7}},
	}}
	s.Nodes = []api.Node{
		{Name: "n1", State: "up", CPUs: 32, CPUsUsed: 32, Memory: 256 << 30, MemoryUsed: 128 << 30, Sockets: 2, Jobs: []string{"201"}, Devices: gpuDevices(8, "201")},
		{Name: "n2", Disk: 100 << 30, System: &api.System{Arch: "x86_64", OS: "Linux 6.1.0 #1 SMP", Booted: Now.Add(-24 * time.Hour), Load: 7.5}, State: "up", CPUs: 32, CPUsUsed: 16, Memory: 256 << 30, Sockets: 2, Jobs: []string{"201"}, Devices: gpuDevices(8, "201")},
		{Name: "n3", State: "up", CPUs: 32, Memory: 256 << 30, Sockets: 2, Devices: gpuDevices(8, "")},
		{Name: "n4", State: "draining", Why: "bad disk", By: "root", Since: Now.Add(-time.Hour), CPUs: 32, CPUsUsed: 1, Memory: 256 << 30, Sockets: 2, Jobs: []string{"215"}, Devices: gpuDevices(8, "")},
		{Name: "n5", State: "draining", Why: "bad disk", By: "root", Since: Now.Add(-time.Hour), CPUs: 32, Memory: 256 << 30, Sockets: 2, Devices: gpuDevices(8, "")},
		{Name: "n6", State: "down", Why: "no answer", Since: Now.Add(-time.Hour), CPUs: 16, Memory: 64 << 30, Sockets: 1},
		{Name: "n10", State: "up", CPUs: 16, Memory: 64 << 30, Sockets: 1, Features: []string{"fast"}},
	}
	s.Partitions = []api.Partition{
		{Name: "gpu", Default: true, State: "up", Nodes: []string{"n1", "n2", "n3", "n4", "n5"}, TimeLimit: 172800},
		{Name: "cpu", State: "up", Nodes: []string{"n6", "n10"}, DefaultTime: 3600},
		{Name: "none", State: "up"},
	}
	return s
}

func gpuDevices(n int, jobName string) []api.Device {
	out := make([]api.Device, n)
	for i := range out {
		out[i].Index, out[i].Kind, out[i].Type = i, "gpu", "h100"
		if jobName != "" {
			out[i].Jobs = []string{jobName}
		}
	}
	return out
}
