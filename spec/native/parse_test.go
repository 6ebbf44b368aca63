package native

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var update = flag.Bool("update", false, "write golden files, docs/reference/native.md and docs/reference/native.schema.json anew")

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{Owner: job.Owner{User: "ada", UID: 1000, GID: 1000}, Host: "login1", Dir: "/home/ada", Now: now, Mail: true}
}

func parse(t *testing.T, text string) (*job.Spec, string) {
	t.Helper()
	s, script, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s, string(script)
}

// golden compares with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it)\n%s", path, diff)
	}
}

func TestTheShortestTrainingJob(t *testing.T) {
	s, script := parse(t, "name: train\ngpus: 2\ntime: 4h\ncommand: torchrun --nproc-per-node 2 train.py\n")
	want := &job.Spec{
		Name: "train", Owner: job.Owner{User: "ada", UID: 1000, GID: 1000}, TimeLimit: 4 * time.Hour,
		Groups: []job.TaskGroup{{
			PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}},
			Total:   resource.Requirements{Devices: []resource.DeviceRequest{{Count: 2}}},
		}},
		Program: job.Program{Kind: job.Direct, Args: []string{"/bin/sh", "-c", "torchrun --nproc-per-node 2 train.py"}},
		WorkDir: "/home/ada", KillOnBadExit: true,
		Source: job.Source{
			Form: "native", File: "job.yaml", Host: "login1", Submit: "/home/ada", Lines: [2]int{1, 4},
			Given: map[string]string{"job-name": "train", "gpus": "2", "time": "04:00:00"},
		},
	}
	if diff := cmp.Diff(want, s); diff != "" || script != "" {
		t.Errorf("script %q\n%s", script, diff)
	}
}

