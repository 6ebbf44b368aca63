package slurmtest

import (
	"cmp"
	"fmt"
	"maps"
	"os/user"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// fields are what scontrol shows of a job, or of a component of one.
type fields map[string]string

// hold submits a script held and returns what scontrol shows of each component.
func (l *lab) hold(t *testing.T, script string, args ...string) ([]fields, result) {
	t.Helper()
	command := append([]string{"--hold", "--parsable"}, args...)
	for i, a := range args {
		if a == ":" { // each component has options of its own
			command = append(append([]string{"--hold", "--parsable"}, args[:i+1]...), append([]string{"--hold"}, args[i+1:]...)...)
		}
	}
	r := l.run(t, "sbatch", append(command, l.write(t, script))...)
	if r.code != 0 {
		return nil, r
	}
	id := strings.TrimSpace(r.stdout)
	shown := l.run(t, "scontrol", "show", "job", id)
	l.cancelHeld(t, id)
	var out []fields
	for record := range strings.SplitSeq(strings.TrimSpace(shown.stdout), "\n\n") {
		out = append(out, readFields(record))
	}
	return out, r
}

var (
	field = regexp.MustCompile(`(?:^| )([A-Z][A-Za-z:/]*)=`)
	whole = []string{"JobName", "Comment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut"} // their values may have blanks
)

// readFields reads a record of scontrol: lines of NAME=value NAME=value.
func readFields(record string) fields {
	f := fields{}
	for line := range strings.Lines(record) {
		line = strings.TrimSpace(line)
		at := field.FindAllStringSubmatchIndex(line, -1)
		for i, m := range at {
			name, end := line[m[2]:m[3]], len(line)
			if i+1 < len(at) && !slices.Contains(whole, name) {
				end = at[i+1][0]
			}
			f[name] = line[m[1]:end]
			if end == len(line) {
				break
			}
		}
	}
	return f
}

// expected are the fields that a component of a job should show.
func (l *lab) expected(t *testing.T, s *job.Spec, g job.TaskGroup, got fields) fields {
	t.Helper()
	f := fields{
		"JobName": s.Name, "TimeLimit": limit(s.TimeLimit, "UNLIMITED"), "TimeMin": limit(s.TimeMin, "N/A"),
		"Partition": cmp.Or(strings.Join(s.Partitions, ","), "main"), "Account": strings.ToLower(null(s.Account)),
		"Comment": s.Comment, "Nice": fmt.Sprint(s.Nice), "Requeue": flagOf(s.Requeue),
		"ReqNodeList": null(hostlist.Compress(g.NodeList)), "ExcNodeList": null(hostlist.Compress(g.Exclude)),
		"Features": strings.ReplaceAll(null(g.Constraint.Text), ",", "&"), "Contiguous": flagOf(g.Contiguous), "Licenses": null(s.Licenses),
		"WorkDir": path.Clean(s.WorkDir), "MinTmpDiskNode": mebibytes(g.PerNode.Disk), "CPUs/Task": fmt.Sprint(max(g.CPUsPerTask, g.PerTask.DeviceCount()*int(g.PerDevice.CPU/resource.OneCPU), 1)),
		"Command": path.Join(l.dir, "job.sbatch"), "Dependency": null(dependency(s.Depends)),
	}
	if g.Exclusive {
		f["OverSubscribe"] = map[string]string{"": "NO", "user": "USER", "mcs": "MCS"}[s.Source.Given["exclusive"]]
	}
	if s.Begin.After(time.Now()) {
		f["EligibleTime"] = begins(s.Begin, got["EligibleTime"])
	}
	f["Deadline"] = "N/A"
	if !s.Deadline.IsZero() {
		f["Deadline"] = begins(s.Deadline, got["Deadline"])
	}
	mail(t, f, s.Mail)
	l.files(t, f, s, got)
	counts(f, g)
	memory(f, g)
	generic(f, g)
	if s.Array != nil {
		f["ArrayTaskId"] = indices(s.Array.Indices, s.Array.MaxRunning)
	}
	return f
}

// begins prints a begin time; one relative to now may be some seconds off.
func begins(at time.Time, shown string) string {
	const form = "2006-01-02T15:04:05"
	if other, err := time.Parse(form, shown); err == nil && at.Sub(other).Abs() < 10*time.Second {
		return shown
	}
	return at.UTC().Format(form)
}

func null(s string) string { return cmp.Or(s, "(null)") }

// dependency spells a dependency out as scontrol does: "afterok:1:2" is
// "afterok:1,afterok:2", "5" is "afterany:5".
func dependency(d job.Dependency) string {
	var out []string
	for _, c := range d.Clauses {
		if len(c.Jobs) == 0 && !slices.Contains(out, string(c.Kind)) { // scontrol shows singleton once
			out = append(out, string(c.Kind))
		}
		for _, j := range c.Jobs {
			text := fmt.Sprintf("%s:%s", c.Kind, j)
			if c.Delay > 0 {
				text += fmt.Sprintf("+%d", int(c.Delay.Minutes()))
			}
			out = append(out, text)
		}
	}
	if d.Any {
		return strings.Join(out, "?")
	}
	return strings.Join(out, ",")
}

// dropSatisfied is a dependency as scontrol shows it once slurmctld has looked at the
// job. Where no other job has its name, singleton is satisfied at once, and so is
// afterany of a job that has ended or is not there: slurmctld removes them from a list
// that needs all, and empties a list that needs one. Whether scontrol asks before or
// after that depends on the machine's speed.
func dropSatisfied(shown string) string {
	satisfied := func(clause string) bool {
		return clause == "singleton" || strings.HasPrefix(clause, "afterany:")
	}
	if any := strings.Split(shown, "?"); len(any) > 1 && slices.ContainsFunc(any, satisfied) {
		return "(null)"
	}
	return null(strings.Join(slices.DeleteFunc(strings.Split(shown, ","), satisfied), ","))
}

// A satisfied clause may be gone; every other one has to be shown.
func TestDropSatisfied(t *testing.T) {
	for shown, want := range map[string]string{
		"singleton": "(null)", "singleton?afterok:1": "(null)", "singleton,afterok:1": "afterok:1", "afterany:5": "(null)",
		"afterok:1": "afterok:1", "afterok:1?afternotok:2": "afterok:1?afternotok:2", "afterany:1,afterok:2": "afterok:2", "(null)": "(null)",
	} {
		if got := dropSatisfied(shown); got != want {
			t.Errorf("%q becomes %q, want %q", shown, got, want)
		}
	}
}

// mail fills who is told of what; scontrol shows it only where somebody is.
func mail(t *testing.T, f fields, m *job.Mail) {
	t.Helper()
	f["MailType"], f["MailUser"] = "", ""
	if m == nil {
		return
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	f["MailType"], f["MailUser"] = sorted(slices.Clone(m.Types)), cmp.Or(m.To, me.Username)
}

func flagOf(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func limit(d time.Duration, none string) string {
	if d == 0 {
		return none
	}
	return slurmfmt.FormatTimeLimit(d)
}

// files expands the names of output files as for the job that Slurm numbered.
func (l *lab) files(t *testing.T, f fields, s *job.Spec, got fields) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := strconv.ParseUint(got["JobId"], 10, 64)
	names := slurmfmt.Names{Job: id, Task: slurmfmt.NotArray, JobName: s.Name, User: me.Username, Step: "batch"}
	expand := func(pattern string) string {
		name := slurmfmt.ExpandName(pattern, names)
		if !path.IsAbs(name) {
			name = s.WorkDir + "/" + name
		}
		return path.Clean(name)
	}
	for name, pattern := range map[string]string{
		"StdOut": s.Output.Stdout, "StdErr": cmp.Or(s.Output.Stderr, s.Output.Stdout), "StdIn": cmp.Or(s.Output.Stdin, "/dev/null"),
	} {
		if !atStart.MatchString(pattern) {
			f[name] = expand(pattern)
		}
	}
}

// atStart are patterns that Slurm replaces only when the job starts.
var atStart = regexp.MustCompile(`%([0-9]+|[JNnrSst])`)

// counts fills nodes and tasks. Where the number of nodes is left to Slurm,
// scontrol shows a guess until the job starts: it is not compared.
func counts(f fields, g job.TaskGroup) {
	nodes := max(g.Nodes.Min, 1)
	if g.TasksPerNode > 0 {
		nodes = max(nodes, (g.Tasks.Want+g.TasksPerNode-1)/g.TasksPerNode)
	}
	if g.Nodes.Max > 0 {
		f["NumNodes"] = fmt.Sprintf("%d-%d", nodes, g.Nodes.Max)
	}
	f["NumTasks"] = fmt.Sprint(cmp.Or(g.Tasks.Want, nodes*max(g.TasksPerNode, 1)))
	f["NtasksPerN:B:S:C"] = fmt.Sprint(g.TasksPerNode)
}

// memory fills the claim on memory, by node or by CPU.
func memory(f fields, g job.TaskGroup) {
	switch {
	case g.PerTask.Memory > 0 && g.PerTask.CPU > 0:
		f["MinMemoryCPU"] = mebibytes(g.PerTask.Memory / (g.PerTask.CPU / resource.OneCPU))
	case g.PerDevice.Memory > 0:
		f["MemPerTres"] = "gres:gpu:" + strings.TrimSuffix(mebibytes(g.PerDevice.Memory), " MiB")
	default:
		f["MinMemoryNode"] = mebibytes(g.PerNode.Memory)
	}
}

func mebibytes(a resource.Amount) string {
	return fmt.Sprintf("%d MiB", (a+resource.MiB-1)/resource.MiB)
}

// uniform brings what scontrol shows into the form of the expected fields.
func uniform(name, value string) string {
	switch {
	case strings.HasPrefix(name, "Std") || name == "WorkDir":
		return path.Clean(value)
	case strings.HasPrefix(name, "MinMemory") || name == "MinTmpDiskNode":
		scale := map[byte]float64{'K': 1. / 1024, 'M': 1, 'G': 1024, 'T': 1024 * 1024}
		if value == "" {
			return "none"
		}
		unit, ok := scale[value[len(value)-1]]
		n, err := strconv.ParseFloat(strings.TrimRight(value, "KMGT"), 64)
		if !ok {
			unit = 1
		}
		if err != nil {
			return value
		}
		return fmt.Sprintf("%.0f MiB", n*unit)
	case name == "NtasksPerN:B:S:C":
		perNode, _, _ := strings.Cut(value, ":") // per board, socket and core they are not counted here
		return perNode
	case name == "Account":
		return null(value)
	case name == "MailType":
		return sorted(strings.Split(value, ","))
	case name == "Dependency":
		return strings.ReplaceAll(value, "(unfulfilled)", "")
	case name == "Features":
		return strings.ReplaceAll(value, ",", "&")
	case name == "ArrayTaskId":
		if a, err := slurmfmt.ParseArray(value, maxArray); err == nil {
			return indices(a.Indices(), a.MaxRunning)
		}
	case strings.HasPrefix(name, "TresPer"):
		var parts []string
		for part := range strings.SplitSeq(value, ",") {
			if !counted.MatchString(part) {
				part += ":1"
			}
			part = zeros.ReplaceAllString(part, ":$1")
			if !slices.Contains(parts, part) { // 22.05 shows --gres=gpu:8 --gpus-per-node=8 as both
				parts = append(parts, part)
			}
		}
		return sorted(parts)
	}
	return value
}

var (
	counted = regexp.MustCompile(`:[0-9]+$`)
	zeros   = regexp.MustCompile(`:0+([0-9]+)$`)
)

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, ",")
}

