package native

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// Specifications as front ends make them.

var word = rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9_.-]{0,8}`)

// anyText is text of one line that a user may write, wanted or not.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(word, rapid.StringMatching(`[ -~äß\t'"#:,{}%&*!|>?-]{1,12}`), rapid.SampledFrom([]string{
		"yes", "null", "~", "1", "1.5", "0x1f", "true", "- a", "a: b", "# a", "a #b", " a", "a ", "[a", "%x-%j.out", "$HOME/a", "é", "2026-01-01", "a\\b",
	})).Filter(func(s string) bool { return strings.TrimSpace(s) != "" && !strings.EqualFold(s, "none") })
}

func maybe(t *rapid.T, name string, g *rapid.Generator[string]) string {
	if rapid.Bool().Draw(t, name+"?") {
		return g.Draw(t, name)
	}
	return ""
}

func size(t *rapid.T, name string) resource.Amount {
	if rapid.Bool().Draw(t, name+"?") {
		return resource.Amount(rapid.Int64Range(1, 1<<40).Draw(t, name))
	}
	return resource.Amount(rapid.IntRange(0, 64).Draw(t, name)) * resource.GiB
}

func vector(t *rapid.T, name string) resource.Vector {
	v := resource.Vector{CPU: resource.Amount(rapid.SampledFrom([]int{0, 0, 1000, 2500, 4000, 1}).Draw(t, name+" cpu")), Memory: size(t, name+" memory")}
	if rapid.IntRange(0, 4).Draw(t, name+" more") == 0 {
		v.Disk = size(t, name+" disk")
		v = v.With(anyText().Draw(t, name+" resource"), resource.Amount(rapid.IntRange(1, 9).Draw(t, "amount")))
	}
	return v
}

func devices(t *rapid.T, name string) []resource.DeviceRequest {
	var out []resource.DeviceRequest
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, name+" devices") {
		r := resource.DeviceRequest{Count: rapid.IntRange(1, 16).Draw(t, "count")}
		switch rapid.IntRange(0, 4).Draw(t, "kind of device") {
		case 0:
			r.Type = "h100"
		case 1:
			r.Type, r.Profile = "a100", "1g.5gb"
		case 2:
			if rapid.Bool().Draw(t, "by memory") {
				r.Bytes = resource.Amount(rapid.IntRange(1, 1<<20).Draw(t, "KiB")) * resource.KiB
				break
			}
			r.Type, r.Share, r.Memory = maybe(t, "type", anyText()), resource.Share(rapid.IntRange(1, 1000).Draw(t, "share")), size(t, "vram")
		case 3:
			r.Kind, r.Profile = maybe(t, "kind", anyText()), maybe(t, "profile", anyText())
		}
		out = append(out, r)
	}
	return out
}

