package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
)

// placeholder stands where a job names no image.
const placeholder = "IMAGE"

// Render writes a manifest of a job: a Job of batch/v1, Indexed where it has several pods, with an annotation for
// each option that only Coxswain knows. A script runs in every pod of a node; each task of a command is a pod.
// It lists what is lost. A job of several groups is refused.
func Render(sp *job.Spec, script []byte) ([]byte, []spec.Warning, error) {
	if len(sp.Groups) != 1 {
		return nil, nil, fault.New(fault.Unsupported, "the job has %d groups of tasks, and a Job of Kubernetes has pods that are alike", len(sp.Groups)).Advise("write a JobSet, one job for each group")
	}
	c := &converter{file: sp.Source.File}
	w := &manifestWriter{c: c, sp: sp, g: &sp.Groups[0]}
	w.writeJob(script)
	slices.SortStableFunc(c.warnings, func(a, b spec.Warning) int { return strings.Compare(a.Option, b.Option) })
	return []byte(w.b.String()), c.warnings, nil
}

type manifestWriter struct {
	c  *converter
	sp *job.Spec
	g  *job.TaskGroup
	b  strings.Builder
}

func (w *manifestWriter) writeLine(indent int, format string, args ...any) {
	w.b.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

// countPods is how many pods the job has, and how many tasks of the job each stands for.
func (w *manifestWriter) countPods() (count, tasks int) {
	nodes := max(w.g.Nodes.Min, 1)
	all := max(w.g.Tasks.Want, w.g.TasksPerNode*nodes, nodes)
	if w.sp.Program.Kind == job.Direct {
		return all, 1
	}
	return nodes, max((all+nodes-1)/nodes, 1)
}

func (w *manifestWriter) writeJob(script []byte) {
	sp := w.sp
	w.writeLine(0, "apiVersion: batch/v1")
	w.writeLine(0, "kind: Job")
	w.writeLine(0, "metadata:")
	w.writeLine(1, "name: %s", compactJSON(objectName(sp.Name)))
	w.writeAnnotations()
	w.writeLine(0, "spec:")
	count, tasks := w.countPods()
	switch {
	case sp.Array != nil:
		w.writeLine(1, "completionMode: Indexed")
		w.writeLine(1, "completions: %d", len(sp.Array.Indices))
		parallel := len(sp.Array.Indices)
		if sp.Array.MaxRunning > 0 {
			parallel = int(sp.Array.MaxRunning)
		}
		w.writeLine(1, "parallelism: %d", parallel)
		if sp.Array.Indices[0] != 0 || int(sp.Array.Indices[len(sp.Array.Indices)-1]) != len(sp.Array.Indices)-1 {
			w.c.noteLost("array", "indices are 0 to %d then, in JOB_COMPLETION_INDEX", len(sp.Array.Indices)-1)
		}
		if count > 1 {
			w.c.noteLost("nodes", "each task of the array has one pod then, and not %d", count)
		}
	case count > 1:
		w.writeLine(1, "completionMode: Indexed")
		w.writeLine(1, "completions: %d", count)
		w.writeLine(1, "parallelism: %d", count)
	}
	retries := 0
	if sp.Retries != nil {
		retries = sp.Retries.Count
	}
	w.writeLine(1, "backoffLimit: %d", retries)
	if sp.TimeLimit > 0 {
		w.writeLine(1, "activeDeadlineSeconds: %d", int64((sp.TimeLimit+time.Second-1)/time.Second))
	}
	if sp.Held {
		w.writeLine(1, "suspend: true")
	}
	w.writeLine(1, "template:")
	w.writeLine(2, "spec:")
	w.writeLine(3, "restartPolicy: Never")
	w.writeLine(3, "containers:")
	w.writeLine(3, "- name: main")
	image := sp.Image
	if image == "" {
		image = placeholder
		w.c.noteLost("image", "is not named: write an image that has the program in the place of %s", placeholder)
	}
	w.writeLine(4, "image: %s", compactJSON(image))
	w.writeCommand(script)
	w.writeEnv()
	w.writeResources(tasks)
	w.writeMounts()
	w.listLost(count)
}

// writeAnnotations keeps what Coxswain alone knows.
func (w *manifestWriter) writeAnnotations() {
	sp := w.sp
	var lines []string
	for _, o := range []struct{ name, value string }{
		{"account", sp.Account},
		{"qos", sp.QOS},
		{"partition", strings.Join(sp.Partitions, ",")},
		{"reservation", sp.Reservation},
		{"licenses", sp.Licenses},
		{"comment", sp.Comment},
		{"constraint", w.g.Constraint.Text},
		{"exclude", strings.Join(w.g.Exclude, ",")},
		{"nodelist", strings.Join(w.g.NodeList, ",")},
	} {
		if o.value != "" {
			lines = append(lines, fmt.Sprintf("coxswain.sh/%s: %s", o.name, compactJSON(o.value)))
		}
	}
	if sp.Nice != 0 {
		lines = append(lines, fmt.Sprintf("coxswain.sh/nice: %q", strconv.FormatInt(sp.Nice, 10)))
	}
	if len(lines) == 0 {
		return
	}
	w.writeLine(1, "annotations:")
	for _, l := range lines {
		w.writeLine(2, "%s", l)
	}
}

func (w *manifestWriter) writeCommand(script []byte) {
	if w.sp.Program.Kind == job.Direct {
		w.writeLine(4, "command: %s", compactJSON(escapeAll(w.sp.Program.Args)))
		return
	}
	interpreter := []string{"/bin/sh"}
	text := string(script)
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(first, "#!") {
		if words := strings.Fields(strings.TrimPrefix(first, "#!")); len(words) > 0 {
			interpreter, text = words, rest
		}
	}
	w.writeLine(4, "command: %s", compactJSON(append(interpreter, "-c")))
	w.writeLine(4, "args:")
	var kept []string
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "#SBATCH") {
			kept = append(kept, strings.TrimRight(l, "\r\n"))
		}
	}
	w.writeLine(4, "- |2") // however the first line is indented
	for _, l := range kept {
		if l == "" {
			w.b.WriteByte('\n')
			continue
		}
		w.writeLine(5, "%s", escapeReferences(l))
	}
	for _, a := range append([]string{w.sp.Program.ScriptName}, w.sp.Program.Args...) {
		if a != "" {
			w.writeLine(4, "- %s", compactJSON(escapeReferences(a)))
		}
	}
	if strings.Contains(text, "srun") || strings.Contains(text, "SLURM_") {
		w.c.noteLost("script", "srun and the variables SLURM_* are not there in pods")
	}
}