func indices(list []uint32, most uint32) string { return fmt.Sprintf("%v at most %d", list, most) }

// generic fills the claim on GPUs and other generic resources.
func generic(f fields, g job.TaskGroup) {
	for name, claim := range map[string]resource.Requirements{
		"TresPerNode": g.PerNode, "TresPerTask": g.PerTask, "TresPerJob": g.Total,
	} {
		var parts []string
		for _, d := range claim.Devices {
			part := "gres:gpu:"
			if d.Type != "" {
				part += d.Type + ":"
			}
			parts = append(parts, part+fmt.Sprint(d.Count))
		}
		for _, n := range claim.Named {
			parts = append(parts, fmt.Sprintf("%s:%d", strings.Replace(n.Name, "/", ":", 1), n.Amount))
		}
		if len(parts) > 0 {
			f[name] = sorted(parts)
		}
	}
}

// What sbatch makes of the public scripts, held in a real queue, is what Coxswain
// makes of them.
func TestScontrolShowsTheSame(t *testing.T) {
	l := openLab(t)
	headers := readHeaders(t)
	l.reserve(t, headers)
	jobs, compared := 0, 0
	for _, h := range sample(headers, 120) {
		text := h.script()
		s, refusals := l.parse(text, false)
		if _, waits := cmp.Or(s, &job.Spec{}).Source.Given["wait"]; len(refusals) > 0 || waits {
			continue // with --wait sbatch would stay until the job ends
		}
		got, r := l.hold(t, text)
		if r.code != 0 { // TestSbatchTakesTheSame says whether that is right
			continue
		}
		jobs++
		n, diff := l.compare(t, s, got)
		compared += n
		for _, d := range diff {
			t.Errorf("%s: %s\n%s", h.Source, d, strings.Join(h.Lines, "\n"))
		}
	}
	t.Logf("%d jobs, %d fields compared", jobs, compared)
	if jobs < 60 {
		t.Error("too few")
	}
}

// compare lists the fields in which the job differs from what scontrol shows of its
// components, and says how many it looked at.
func (l *lab) compare(t *testing.T, s *job.Spec, got []fields) (compared int, diff []string) {
	t.Helper()
	if len(got) != len(s.Groups) {
		return 1, []string{fmt.Sprintf("%d components, scontrol shows %d", len(s.Groups), len(got))}
	}
	for i := range got {
		want := l.expected(t, s, s.Groups[i], got[i])
		if i > 0 { // what holds for the job as a whole is taken from the first component here, with a warning
			for _, name := range []string{"JobName", "Partition", "StdOut", "StdErr", "StdIn", "MailType", "MailUser"} {
				delete(want, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			compared++
			got := uniform(name, got[i][name])
			if name == "Dependency" && got == dropSatisfied(want[name]) {
				continue
			}
			if got != want[name] {
				diff = append(diff, fmt.Sprintf("%s is %q, scontrol shows %q", name, want[name], got))
			}
		}
	}
	return compared, diff
}