func group(t *rapid.T) job.TaskGroup {
	g := job.TaskGroup{
		Tasks: job.Count{Want: rapid.IntRange(0, 64).Draw(t, "tasks")}, TasksPerNode: rapid.SampledFrom([]int{0, 64}).Draw(t, "tasks per node"),
		PerNode: resource.Requirements{Vector: vector(t, "per node"), Devices: devices(t, "per node")},
		PerTask: resource.Requirements{Vector: vector(t, "per task"), Devices: devices(t, "per task")},
		Total:   resource.Requirements{Vector: vector(t, "total"), Devices: devices(t, "total")},

		Exclusive: rapid.Bool().Draw(t, "exclusive"), Contiguous: rapid.Bool().Draw(t, "contiguous"), Overcommit: rapid.IntRange(0, 4).Draw(t, "overcommit") == 0,
		Distribution: rapid.SampledFrom([]string{"", "block", "cyclic", "plane=3"}).Draw(t, "distribution"),
	}
	if g.Tasks.Want > 0 && rapid.Bool().Draw(t, "elastic") {
		g.Tasks.Min = rapid.IntRange(1, g.Tasks.Want).Draw(t, "min tasks")
	}
	if rapid.Bool().Draw(t, "nodes?") {
		most := 64
		if g.Tasks.Want > 0 {
			most = g.Tasks.Want
		}
		g.Nodes.Min = rapid.IntRange(1, most).Draw(t, "nodes")
		if rapid.Bool().Draw(t, "bounded") {
			g.Nodes.Max = rapid.IntRange(g.Nodes.Min, most).Draw(t, "max nodes")
		}
	} else if rapid.IntRange(0, 3).Draw(t, "named") == 0 && (g.Tasks.Want == 0 || g.Tasks.Want > 2) {
		g.NodeList, g.Nodes.Min = []string{"gpu1", "gpu2", "login"}, 3
	}
	if rapid.IntRange(0, 3).Draw(t, "excluded") == 0 {
		g.Exclude = []string{"x1", "x3"}
	}
	g.Within = rapid.SampledFrom([]int{0, 0, job.InLeaf, 1, 3}).Draw(t, "within")
	if n := g.Nodes.Min; n > 1 && n == g.Nodes.Max && !g.Contiguous && len(g.NodeList) == 0 && rapid.Bool().Draw(t, "segments") {
		g.Segment = n
	}
	wait := func() time.Duration {
		return rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "patience")
	}
	if g.Within != 0 && rapid.Bool().Draw(t, "wish within") {
		g.Wishes.Within, g.Within = job.Wish{N: g.Within, For: wait()}, 0
	}
	switch rapid.IntRange(0, 5).Draw(t, "leaves") {
	case 0:
		g.Switches = 2
	case 1:
		g.Wishes.Switches = job.Wish{N: 1, For: wait()}
	case 2:
		g.Wishes.Switches = job.Wish{N: 1, For: job.SiteWait}
	case 3:
		g.Spread = g.Segment == 0 && !g.Contiguous
	case 4:
		g.FewNodes = true
	}
	if rapid.IntRange(0, 3).Draw(t, "by type") == 0 {
		g.PerNode.Devices, g.PerTask.Devices, g.Total.Devices = []resource.DeviceRequest{{Count: 2}}, nil, nil
		g.Wishes.GPUs, g.Wishes.GPUsFor = []string{"h100", "a100"}, wait()
	}
	if g.PerNode.DeviceCount()+g.PerTask.DeviceCount()+g.Total.DeviceCount() > 0 && rapid.Bool().Draw(t, "per gpu?") {
		g.PerDevice = vector(t, "per gpu")
	}
	if cpus := rapid.IntRange(0, 3).Draw(t, "cpus"); cpus > 0 && g.PerDevice.CPU == 0 && !g.Overcommit {
		g.CPUsPerTask, g.PerTask.CPU = cpus, resource.CPUs(cpus)
	}
	if c := maybe(t, "constraint", rapid.SampledFrom([]string{"a", "a&b", "a|b", "[a|b]", "(a|b)&c"})); c != "" {
		g.Constraint, _ = sbatch.ParseConstraint(c)
	}
	if g.PerNode.Memory == 0 {
		g.AllMemory = rapid.IntRange(0, 3).Draw(t, "all memory") == 0
	}
	return g
}

