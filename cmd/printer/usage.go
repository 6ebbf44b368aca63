package printer

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// percent is a part of a whole: "5 %"; "" where there is no whole.
func percent(part, whole float64) string {
	if whole <= 0 {
		return ""
	}
	p := 100 * part / whole
	if p > 0 && p < 0.95 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// printUsage says what a job used of what it asked for. Nothing is said of what is not known.
func printUsage(c *card, j *api.Job) {
	u := j.Used
	if u == nil {
		return
	}
	label := "used"
	say := func(text string) {
		if text != "" {
			c.fact(label, text)
			label = ""
		}
	}
	say(memoryUsage(j))
	say(cpuUsage(c.p, j))
	say(gpuUsage(u.GPUs))
	if u.Total.Has(rusage.IO) && u.Total.Read+u.Total.Written > 0 {
		say("disk: read " + Bytes(u.Total.Read) + ", wrote " + Bytes(u.Total.Written))
	}
}

// memoryUsage is "memory: asked 64 GiB, used 3.1 GiB, 5 %", and of several nodes that which used most.
func memoryUsage(j *api.Job) string {
	u := j.Used
	if !u.Total.Has(rusage.Memory) {
		return ""
	}
	_, _, _, asked := sumClaims(j.Claims)
	text := "memory: used " + Bytes(u.Total.Memory)
	if asked > 0 {
		text = fmt.Sprintf("memory: asked %s, used %s, %s", Bytes(asked), Bytes(u.Total.Memory), percent(float64(u.Total.Memory), float64(asked)))
	}
	var most *rusage.Node
	for i := range u.Nodes {
		if n := &u.Nodes[i]; n.Has(rusage.Memory) && (most == nil || n.Memory > most.Memory) {
			most = n
		}
	}
	if len(u.Nodes) < 2 || most == nil {
		return text
	}
	text += fmt.Sprintf("; most on %s: %s", most.Name, Bytes(most.Memory))
	var there int64
	for _, c := range j.Claims {
		if c.Node == most.Name {
			there += c.Memory
		}
	}
	if there > 0 {
		text += " of " + Bytes(there)
	}
	return text
}

// cpuUsage is "CPUs: 26 % busy, 1 h 2 min of CPU time".
func cpuUsage(p Page, j *api.Job) string {
	u := j.Used
	if !u.Total.Has(rusage.CPU) {
		return ""
	}
	text := Duration(u.Total.CPUTime()) + " of CPU time"
	if busy := percent(cpuShare(j, p.Now)); busy != "" {
		return "CPUs: " + busy + " busy, " + text
	}
	return "CPUs: " + text
}

// cpuShare is the CPU time that a job used, and that its CPUs had in the time that it ran, seconds.
func cpuShare(j *api.Job, now time.Time) (used, had float64) {
	_, _, cpus, _ := sumClaims(j.Claims)
	r := QueueRowOf(j)
	if j.Started.IsZero() {
		return j.Used.Total.CPUTime().Seconds(), 0
	}
	return j.Used.Total.CPUTime().Seconds(), cpus * r.timeSpent(now).Seconds()
}

// gpuUsage is "GPUs: 22 % busy, 12 GiB of 80 GiB of memory".
func gpuUsage(g rusage.GPUs) string {
	if g.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("GPUs: %s busy", percent(g.Busy, 100))
	if g.Count == 1 {
		text = fmt.Sprintf("GPU: %s busy", percent(g.Busy, 100))
	}
	switch {
	case g.Of > 0:
		text += fmt.Sprintf(", %s of %s of memory", Bytes(g.Memory), Bytes(g.Of))
	case g.Memory > 0:
		text += ", " + Bytes(g.Memory) + " of memory"
	}
	return text
}

// usageShares are the cells of a job in a table: per cent of its CPUs, memory and GPUs; "" where
// that is not known.
func usageShares(j *api.Job, now time.Time) (cpu, memory, gpu string) {
	u := j.Used
	if u == nil {
		return "", "", ""
	}
	if u.Total.Has(rusage.CPU) {
		cpu = percent(cpuShare(j, now))
	}
	if _, _, _, asked := sumClaims(j.Claims); u.Total.Has(rusage.Memory) {
		memory = percent(float64(u.Total.Memory), float64(asked))
	}
	if u.GPUs.Count > 0 {
		gpu = percent(u.GPUs.Busy, 100)
	}
	return cpu, memory, gpu
}
