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
	w.job(s)
	w.groups(s)
	w.program(s, script)
	return []byte(w.b.String()), missing(s, script, w.b.String())
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

// job writes what concerns the job as a whole.
func (w *writer) job(s *job.Spec) {
	w.text("name", s.Name)
	w.text("comment", s.Comment)
	w.text("account", s.Account)
	w.text("qos", s.QOS)
	w.text("pool", s.Pool)
	w.list("partition", s.Partitions)
	w.text("reservation", s.Reservation)
	w.text("licenses", s.Licenses)
	w.raw("time", s.TimeLimit > 0, formatDuration(s.TimeLimit))
	w.raw("time_min", s.TimeMin > 0, formatDuration(s.TimeMin))
	w.text("begin", when(s.Begin))
	w.text("deadline", when(s.Deadline))
	w.flag("hold", s.Held)
	w.raw("nice", s.Nice != 0, strconv.FormatInt(s.Nice, 10))
	w.raw("priority", s.Priority != 0, strconv.FormatInt(s.Priority, 10))
	if !s.Depends.IsZero() {
		text := s.Depends.Text
		if text == "" {
			text = s.Depends.String()
		}
		w.text("depends", text)
		if k := s.Depends.KillIfNever; k != nil {
			w.raw("depends_fail", true, strconv.FormatBool(*k))
		}
	}
	if a := s.Array; a != nil {
		w.text("array", arrayText(a))
	}
	w.flag("requeue", s.Requeue)
	if s.Signal != nil {
		w.text("signal", signalText(s.Signal))
	}
	w.mail(s.Mail)
	w.text("image", s.Image)
	w.pod(s.Pod)
	if s.WorkDir != "" && s.WorkDir != s.Source.Submit {
		w.text("workdir", s.WorkDir)
	}
	stdout := s.Output.Stdout
	if s.Program.Kind == job.Batch && (stdout == defaultOutput && s.Array == nil || stdout == defaultArrayOutput && s.Array != nil) {
		stdout = ""
	}
	w.text("output", stdout)
	w.text("error", s.Output.Stderr)
	w.text("input", s.Output.Stdin)
	w.flag("append", s.Output.Append)
	w.env(s)
	if kill := s.Program.Kind == job.Direct; s.KillOnBadExit != kill {
		w.raw("kill_on_bad_exit", true, strconv.FormatBool(s.KillOnBadExit))
	}
}

func when(t time.Time) string {
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

func (w *writer) mail(m *job.Mail) {
	if m == nil {
		return
	}
	types := make([]string, len(m.Types))
	for i, t := range m.Types {
		types[i] = strings.ToLower(t)
	}
	if m.To == "" {
		w.list("mail", types)
		return
	}
	w.open("mail")
	w.list("types", types)
	w.text("to", m.To)
	w.shut()
}

func (w *writer) env(s *job.Spec) {
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
		w.text("export", strings.ToLower(export))
	default:
		w.text("export", export)
	}
	if len(names) == 0 {
		return
	}
	w.open("env")
	for _, n := range names {
		w.keyed(n, quote(values[n]))
	}
	w.shut()
}

// groups writes the task groups, flat if there is one without a name.
func (w *writer) groups(s *job.Spec) {
	w.closely("together", s.Within, s.Wish)
	if len(s.Groups) == 1 && s.Groups[0].Name == "" {
		w.group(&s.Groups[0])
		return
	}
	if len(s.Groups) == 0 {
		return
	}
	w.open("groups")
	for i := range s.Groups {
		w.item()
		before := w.b.Len()
		w.text("name", s.Groups[i].Name)
		w.group(&s.Groups[i])
		if w.b.Len() == before { // a group that asks for nothing
			w.raw("tasks_per_node", true, "1")
		}
		w.shut()
	}
	w.shut()
}