// escapeReferences has Kubernetes leave a text as it is, where $(NAME) is a variable and two dollars are one.
func escapeReferences(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			b.WriteByte('$')
		}
	}
	return b.String()
}

func escapeAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = escapeReferences(s)
	}
	return out
}

func (w *manifestWriter) writeEnv() {
	var lines []string
	for _, set := range w.sp.Env.Set {
		name, value, _ := strings.Cut(set, "=")
		lines = append(lines, fmt.Sprintf("- {name: %s, value: %s}", compactJSON(name), compactJSON(escapeReferences(value))))
	}
	if len(lines) == 0 {
		return
	}
	w.writeLine(4, "env:")
	for _, l := range lines {
		w.writeLine(4, "%s", l)
	}
}

// writeResources says what a pod asks for that stands for so many tasks.
func (w *manifestWriter) writeResources(tasks int) {
	g := w.g
	nodes := max(g.Nodes.Min, 1)
	need := g.PerTask
	cpu, memory, disk := need.CPU.Mul(tasks), need.Memory.Mul(tasks), need.Disk.Mul(tasks)
	devices := map[string]int{}
	add := func(all []resource.DeviceRequest, times, parts int) {
		for _, d := range all {
			name := "nvidia.com/gpu"
			if d.Profile != "" {
				name = "nvidia.com/mig-" + d.Profile
			}
			devices[name] += (d.Count*times + parts - 1) / parts
			if d.Type != "" {
				w.c.noteLost("gpus", "the type %s is lost: a nodeSelector says it on Kubernetes", d.Type)
			}
			if !d.Whole() && d.Profile == "" {
				w.c.noteLost("gpus", "a part of a GPU is a whole one then")
			}
		}
	}
	add(need.Devices, tasks, 1)
	count, _ := w.countPods()
	per := max(count/nodes, 1) // pods of a node
	cpu, memory, disk = cpu.Add(divideUp(g.PerNode.CPU, per)), memory.Add(divideUp(g.PerNode.Memory, per)), disk.Add(divideUp(g.PerNode.Disk, per))
	add(g.PerNode.Devices, 1, per)
	add(g.Total.Devices, 1, count)
	for _, n := range devices {
		cpu, memory = cpu.Add(g.PerDevice.CPU.Mul(n)), memory.Add(g.PerDevice.Memory.Mul(n))
	}
	var asked []string
	if cpu > 0 {
		asked = append(asked, fmt.Sprintf("cpu: %dm", int64(cpu)))
	}
	if memory > 0 {
		asked = append(asked, "memory: "+bytesText(int64(memory)))
	}
	if disk > 0 {
		asked = append(asked, "ephemeral-storage: "+bytesText(int64(disk)))
	}
	if len(asked)+len(devices) == 0 {
		return
	}
	w.writeLine(4, "resources:")
	if len(asked) > 0 {
		w.writeLine(5, "requests: {%s}", strings.Join(asked, ", "))
	}
	var limits []string
	for _, a := range asked {
		if strings.HasPrefix(a, "memory") {
			limits = append(limits, a)
		}
	}
	for _, name := range []string{"nvidia.com/gpu"} {
		if n := devices[name]; n > 0 {
			limits = append(limits, fmt.Sprintf("%s: %d", name, n))
			delete(devices, name)
		}
	}
	for name, n := range devices {
		limits = append(limits, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(limits)
	if len(limits) > 0 {
		w.writeLine(5, "limits: {%s}", strings.Join(limits, ", "))
	}
}

func divideUp(a resource.Amount, n int) resource.Amount {
	return (a + resource.Amount(n) - 1) / resource.Amount(n)
}

// bytesText is an amount in the largest binary unit that leaves a whole number.
func bytesText(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti"}
	i := 0
	for n%1024 == 0 && n > 0 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	return strconv.FormatInt(n, 10) + units[i]
}

func (w *manifestWriter) writeMounts() {
	if w.sp.Container == nil || len(w.sp.Container.Mounts) == 0 {
		return
	}
	w.writeLine(4, "volumeMounts:")
	for i, m := range w.sp.Container.Mounts {
		ro := ""
		if slices.Contains(m.Flags, "ro") {
			ro = ", readOnly: true"
		}
		w.writeLine(4, "- {name: mount-%d, mountPath: %s%s}", i, compactJSON(m.Target), ro)
	}
	w.writeLine(3, "volumes:")
	for i, m := range w.sp.Container.Mounts {
		if m.Source == "tmpfs" {
			w.writeLine(3, "- {name: mount-%d, emptyDir: {medium: Memory}}", i)
			continue
		}
		w.writeLine(3, "- {name: mount-%d, hostPath: {path: %s}}", i, compactJSON(m.Source))
	}
	w.c.noteLost("container_options.mounts", "are paths of the node then: a cluster may refuse them")
}

// listLost names what a Job of Kubernetes has no word for.
func (w *manifestWriter) listLost(count int) {
	sp, g := w.sp, w.g
	for path, has := range map[string]bool{
		"dependency": !sp.Depends.IsZero(), "begin": !sp.Begin.IsZero(), "deadline": !sp.Deadline.IsZero(), "time_min": sp.TimeMin > 0, "signal": sp.Signal != nil, "mail": sp.Mail != nil,
		"notify": sp.Notify != nil, "exclusive": g.Exclusive, "switches": g.Switches > 0, "within": g.Within != 0, "elastic": g.Elastic, "distribution": g.Distribution != "", "contiguous": g.Contiguous,
		"secrets": len(sp.Secrets) > 0, "pool": sp.Pool != "", "nodes (a range)": g.Nodes.Max > g.Nodes.Min && g.Nodes.Max > 0,
	} {
		if has {
			w.c.noteLost(path, "is lost: a Job has no word for it")
		}
	}
	if sp.Output.Stdout != "" && sp.Source.Given["output"] != "" || sp.Output.Stderr != "" {
		w.c.noteLost("output", "is lost: pods have logs")
	}
	if count > 1 {
		w.c.noteLost("nodes", "%d pods may be on fewer nodes", count)
	}
}

// objectName makes a name of Kubernetes of a job's.
func objectName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	if s = strings.Trim(s, "-."); s == "" {
		return "job"
	}
	return s[:min(len(s), 63)]
}
