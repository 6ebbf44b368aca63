package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Series is how a job used CPUs, memory and devices over the time of its last attempt, in equal
// intervals (docs/reference/efficiency.md). A list has a value for each interval, null where nobody
// measured, and may be shorter than Points where nothing follows.
type Series struct {
	Job    job.ID    `json:"job"`
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Start  time.Time `json:"start,omitzero" doc:"of the first interval"`
	Step   float64   `json:"step" doc:"seconds of each interval; it doubles when there would be more than 240"`
	Points int       `json:"points" doc:"intervals, at most 240; 0: nobody measured it"`
	Note   string    `json:"note,omitempty" doc:"with 0 points: why there is no series"`

	CPUs       []*float64 `json:"cpus" doc:"CPUs that were busy, on average, of all nodes"`
	Memory     []*float64 `json:"memory" doc:"bytes of all nodes, the largest value that was seen"`
	GPUs       []*float64 `json:"gpus" doc:"per cent, the average of the devices"`
	GPUMemory  []*float64 `json:"gpu_memory" doc:"bytes in use on all devices"`
	HeldCPUs   float64    `json:"held_cpus" doc:"CPUs that the job holds or held"`
	HeldMemory int64      `json:"held_memory" doc:"bytes of memory that it holds or held; 0: no amount was asked for"`
	HeldGPUs   int        `json:"held_gpus" doc:"GPUs that it holds or held"`

	Nodes     []NodeSeries   `json:"nodes" doc:"of an attempt of several nodes, at most 64"`
	LeftNodes int            `json:"left_nodes,omitempty" doc:"nodes that are in cpus and memory alone"`
	Devices   []DeviceSeries `json:"devices" doc:"by node and index, at most 512"`
	Sources   []string       `json:"sources" doc:"supervisor (this machine), pod (the agent in the pods), sstat (Slurm), nvml, dcgm (an exporter)"`
}

// NodeSeries is what the job used on one node.
type NodeSeries struct {
	Node   string     `json:"node"`
	CPUs   []*float64 `json:"cpus" doc:"CPUs that were busy, on average"`
	Memory []*float64 `json:"memory" doc:"bytes"`
}

// DeviceSeries is how one device of the job was used.
type DeviceSeries struct {
	Node     string     `json:"node,omitempty"`
	Index    int        `json:"index" doc:"of the device on its node, or in its pod"`
	Instance string     `json:"instance,omitempty" doc:"number of the MIG instance, as an exporter has it"`
	Profile  string     `json:"profile,omitempty" doc:"it is a MIG instance of that profile"`
	Source   string     `json:"source" doc:"nvml or dcgm"`
	Of       int64      `json:"of,omitempty" doc:"bytes of its memory; left out: not known"`
	Busy     []*float64 `json:"busy" doc:"per cent of the time"`
	Memory   []*float64 `json:"memory" doc:"bytes in use"`
}