func (w *writer) group(g *job.TaskGroup) {
	nodes := strconv.Itoa(g.Nodes.Min)
	switch {
	case g.Nodes.Max == 0:
		nodes += "-"
	case g.Nodes.Max != g.Nodes.Min:
		nodes += "-" + strconv.Itoa(g.Nodes.Max)
	}
	if len(g.NodeList) == 0 || g.Nodes != (job.Range{Min: len(g.NodeList)}) {
		w.raw("nodes", g.Nodes != job.Range{}, nodes)
	}
	w.raw("tasks", g.Tasks.Want != 0, strconv.Itoa(g.Tasks.Want))
	w.raw("elastic", g.Elastic, "true")
	w.raw("subgroup", g.Subgroup != 0, strconv.Itoa(g.Subgroup))
	w.raw("min_tasks", g.Tasks.Min != 0, strconv.Itoa(g.Tasks.Min))
	w.raw("tasks_per_node", g.TasksPerNode != 0, strconv.Itoa(g.TasksPerNode))
	c := claimOf(g)
	w.devices("gpus", c.total, len(c.node)+len(c.task) == 0)
	w.devices("gpus_per_node", c.node, len(c.total)+len(c.task) == 0)
	w.devices("gpus_per_task", c.task, len(c.total)+len(c.node) == 0)
	w.list("gpu_types", g.Wishes.GPUs)
	w.raw("gpu_types_for", g.Wishes.GPUsFor > 0, patience(g.Wishes.GPUsFor))
	w.raw("cpus", g.CPUsPerTask > 0 && !c.fullCPUs, strconv.Itoa(g.CPUsPerTask))
	w.raw("cpus", c.fraction, resource.FormatCPU(g.PerTask.CPU))
	w.raw("cpus_per_gpu", c.gpuCPU, resource.FormatCPU(g.PerDevice.CPU))
	if g.AllMemory {
		w.raw("memory", true, "all")
	} else {
		w.size("memory", g.PerNode.Memory, c.memory == "memory")
	}
	w.size("memory_per_task", g.PerTask.Memory, c.memory == "memory_per_task")
	w.size("memory_per_gpu", g.PerDevice.Memory, c.memory == "memory_per_gpu")
	w.size("disk", g.PerNode.Disk, g.PerNode.Disk > 0)
	w.amounts("per_node", c.left[perNode])
	w.amounts("per_task", c.left[perTask])
	w.amounts("per_gpu", c.left[perGPU])
	w.amounts("total", c.left[total])
	w.flag("exclusive", g.Exclusive)
	w.flag("overcommit", g.Overcommit)
	w.text("constraint", g.Constraint.Text)
	w.hosts("nodelist", g.NodeList)
	w.hosts("exclude", g.Exclude)
	w.flag("contiguous", g.Contiguous)
	w.closely("within", g.Within, g.Wishes.Within)
	if s := g.Wishes.Switches; s.N > 0 {
		w.raw("switches", true, strconv.Itoa(s.N))
		w.raw("switches_for", true, patience(s.For))
	} else {
		w.raw("switches", g.Switches > 0, strconv.Itoa(g.Switches))
	}
	w.flag("spread", g.Spread)
	w.flag("few_nodes", g.FewNodes)
	w.raw("segment", g.Segment > 1, strconv.Itoa(g.Segment))
	w.text("distribution", g.Distribution)
}

// closely writes a level that is asked for, or wished for.
func (w *writer) closely(name string, level int, wish job.Wish) {
	if wish.N != 0 {
		w.raw(name, true, w.levelText(wish.N))
		w.raw(name+"_for", true, patience(wish.For))
		return
	}
	w.raw(name, level != 0, w.levelText(level))
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

// patience writes how long something is insisted on.
func patience(d time.Duration) string {
	switch {
	case d == job.SiteWait:
		return "site"
	case d == 0:
		return "0s"
	}
	return formatDuration(d)
}

func (w *writer) size(name string, a resource.Amount, write bool) {
	if text, ok := formatSize(a); write && ok {
		w.raw(name, true, text)
	}
}

func (w *writer) amounts(name string, a wanted) {
	if a.need.IsZero() && !a.zero {
		return
	}
	w.open(name)
	w.raw("cpus", a.need.CPU != 0 || a.zero, resource.FormatCPU(a.need.CPU))
	w.size("memory", a.need.Memory, a.need.Memory > 0)
	w.size("disk", a.need.Disk, a.need.Disk > 0)
	if len(a.need.Named) > 0 {
		w.open("resources")
		for _, n := range a.need.Named {
			w.keyed(n.Name, strconv.FormatInt(int64(n.Amount), 10))
		}
		w.shut()
	}
	w.devices("gpus", a.need.Devices, true)
	w.shut()
}

// devices writes a field of GPUs: short where that says all.
func (w *writer) devices(name string, list []resource.DeviceRequest, write bool) {
	if len(list) == 0 || !write {
		return
	}
	var parts []string
	for _, r := range list {
		parts = append(parts, gpuText(r))
	}
	if len(parts) == 1 {
		w.raw(name, true, parts[0])
		return
	}
	w.raw(name, true, "["+strings.Join(parts, ", ")+"]")
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
	if err == nil && len(list) == 1 && request(list[0]) == r && !strings.ContainsAny(kind, ", ") {
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
	return double(s)
}

func (w *writer) hosts(name string, hosts []string) {
	if len(hosts) == 0 {
		return
	}
	w.text(name, hostlist.CompressInOrder(hosts))
}

func (w *writer) program(s *job.Spec, script []byte) {
	if s.Program.Kind == job.Direct {
		a := s.Program.Args
		if len(a) == 3 && a[0] == "/bin/sh" && a[1] == "-c" && strings.TrimSpace(a[2]) != "" {
			w.text("command", a[2])
			return
		}
		w.texts("command", a)
		return
	}
	w.texts("args", s.Program.Args)
	w.text("script", string(script))
}
