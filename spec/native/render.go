package native

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// Render writes a job in this form. script is what runs if it is a script that does.
// The #SBATCH lines of a batch script are left out of it: what they said stands in
// the fields. What the form cannot say becomes a warning that names the part of the
// job as its JSON has it; the text can be parsed in any case, unless the job runs
// nothing.
func Render(s *job.Spec, script []byte) ([]byte, []spec.Warning) {
	if s.Source.Form == "sbatch" {
		script = withoutDirectives(script)
	}
	w := &writer{spec: s}
	w.writeJob(s)
	w.writeGroups(s)
	w.writeProgram(s, script)
	return []byte(w.b.String()), findMissing(s, script, w.b.String())
}

// withoutDirectives is a batch script without the lines that sbatch reads: those
// before the first command, and one empty line that they leave behind.
func withoutDirectives(script []byte) []byte {
	var out []byte
	header, dropped := true, false
	for line := range bytes.Lines(script) {
		text := bytes.TrimSpace(line)
		header = header && (len(text) == 0 || text[0] == '#')
		switch {
		case header && bytes.HasPrefix(line, []byte("#SBATCH")):
			dropped = true
			continue
		case header && dropped && len(text) == 0 && bytes.Count(out, []byte("\n")) == 1:
			continue
		}
		out = append(out, line...)
	}
	return out
}

