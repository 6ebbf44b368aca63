package step

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// FileNames is what % patterns mean in the names of a step's files, but for those
// that differ from task to task.
func FileNames(a *Alloc, i *Info) slurmfmt.Names {
	n := slurmfmt.Names{
		Job: uint64(a.Job), ArrayJob: uint64(a.Job), Task: slurmfmt.NotArray, JobName: a.Name,
		User: a.Owner.User, Step: strconv.Itoa(i.Step), Restarts: int(a.Attempt) - 1,
	}
	if i.Name != "" {
		n.JobName = i.Name
	}
	if a.Array != nil {
		n.ArrayJob, n.Task = uint64(a.Array.Job), a.Array.Index
	}
	return n
}

// FormatInts joins numbers by commas.
func FormatInts(n []int) string {
	out := make([]string, len(n))
	for i, k := range n {
		out[i] = strconv.Itoa(k)
	}
	return strings.Join(out, ",")
}

// DeviceIndices joins the numbers of devices by commas.
func DeviceIndices(devices []AllocDevice) string {
	var out []int
	for _, d := range devices {
		out = append(out, d.Index)
	}
	return FormatInts(out)
}