func specification(t *rapid.T) (*job.Spec, []byte) {
	text := func(name string) string { return maybe(t, name, anyText()) }
	s := &job.Spec{
		Name: anyText().Draw(t, "name"), Account: text("account"), QOS: text("qos"), Comment: text("comment"), Reservation: text("reservation"), Image: text("image"),
		Held: rapid.Bool().Draw(t, "held"), Requeue: rapid.Bool().Draw(t, "requeue"),
		Nice: rapid.Int64Range(-maxNice, maxNice).Draw(t, "nice"), Priority: rapid.Int64Range(0, maxPriority).Draw(t, "priority"),
		TimeLimit:  time.Duration(rapid.IntRange(0, 400000).Draw(t, "limit")) * time.Second,
		Partitions: rapid.SliceOfN(word, 0, 2).Draw(t, "partitions"), Licenses: maybe(t, "licenses", rapid.StringMatching(`[a-z]{1,4}:[1-9](,[a-z]{1,4}){0,2}`)),
		WorkDir: "/home/ada", Source: job.Source{Submit: "/home/ada", File: "job.yaml"},
		Output: job.Output{Stdout: text("stdout"), Stderr: text("stderr"), Stdin: text("stdin"), Append: rapid.Bool().Draw(t, "append")},
	}
	if len(s.Partitions) == 0 {
		s.Partitions = nil
	}
	s.TimeMin = min(time.Duration(rapid.IntRange(0, 400000).Draw(t, "least"))*time.Second, s.TimeLimit)
	if rapid.Bool().Draw(t, "when") {
		s.Begin = now.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "begin")) * time.Second)
		s.Deadline = now.Add(time.Duration(rapid.IntRange(1, 1e6).Draw(t, "deadline")) * time.Second)
	}
	if text := maybe(t, "depends", rapid.SampledFrom([]string{"afterok:7", "singleton", "after:7+10,afterany:9_3", "afterok:1?afternotok:2"})); text != "" {
		s.Depends, _ = sbatch.ParseDependency(text)
		if rapid.Bool().Draw(t, "kill?") {
			kill := rapid.Bool().Draw(t, "kill")
			s.Depends.KillIfNever = &kill
		}
	}
	if rapid.Bool().Draw(t, "signal?") {
		s.Signal = &job.SignalSpec{Signal: rapid.IntRange(1, 64).Draw(t, "signal"), Before: time.Duration(rapid.IntRange(0, 60000).Draw(t, "before")) * time.Second, BatchOnly: rapid.Bool().Draw(t, "batch only")}
	}
	if rapid.Bool().Draw(t, "retries?") {
		on := rapid.SliceOfNDistinct(rapid.SampledFrom(append(job.RetryWords(), "1", "75", "255")), 0, 3, rapid.ID).Draw(t, "on")
		s.Retries = &job.Retries{
			Count:   rapid.IntRange(1, job.MaxRetries).Draw(t, "count"),
			Backoff: time.Duration(rapid.IntRange(0, int(job.MaxRetryBackoff/time.Second)).Draw(t, "backoff")) * time.Second,
			On:      append([]string(nil), on...),
		}
	}
	if rapid.Bool().Draw(t, "mail?") {
		s.Mail = &job.Mail{Types: mailTypes[rapid.IntRange(0, 4).Draw(t, "from"):rapid.IntRange(5, 11).Draw(t, "to")], To: text("address")}
	}
	if rapid.Bool().Draw(t, "notify?") {
		s.Notify = &job.Notify{Webhook: "https://example.org/" + rapid.StringMatching(`[a-z0-9#?&=~]{0,9}`).Draw(t, "webhook"), On: job.NotifyEvents[rapid.IntRange(0, 1).Draw(t, "first event"):]}
	}
	if rapid.Bool().Draw(t, "pod?") {
		s.Pod = &job.Pod{
			SharedMemory: 1 << rapid.IntRange(0, 40).Draw(t, "shm"), HostNetwork: rapid.Bool().Draw(t, "host network"), LockMemory: rapid.Bool().Draw(t, "lock"),
			ServiceAccount: text("service account"), RuntimeClass: text("runtime class"), PriorityClass: text("priority class"),
			Labels: map[string]string{"a.b/c": rapid.OneOf(anyText(), rapid.Just("")).Draw(t, "label")}, Tolerations: rapid.SliceOfN(word, 1, 2).Draw(t, "tolerations"),
		}
	}
	s.Env.Export = rapid.SampledFrom([]string{"", "ALL", "NONE", "NIL", "PATH,HOME"}).Draw(t, "export")
	for i, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z_][A-Z0-9_.()-]{0,6}`), 0, 3, rapid.ID[string]).Draw(t, "env") {
		s.Env.Set = append(s.Env.Set, name+"="+rapid.OneOf(anyText(), rapid.Just(""), rapid.StringMatching(`[a-z =\n"]{0,9}`)).Draw(t, "value"))
		_ = i
	}
	count := rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "groups")
	for i := range count {
		g := group(t)
		if count > 1 && rapid.Bool().Draw(t, "named group") {
			g.Name = "g" + string(rune('a'+i))
		}
		s.Groups = append(s.Groups, g)
	}
	if count == 1 && rapid.Bool().Draw(t, "array?") {
		a, _ := slurmfmt.ParseArray("0-9:3%2", 100)
		s.Array = &job.ArraySpec{Text: "0-9:3%2", Indices: a.Indices(), MaxRunning: 2, Step: 3}
	}
	return program(t, s)
}