// writeJob writes what concerns the job as a whole.
func (w *writer) writeJob(s *job.Spec) {
	w.writeText("name", s.Name)
	w.writeText("comment", s.Comment)
	w.writeText("account", s.Account)
	w.writeText("qos", s.QOS)
	if names := job.PoolNames(s.Pool); len(names) > 1 {
		w.writeList("pool", names)
	} else {
		w.writeText("pool", s.Pool)
	}
	w.writeList("partition", s.Partitions)
	w.writeText("reservation", s.Reservation)
	w.writeText("licenses", s.Licenses)
	w.writeRaw("time", s.TimeLimit > 0, formatDuration(s.TimeLimit))
	w.writeRaw("time_min", s.TimeMin > 0, formatDuration(s.TimeMin))
	w.writeText("begin", formatTime(s.Begin))
	w.writeText("deadline", formatTime(s.Deadline))
	w.writeFlag("hold", s.Held)
	w.writeRaw("nice", s.Nice != 0, strconv.FormatInt(s.Nice, 10))
	w.writeRaw("priority", s.Priority != 0, strconv.FormatInt(s.Priority, 10))
	if !s.Depends.IsZero() {
		text := s.Depends.Text
		if text == "" {
			text = s.Depends.String()
		}
		w.writeText("depends", text)
		if k := s.Depends.KillIfNever; k != nil {
			w.writeRaw("depends_fail", true, strconv.FormatBool(*k))
		}
	}
	if a := s.Array; a != nil {
		w.writeText("array", arrayText(a))
	}
	w.writeFlag("requeue", s.Requeue)
	w.writeRetries(s.Retries)
	w.writeText("rerun", string(s.Rerun))
	if s.Signal != nil {
		w.writeText("signal", signalText(s.Signal))
	}
	w.writeMail(s.Mail)
	w.writeNotify(s.Notify)
	w.writeText("image", s.Image)
	w.writeContainer(s.Container)
	w.writePod(s.Pod)
	if s.WorkDir != "" && s.WorkDir != s.Source.Submit {
		w.writeText("workdir", s.WorkDir)
	}
	stdout := s.Output.Stdout
	if s.Program.Kind == job.Batch && (stdout == defaultOutput && s.Array == nil || stdout == defaultArrayOutput && s.Array != nil) {
		stdout = ""
	}
	w.writeText("output", stdout)
	w.writeText("error", s.Output.Stderr)
	w.writeText("input", s.Output.Stdin)
	w.writeFlag("append", s.Output.Append)
	w.writeEnv(s)
	w.writeSecrets(s.Secrets)
	if kill := s.Program.Kind == job.Direct; s.KillOnBadExit != kill {
		w.writeRaw("kill_on_bad_exit", true, strconv.FormatBool(s.KillOnBadExit))
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func arrayText(a *job.ArraySpec) string {
	if a.Text != "" {
		return a.Text
	}
	text := slurmfmt.FormatArrayIndices(a.Indices)
	if a.MaxRunning > 0 {
		text += "%" + strconv.FormatUint(uint64(a.MaxRunning), 10)
	}
	return text
}

// signalNames are the signals that jobs are warned by, for readable text.
var signalNames = []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CONT", "STOP", "TSTP", "XCPU"}

func signalText(s *job.SignalSpec) string {
	text := strconv.Itoa(s.Signal)
	for _, name := range signalNames {
		if n, err := slurmfmt.ParseSignalName(name); err == nil && n == s.Signal {
			text = name
		}
	}
	if s.BatchOnly {
		text = "B:" + text
	}
	return text + "@" + strconv.Itoa(int(s.Before/time.Second))
}

func (w *writer) writeMail(m *job.Mail) {
	if m == nil {
		return
	}
	types := make([]string, len(m.Types))
	for i, t := range m.Types {
		types[i] = strings.ToLower(t)
	}
	if m.To == "" {
		w.writeList("mail", types)
		return
	}
	w.openGroup("mail")
	w.writeList("types", types)
	w.writeText("to", m.To)
	w.closeGroup()
}

func (w *writer) writeEnv(s *job.Spec) {
	values := map[string]string{}
	var names []string
	for _, e := range s.Env.Set {
		name, value, _ := strings.Cut(e, "=")
		if _, again := values[name]; !again {
			names = append(names, name)
		}
		values[name] = value
	}
	switch export := exportWord(s.Env.Export); export {
	case "ALL", "NONE", "NIL":
		w.writeText("export", strings.ToLower(export))
	default:
		w.writeText("export", export)
	}
	if len(names) == 0 {
		return
	}
	w.openGroup("env")
	for _, n := range names {
		w.writeKeyed(n, quoteText(values[n]))
	}
	w.closeGroup()
}

// writeGroups writes the task groups, flat if there is one without a name.
func (w *writer) writeGroups(s *job.Spec) {
	w.writeCloseness("together", s.Within, s.Wish)
	if len(s.Groups) == 1 && s.Groups[0].Name == "" {
		w.writeGroup(&s.Groups[0])
		return
	}
	if len(s.Groups) == 0 {
		return
	}
	w.openGroup("groups")
	for i := range s.Groups {
		w.beginItem()
		before := w.b.Len()
		w.writeText("name", s.Groups[i].Name)
		w.writeGroup(&s.Groups[i])
		if w.b.Len() == before { // a group that asks for nothing
			w.writeRaw("tasks_per_node", true, "1")
		}
		w.closeGroup()
	}
	w.closeGroup()
}

func (w *writer) writeGroup(g *job.TaskGroup) {
	nodes := strconv.Itoa(g.Nodes.Min)
	switch {
	case g.Nodes.Max == 0:
		nodes += "-"
	case g.Nodes.Max != g.Nodes.Min:
		nodes += "-" + strconv.Itoa(g.Nodes.Max)
	}
	if len(g.NodeList) == 0 || g.Nodes != (job.Range{Min: len(g.NodeList)}) {
		w.writeRaw("nodes", g.Nodes != job.Range{}, nodes)
	}
	w.writeRaw("tasks", g.Tasks.Want != 0, strconv.Itoa(g.Tasks.Want))
	w.writeRaw("elastic", g.Elastic, "true")
	w.writeRaw("subgroup", g.Subgroup != 0, strconv.Itoa(g.Subgroup))
	w.writeRaw("min_tasks", g.Tasks.Min != 0, strconv.Itoa(g.Tasks.Min))
	w.writeRaw("tasks_per_node", g.TasksPerNode != 0, strconv.Itoa(g.TasksPerNode))
	c := claimOf(g)
	w.writeDevices("gpus", c.total, len(c.node)+len(c.task) == 0)
	w.writeDevices("gpus_per_node", c.node, len(c.total)+len(c.task) == 0)
	w.writeDevices("gpus_per_task", c.task, len(c.total)+len(c.node) == 0)
	w.writeList("gpu_types", g.Wishes.GPUs)
	w.writeRaw("gpu_types_for", g.Wishes.GPUsFor > 0, formatPatience(g.Wishes.GPUsFor))
	w.writeRaw("cpus", g.CPUsPerTask > 0 && !c.fullCPUs, strconv.Itoa(g.CPUsPerTask))
	w.writeRaw("cpus", c.fraction, resource.FormatCPU(g.PerTask.CPU))
	w.writeRaw("cpus_per_gpu", c.gpuCPU, resource.FormatCPU(g.PerDevice.CPU))
	if g.AllMemory {
		w.writeRaw("memory", true, "all")
	} else {
		w.writeSize("memory", g.PerNode.Memory, c.memory == "memory")
	}
	w.writeSize("memory_per_task", g.PerTask.Memory, c.memory == "memory_per_task")
	w.writeSize("memory_per_gpu", g.PerDevice.Memory, c.memory == "memory_per_gpu")
	w.writeSize("disk", g.PerNode.Disk, g.PerNode.Disk > 0)
	w.writeAmounts("per_node", c.left[perNode])
	w.writeAmounts("per_task", c.left[perTask])
	w.writeAmounts("per_gpu", c.left[perGPU])
	w.writeAmounts("total", c.left[total])
	w.writeFlag("exclusive", g.Exclusive)
	w.writeFlag("overcommit", g.Overcommit)
	w.writeText("constraint", g.Constraint.Text)
	w.writeHosts("nodelist", g.NodeList)
	w.writeHosts("exclude", g.Exclude)
	w.writeFlag("contiguous", g.Contiguous)
	w.writeCloseness("within", g.Within, g.Wishes.Within)
	if s := g.Wishes.Switches; s.N > 0 {
		w.writeRaw("switches", true, strconv.Itoa(s.N))
		w.writeRaw("switches_for", true, formatPatience(s.For))
	} else {
		w.writeRaw("switches", g.Switches > 0, strconv.Itoa(g.Switches))
	}
	w.writeFlag("spread", g.Spread)
	w.writeFlag("few_nodes", g.FewNodes)
	w.writeRaw("segment", g.Segment > 1, strconv.Itoa(g.Segment))
	w.writeText("distribution", g.Distribution)
}

// writeCloseness writes a level that is asked for, or wished for.
func (w *writer) writeCloseness(name string, level int, wish job.Wish) {
	if wish.N != 0 {
		w.writeRaw(name, true, w.levelText(wish.N))
		w.writeRaw(name+"_for", true, formatPatience(wish.For))
		return
	}
	w.writeRaw(name, level != 0, w.levelText(level))
}

func (w *writer) levelText(n int) string {
	switch name := w.spec.LevelName(n); {
	case name != "":
		return name
	case n == job.InLeaf:
		return "leaf"
	}
	return strconv.Itoa(n)
}

// formatPatience writes how long something is insisted on.
func formatPatience(d time.Duration) string {
	switch {
	case d == job.SiteWait:
		return "site"
	case d == 0:
		return "0s"
	}
	return formatDuration(d)
}

func (w *writer) writeSize(name string, a resource.Amount, write bool) {
	if text, ok := formatSize(a); write && ok {
		w.writeRaw(name, true, text)
	}
}

func (w *writer) writeAmounts(name string, a wanted) {
	if a.need.IsZero() && !a.zero {
		return
	}
	w.openGroup(name)
	w.writeRaw("cpus", a.need.CPU != 0 || a.zero, resource.FormatCPU(a.need.CPU))
	w.writeSize("memory", a.need.Memory, a.need.Memory > 0)
	w.writeSize("disk", a.need.Disk, a.need.Disk > 0)
	if len(a.need.Named) > 0 {
		w.openGroup("resources")
		for _, n := range a.need.Named {
			w.writeKeyed(n.Name, strconv.FormatInt(int64(n.Amount), 10))
		}
		w.closeGroup()
	}
	w.writeDevices("gpus", a.need.Devices, true)
	w.closeGroup()
}

// writeDevices writes a field of GPUs: short where that says all.
func (w *writer) writeDevices(name string, list []resource.DeviceRequest, write bool) {
	if len(list) == 0 || !write {
		return
	}
	var parts []string
	for _, r := range list {
		parts = append(parts, gpuText(r))
	}
	if len(parts) == 1 {
		w.writeRaw(name, true, parts[0])
		return
	}
	w.writeRaw(name, true, "["+strings.Join(parts, ", ")+"]")
}

func gpuText(r resource.DeviceRequest) string {
	short := strconv.Itoa(r.Count)
	kind := r.Type
	if r.Profile != "" && kind != "" {
		kind += "_" + r.Profile
	} else if r.Profile != "" {
		kind = r.Profile
	}
	if kind != "" {
		short = kind + ":" + short
	}
	list, err := slurmfmt.ParseGPUs(short)
	if err == nil && len(list) == 1 && deviceRequest(list[0]) == r && !strings.ContainsAny(kind, ", ") {
		if kind == "" {
			return short
		}
		return quoteGPU(short)
	}
	var fields []string
	add := func(name, value string, write bool) {
		if write {
			fields = append(fields, name+": "+value)
		}
	}
	add("type", quoteFlow(r.Type), r.Type != "")
	add("count", strconv.Itoa(r.Count), true)
	size, _ := formatSize(r.Memory)
	add("memory", size, r.Memory > 0)
	add("profile", quoteFlow(r.Profile), r.Profile != "")
	if r.Bytes > 0 { // what it counts for is found anew
		size, _ = formatSize(r.Bytes)
		add("share", size, true)
	}
	add("share", strconv.Itoa(int(r.Share)), r.Share != 0 && r.Bytes == 0)
	add("kind", quoteFlow(r.Kind), r.Kind != "")
	return "{" + strings.Join(fields, ", ") + "}"
}

func quoteGPU(s string) string {
	if plainText(s) && !strings.ContainsAny(s, ",[]{}") {
		return s
	}
	return doubleQuote(s)
}

func (w *writer) writeHosts(name string, hosts []string) {
	if len(hosts) == 0 {
		return
	}
	w.writeText(name, hostlist.CompressInOrder(hosts))
}

func (w *writer) writeProgram(s *job.Spec, script []byte) {
	if s.Program.Kind == job.Direct {
		a := s.Program.Args
		if len(a) == 3 && a[0] == "/bin/sh" && a[1] == "-c" && strings.TrimSpace(a[2]) != "" {
			w.writeText("command", a[2])
			return
		}
		w.writeTexts("command", a)
		return
	}
	w.writeTexts("args", s.Program.Args)
	w.writeText("script", string(script))
}