func TestEveryField(t *testing.T) {
	data, err := os.ReadFile("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := yaml.Parse(spec.Source{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range topFields { // whoever adds a field adds it to the file
		switch f.name {
		case "groups", "command", "gpus", "gpus_per_task", "cpus_per_gpu", "memory_per_task", "memory_per_cpu", "memory_per_gpu", "per_node", "per_gpu", "kill_on_bad_exit", "launcher", "segment", "spread", "gpu_types", "gpu_types_for", "elastic", "subgroup":
			continue // exclude what is there
		}
		if d.Root.Get(f.name) == nil {
			t.Errorf("everything.yaml lacks %s", f.name)
		}
	}
	s, script := parse(t, string(data))
	no := true
	one := uint32(3)
	want := &job.Spec{
		Name: "everything", Comment: "a: b", Account: "nlp", QOS: "high", Pool: "slurm-b", Partitions: []string{"gpu", "gpu-large"}, Secrets: []job.Secret{{Name: "hf-token", Env: "HF_TOKEN"}, {Name: "wandb", Env: "WANDB_API_KEY"}, {Name: "key", File: "key.pem"}},
		Reservation: "maintenance",
		Owner:       s.Owner, Licenses: "matlab:2,abaqus", TimeLimit: 36 * time.Hour, TimeMin: 12*time.Hour + 30*time.Minute,
		Begin: time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC), Deadline: time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC),
		Nice: -5, Priority: 1000, Requeue: true, Rerun: job.RerunExcludeFailed, Retries: &job.Retries{Count: 2, Backoff: time.Minute, On: []string{"1", "75", "oom"}},
		Depends: job.Dependency{Text: "afterok:7:8_3,after:9+10,singleton", KillIfNever: &no, Clauses: []job.DependencyClause{
			{Kind: job.AfterOK, Jobs: []job.JobRef{{Job: 7}, {Job: 8, Task: &one}}},
			{Kind: job.After, Jobs: []job.JobRef{{Job: 9}}, Delay: 10 * time.Minute},
			{Kind: job.Singleton},
		}},
		Array:  &job.ArraySpec{Text: "0-9:3%2", Indices: []uint32{0, 3, 6, 9}, MaxRunning: 2, Step: 3},
		Signal: &job.SignalSpec{Signal: 10, Before: 2 * time.Minute, BatchOnly: true},
		Mail:   &job.Mail{Types: []string{"END", "FAIL"}, To: "me@example.org"},
		Notify: &job.Notify{Webhook: "https://hooks.example.org/x", On: []string{"end", "fail"}},
		Image:  "docker://pytorch/pytorch:latest", WorkDir: "/data/run",
		Container: &job.Container{
			Mounts:  []job.Mount{{Source: "/data", Target: "/data", Flags: []string{"ro"}}, {Source: "tmpfs", Target: "/scratch"}},
			WorkDir: "/work", Env: []string{"LANG", "PATH"}, Name: "base",
			Home: new(true), RemapRoot: new(false), Entrypoint: new(false), Writable: new(true),
		},
		Pod: &job.Pod{
			PerTask:      true,
			SharedMemory: 8 << 30, HostNetwork: true, LockMemory: true, ServiceAccount: "trainer", RuntimeClass: "nvidia", PriorityClass: "high",
			Labels: map[string]string{"team": "nlp"}, Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "sriov-a"}, NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations: []string{"spot", "gpu=h100:NoSchedule"},
		},
		Output: job.Output{Stdout: "%x-%A_%a.out", Stderr: "/dev/null", Stdin: "in.txt", Append: true},
		Env:    job.Environment{Export: "PATH,HOME", Set: []string{"PORT=8080", "MODE=no", "EMPTY=", "FLAG=true"}},
		Groups: []job.TaskGroup{{
			Nodes: job.Range{Min: 2, Max: 4}, Tasks: job.Count{Min: 8, Want: 16}, TasksPerNode: 8, CPUsPerTask: 4,
			PerNode: resource.Requirements{Vector: resource.Vector{Memory: 64 * resource.GiB, Disk: 100 * resource.GiB}, Devices: []resource.DeviceRequest{
				{Type: "h100", Count: 4}, {Type: "a100", Count: 1, Profile: "1g.10gb", Memory: 10 * resource.GiB},
			}},
			PerTask:   resource.Requirements{Vector: resource.Vector{CPU: 4 * resource.OneCPU, Named: []resource.Named{{Name: "gres/fpga", Amount: 1}}}},
			Total:     resource.Requirements{Vector: resource.Vector{Memory: resource.TiB}},
			Exclusive: true, Constraint: job.Constraint{Text: "[ib|roce]", Alternatives: [][]string{{"ib"}, {"roce"}}, Same: true},
			NodeList: []string{"gpu1", "gpu2", "gpu3"}, Exclude: []string{"gpu9", "gpu8"}, Contiguous: true, FewNodes: true, Distribution: "plane=4",
			Wishes: job.Wishes{Within: job.Wish{N: job.InLeaf}, Switches: job.Wish{N: 2, For: job.SiteWait}},
		}},
		Wish: job.Wish{N: -2, For: 10 * time.Minute}, Levels: []string{"block"},
		Program: job.Program{Kind: job.Batch, ScriptName: "job.yaml", Args: []string{"one", "2"}},
		Source:  s.Source,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if script != "#!/bin/sh\nsrun ./train \"$@\"\n" {
		t.Errorf("script %q", script)
	}
}

// refusedByReader are the files that are no YAML that is read: package spec/yaml
// words the messages.
var refusedByReader = map[string]string{
	"twice": "job.yaml:2:1: name is given twice", "bomb": "job.yaml:1:4: anchors (&) are not read", "indentation": "job.yaml:2:",
}