func program(t *rapid.T, s *job.Spec) (*job.Spec, []byte) {
	switch rapid.IntRange(0, 2).Draw(t, "program") {
	case 0:
		s.Program = job.Program{Kind: job.Direct, Args: []string{"/bin/sh", "-c", anyText().Draw(t, "command")}}
	case 1:
		s.Program = job.Program{Kind: job.Direct, Args: append([]string{word.Draw(t, "program")}, rapid.SliceOfN(rapid.OneOf(anyText(), rapid.Just("")), 0, 3).Draw(t, "arguments")...)}
	default:
		s.Program = job.Program{Kind: job.Batch, ScriptName: "job.yaml", Args: rapid.SliceOfN(anyText(), 0, 2).Draw(t, "arguments")}
		if len(s.Program.Args) == 0 {
			s.Program.Args = nil
		}
		if s.Output.Stdout == "" {
			s.Output.Stdout = map[bool]string{true: defaultArrayOutput, false: defaultOutput}[s.Array != nil]
		}
		body := rapid.StringOf(rapid.SampledFrom([]rune("ab \t\n\n#:'\"\\|é-€"))).Draw(t, "script")
		return s, []byte("#!/bin/sh\n" + body)
	}
	s.KillOnBadExit = rapid.Bool().Draw(t, "kill on bad exit")
	return s, nil
}

// TestParseOfRenderIsTheSame: whatever front ends can ask for, this form can say.
func TestParseOfRenderIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, script := specification(t)
		out, warnings := Render(s, script)
		opts := Options{Dir: "/home/ada", Now: now, Mail: true}
		back, again, _, err := Parse(spec.Source{Name: "job.yaml", Data: out}, opts)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(warnings) > 0 {
			t.Fatalf("%v\n%s", warnings, out)
		}
		back.Source = s.Source
		if diff := cmp.Diff(s, back, cmp.Transformer("utc", func(t time.Time) string { return t.UTC().String() })); diff != "" {
			t.Fatalf("%s\n%s", diff, out)
		}
		if string(script) != string(again) {
			t.Fatalf("script %q became %q in\n%s", script, again, out)
		}
	})
}

// TestRenderReads well: the common cases are what a person would write.
func TestRenderReadsWell(t *testing.T) {
	for _, text := range []string{
		"name: train\ntime: 4h\ngpus: 2\ncommand: torchrun --nproc-per-node 2 train.py\n",
		"name: mpi\naccount: cfd\ntime: 1d12h\noutput: \"%x-%j.out\"\nnodes: 4\ntasks_per_node: 32\nmemory: all\nexclusive: true\nscript: |\n  #!/bin/bash\n  module load openmpi\n\n  srun ./solver --in \"$1\"\n",
		"name: sweep\ntime: 30m\narray: 0-15%4\nenv:\n  MODE: fast\n  PORT: \"8080\"\ngpus_per_task: a100:1\ncpus: 8\nmemory_per_task: 16G\ncommand: [python3, sweep.py, --fast]\n",
		"name: het\ntime: 2h\ngroups:\n  - name: data\n    cpus: 2\n  - name: workers\n    nodes: 2\n    tasks_per_node: 1\n    gpus_per_node: h100:8\nscript: |\n  #!/bin/bash\n  srun --het-group=0,1 hostname\n",
	} {
		s, script := parse(t, text)
		out, warnings := Render(s, []byte(script))
		if string(out) != text || len(warnings) > 0 {
			t.Errorf("%v\n%s", warnings, cmp.Diff(text, string(out)))
		}
	}
}

func TestRenderSaysWhatItCannot(t *testing.T) {
	s, _ := parse(t, "command: a\n")
	s.Groups[0].CPUsPerTask = 3 // not what is claimed
	s.Env.Set = []string{"A=1", "A=2"}
	_, warnings := Render(s, nil)
	var names []string
	for _, w := range warnings {
		names = append(names, w.Option)
	}
	if diff := cmp.Diff([]string{"env.set[0]", "env.set[1]", "groups[0].cpus_per_task"}, names); diff != "" {
		t.Errorf("%v\n%s", warnings, diff)
	}
}