// TestBadFiles compares the messages about every file in testdata/bad.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, script, _, err := Parse(spec.Source{Name: "job.yaml", Data: data}, options())
		var e *spec.Error
		if !errors.As(err, &e) || s != nil || script != nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s is taken: %v", file, err)
			continue
		}
		if want, ofReader := refusedByReader[strings.TrimSuffix(filepath.Base(file), ".yaml")]; ofReader {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   func(s *job.Spec, script string) bool
	}{
		{"command: a", func(s *job.Spec, _ string) bool { return s.Name == "job" && s.Output.Stdout == "" && s.KillOnBadExit }},
		{"command: [a, b]", func(s *job.Spec, _ string) bool { return len(s.Program.Args) == 2 }},
		{"command: a\nkill_on_bad_exit: false", func(s *job.Spec, _ string) bool { return !s.KillOnBadExit }},
		{"script: a", func(s *job.Spec, x string) bool {
			return x == "#!/bin/bash\na" && s.Output.Stdout == "slurm-%j.out" && !s.KillOnBadExit && s.Program.ScriptName == "job.yaml"
		}},
		{"script: a\narray: 1-3", func(s *job.Spec, _ string) bool { return s.Output.Stdout == "slurm-%A_%a.out" }},
		{"command: a\nworkdir: sub", func(s *job.Spec, _ string) bool { return s.WorkDir == "/home/ada/sub" }},
		{"command: a\nmemory: all", func(s *job.Spec, _ string) bool {
			return s.Groups[0].AllMemory && s.Groups[0].PerNode.Memory == 0 && s.Source.Given["mem"] == "0"
		}},
		{"command: a\ncpus: 0.5", func(s *job.Spec, _ string) bool {
			return s.Groups[0].PerTask.CPU == 500 && s.Groups[0].CPUsPerTask == 0
		}},
		{"command: a\ngpus: 2\ncpus_per_gpu: 8", func(s *job.Spec, _ string) bool {
			return s.Groups[0].PerTask.CPU == 0 && s.Groups[0].PerDevice.CPU == 8000
		}},
		{"command: a\novercommit: true\ncpus: 4", func(s *job.Spec, _ string) bool {
			return s.Groups[0].PerTask.CPU == 0 && s.Groups[0].PerNode.CPU == 1000 && s.Groups[0].CPUsPerTask == 4
		}},
		{"command: a\ncpus: 4\nmemory_per_cpu: 1G", func(s *job.Spec, _ string) bool { return s.Groups[0].PerTask.Memory == 4*resource.GiB }},
		{"command: a\nnodelist: n[1-2]", func(s *job.Spec, _ string) bool { return s.Groups[0].Nodes == (job.Range{Min: 2}) }},
		{"command: a\nnodes: 2-", func(s *job.Spec, _ string) bool { return s.Groups[0].Nodes == (job.Range{Min: 2}) }},
		{"command: a\nnodes: 2\ntasks: 8", func(s *job.Spec, _ string) bool {
			return s.Source.Given["ntasks"] == "8" && s.Source.Given["nodes"] == "2"
		}},
		{"command: a\nmail: all", func(s *job.Spec, _ string) bool { return len(s.Mail.Types) == 6 }},
		{"command: a\ntime: 1.5h", func(s *job.Spec, _ string) bool { return s.TimeLimit == 90*time.Minute }},
		{"command: a\ntime: unlimited", func(s *job.Spec, _ string) bool { return s.TimeLimit == 0 }},
		{"command: a\ntime: 90s", func(s *job.Spec, _ string) bool { return s.TimeLimit == 90*time.Second }},
		{"command: a\ntime: 1-12", func(s *job.Spec, _ string) bool { return s.TimeLimit == 36*time.Hour }},
		{"command: a\nexport: none", func(s *job.Spec, _ string) bool { return s.Env.Export == "NONE" }},
		{"command: a\nname: 007", func(s *job.Spec, _ string) bool { return s.Name == "007" }},
		{"command: a\ndepends: afterok:1?afterok:2", func(s *job.Spec, _ string) bool { return s.Depends.Any && len(s.Depends.Clauses) == 2 }},
		{"command: a\nmemory: 1.5G", func(s *job.Spec, _ string) bool { return s.Groups[0].PerNode.Memory == 1536*resource.MiB }},
	} {
		name := "-"
		if strings.HasPrefix(c.text, "script") {
			name = "d/job.yaml"
		}
		s, script, _, err := Parse(spec.Source{Name: name, Data: []byte(c.text)}, options())
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if !c.ok(s, string(script)) {
			t.Errorf("%q: %+v %q", c.text, s, script)
		}
	}
}

func TestWarnings(t *testing.T) {
	opts := options()
	opts.Mail = false
	_, _, warnings, err := Parse(spec.Source{Name: "job.yaml", Data: []byte("mail: end\ntime: 10:00\nkill_on_bad_exit: true\nscript: |\n  #!/bin/sh\n  #SBATCH -N2\n")}, opts)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, w := range warnings {
		lines = append(lines, w.String())
	}
	want := []string{
		"job.yaml:1: mail has no effect here: no mail relay is configured",
		"job.yaml:2: time is minutes and seconds, as sbatch reads it: 10m; write 10h30m for hours and minutes",
		"job.yaml:3: kill_on_bad_exit has no effect with script: srun has an option of that name",
		"job.yaml:4: script has a line #SBATCH (its line 2), which is not read here: write the fields of this file",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestSourceOverridesArguments(t *testing.T) {
	opts := options()
	opts.ScriptArgs = []string{"x"}
	s, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte("script: a\nargs: [b]\n")}, opts)
	if err != nil || !cmp.Equal(s.Program.Args, []string{"x"}) {
		t.Errorf("%v %v", s, err)
	}
}

// TestHostileFilesAreCheap: what is large or deep is refused in little work.
func TestHostileFilesAreCheap(t *testing.T) {
	many := strings.Builder{}
	many.WriteString("command: a\nnodelist:\n")
	for range 40000 {
		many.WriteString("- n[0-60000]\n")
	}
	unknown := strings.Builder{}
	for i := range 60000 {
		unknown.WriteString("unknownfield" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String() + ": 1\n")
	}
	for name, text := range map[string]string{
		"deep":    strings.Repeat("[", 100000),
		"scalar":  "name: " + strings.Repeat("x", yaml.MaxSize),
		"nodes":   many.String(),
		"unknown": unknown.String(),
		"groups":  "command: a\ngroups:\n" + strings.Repeat("- {}\n", 100000),
		"array":   "command: a\narray: 0-4294967295\n",
		"export":  "command: a\nexport: [" + strings.Repeat("\"a b\",", 50000) + "]\n",
	} {
		from := time.Now()
		_, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if took := time.Since(from); err == nil || took > time.Minute || len(err.Error()) > 20000 {
			t.Errorf("%s: %v in %v", name, err == nil, took)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, script, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if err != nil {
			var e *spec.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		out, warnings := Render(s, script)
		again, script2, _, err := Parse(spec.Source{Name: "job.yaml", Data: out}, options())
		if err != nil {
			t.Fatalf("%q is written as\n%s\nwhich is refused: %v", text, out, err)
		}
		again.Source, s.Source = job.Source{}, job.Source{}
		if diff := cmp.Diff(s, again); diff != "" || string(script) != string(script2) || len(warnings) > 0 {
			t.Fatalf("%q is written as\n%s\n%v\n%s", text, out, warnings, diff)
		}
	})
}

func TestPartsOfGPUs(t *testing.T) {
	for _, c := range []struct {
		share string
		want  resource.DeviceRequest
		bad   string
	}{
		{"500", resource.DeviceRequest{Count: 1, Share: 500}, ""},
		{"20G", resource.DeviceRequest{Count: 1, Bytes: 20 * resource.GiB}, ""},
		{"512MiB", resource.DeviceRequest{Count: 1, Bytes: 512 * resource.MiB}, ""},
		{"1001", resource.DeviceRequest{}, "1001"},
		{"20X", resource.DeviceRequest{}, "20X"},
		{"2000T", resource.DeviceRequest{}, "more than a device has"},
	} {
		s, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte("command: x\ngpus_per_task: {share: " + c.share + "}\n")}, options())
		switch {
		case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("share: %s: %v, want an error with %q", c.share, err, c.bad)
		case c.bad == "" && err != nil:
			t.Errorf("share: %s: %v", c.share, err)
		case c.bad == "" && !reflect.DeepEqual(s.Groups[0].PerTask.Devices, []resource.DeviceRequest{c.want}):
			t.Errorf("share: %s: %+v", c.share, s.Groups[0].PerTask.Devices)
		}
	}
}
