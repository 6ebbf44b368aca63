package sbatch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// parse reads directives below a shebang, without #SBATCH in front.
func parse(t *testing.T, lines string, opts Options) (*job.Spec, []spec.Warning, error) {
	t.Helper()
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for line := range strings.SplitSeq(lines, "\n") {
		b.WriteString("#SBATCH " + line + "\n")
	}
	if opts.Dir == "" {
		opts.Dir = "/home/anna"
	}
	if opts.Now.IsZero() {
		opts.Now = time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)
	}
	return Parse(source(b.String()+"srun hostname\n"), opts)
}

func mustParse(t *testing.T, lines string, opts Options) *job.Spec {
	t.Helper()
	s, _, err := parse(t, lines, opts)
	if err != nil {
		t.Fatalf("%s\n%v", lines, err)
	}
	return s
}

func TestParseWhole(t *testing.T) {
	got := mustParse(t, `--job-name=train -A team -q high --comment="a b" -p gpu,long
--time=1-2:3 --time-min=60 --nice --hold --begin=now+1hour --requeue
-o %x-%j.out -e err/%j -i in.txt --open-mode=append --chdir=run
--export=ALL,X=1 --signal=B:USR1@120 --array=1-7:2%3`, Options{
		ScriptArgs: []string{"a", "b"}, Owner: job.Owner{User: "anna", UID: 7}, Host: "login1", MaxArraySize: 100,
	})
	want := &job.Spec{
		Name: "train", Owner: job.Owner{User: "anna", UID: 7}, Account: "team", QOS: "high", Comment: "a b",
		Partitions: []string{"gpu", "long"}, TimeLimit: 26*time.Hour + 3*time.Minute, TimeMin: time.Hour, Nice: 100, Held: true,
		Begin: time.Date(2026, 11, 21, 14, 29, 8, 0, time.UTC), Requeue: true,
		Output: job.Output{Stdout: "%x-%j.out", Stderr: "err/%j", Stdin: "in.txt", Append: true}, WorkDir: "/home/anna/run",
		Env: job.Environment{Export: "ALL,X=1"}, Signal: &job.SignalSpec{Signal: 10, Before: 2 * time.Minute, BatchOnly: true},
		Array:   &job.ArraySpec{Text: "1-7:2%3", Indices: []uint32{1, 3, 5, 7}, MaxRunning: 3, Step: 2},
		Program: job.Program{Kind: job.Batch, ScriptName: "job.sbatch", Args: []string{"a", "b"}},
		Groups:  []job.TaskGroup{{PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}}}},
		Source: job.Source{
			Form: "sbatch", File: "job.sbatch", Lines: [2]int{2, 5}, Host: "login1", Submit: "/home/anna",
			Given: map[string]string{
				"job-name": "train", "account": "team", "qos": "high", "comment": "a b", "partition": "gpu,long", "time": "1-2:3",
				"time-min": "60", "nice": "", "hold": "", "begin": "now+1hour", "requeue": "", "output": "%x-%j.out", "error": "err/%j",
				"input": "in.txt", "open-mode": "append", "chdir": "run", "export": "ALL,X=1", "signal": "B:USR1@120", "array": "1-7:2%3",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestParseDefaults(t *testing.T) {
	s, warnings, err := Parse(spec.Source{Name: "-", Data: []byte("#!/bin/sh\ntrue\n")}, Options{Dir: "/d"})
	if err != nil || len(warnings) > 0 || s.Name != "sbatch" || s.Output.Stdout != "slurm-%j.out" || s.WorkDir != "/d" || !s.Requeue {
		t.Errorf("%+v, %v, %v", s, warnings, err)
	}
	if s := mustParse(t, "--array=1-3", Options{}); s.Output.Stdout != "slurm-%A_%a.out" {
		t.Errorf("array output %s", s.Output.Stdout)
	}
	if s := mustParse(t, "-o none -e NONE -i none", Options{}); s.Output != (job.Output{Stdout: "/dev/null", Stderr: "/dev/null", Stdin: "/dev/null"}) {
		t.Errorf("no files: %+v", s.Output)
	}
	if s, _, err := Parse(Wrap("sleep 1"), Options{}); err != nil || s.Name != "wrap" {
		t.Errorf("wrap: %+v, %v", s, err)
	}
}

// group prints what one task group asks for.
func group(g job.TaskGroup) string {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+" ", args...) }
	if g.Nodes != (job.Range{}) {
		put("N%d-%d", g.Nodes.Min, g.Nodes.Max)
	}
	if g.Tasks.Want > 0 {
		put("n%d", g.Tasks.Want)
	}
	if g.TasksPerNode > 0 {
		put("tpn%d", g.TasksPerNode)
	}
	for _, r := range []struct {
		name string
		resource.Requirements
	}{{"node", g.PerNode}, {"task", g.PerTask}, {"total", g.Total}, {"gpu", resource.Requirements{Vector: g.PerDevice}}} {
		if r.IsZero() {
			continue
		}
		var parts []string
		if r.CPU > 0 {
			parts = append(parts, resource.FormatCPU(r.CPU)+"cpu")
		}
		if r.Memory > 0 {
			parts = append(parts, strings.ReplaceAll(resource.FormatBytes(r.Memory), " ", ""))
		}
		if r.Disk > 0 {
			parts = append(parts, "disk"+strings.ReplaceAll(resource.FormatBytes(r.Disk), " ", ""))
		}
		for _, d := range r.Devices {
			text := fmt.Sprintf("%dx%s", d.Count, d.KindOf())
			if d.Type != "" {
				text += ":" + d.Type
			}
			if d.Profile != "" {
				text += "/" + d.Profile
			}
			if d.Share != 0 {
				text += fmt.Sprintf("*%d", d.Share)
			}
			parts = append(parts, text)
		}
		for _, x := range r.Named {
			parts = append(parts, fmt.Sprintf("%s=%d", x.Name, x.Amount))
		}
		put("%s(%s)", r.name, strings.Join(parts, ","))
	}
	if g.AllMemory {
		put("allmem")
	}
	if g.Exclusive {
		put("whole")
	}
	if len(g.Constraint.Alternatives) > 0 {
		put("%v same=%v", g.Constraint.Alternatives, g.Constraint.Same)
	}
	if len(g.NodeList) > 0 {
		put("on %v", g.NodeList)
	}
	if len(g.Exclude) > 0 {
		put("not %v", g.Exclude)
	}
	if g.Distribution != "" {
		put("%s", g.Distribution)
	}
	return strings.TrimSpace(b.String())
}

func TestParseGroup(t *testing.T) {
	for options, want := range map[string]string{
		"-n 4":                              "n4 task(1cpu)",
		"-N 2":                              "N2-2 task(1cpu)",
		"-N 2-4 -n 3":                       "N2-3 n3 task(1cpu)",
		"-N 4k -n 5000":                     "N4096-4096 n5000 task(1cpu)",
		"-N 4 -n 2":                         "N2-2 n2 task(1cpu)",
		"-N 1,5,9":                          "N1-1 task(1cpu)",
		"-N 2 --ntasks-per-node=8 -c 4":     "N2-2 tpn8 task(4cpu)",
		"--ntasks-per-node=8":               "tpn8 task(1cpu)",
		"-N2 --mem=4G":                      "N2-2 node(4GiB) task(1cpu)",
		"--mem=0":                           "task(1cpu) allmem",
		"-n2 -c4 --mem-per-cpu=1G":          "n2 task(4cpu,4GiB)",
		"-N2 --gres=gpu:4 --mem-per-gpu=8G": "N2-2 node(4xgpu) task(1cpu) gpu(8GiB)",
		"-N2 --gres=gpu:4 --cpus-per-gpu=8": "N2-2 node(4xgpu) gpu(8cpu)",
		"--gpus=8 --cpus-per-gpu=10 --mem-per-cpu=1G": "total(8xgpu) gpu(10cpu,10GiB)",
		"-n8 -O":                       "n8 node(1cpu)",
		"-n2 -c2 --mincpus=8":          "n2 node(6cpu) task(2cpu)",
		"--tmp=10G":                    "node(disk10GiB) task(1cpu)",
		"--exclusive --exclude=n[1-2]": "task(1cpu) whole not [n1 n2]",
		"--exclusive --oversubscribe":  "task(1cpu)",
		"-C a&(b|c)":                   "task(1cpu) [[a b] [a c]] same=false",
		"-C [a|b]":                     "task(1cpu) [[a] [b]] same=true",
		"-w n[1-3]":                    "N3-0 task(1cpu) on [n1 n2 n3]",
		"-w n[1-3] -n 2":               "N2-0 n2 task(1cpu) on [n1 n2]",
		"-w n[1-3] -N 5":               "N5-5 task(1cpu) on [n1 n2 n3]",
		`-x "weaver1, weaver2"`:        "task(1cpu) not [weaver1 weaver2]",
		"-m cyclic":                    "task(1cpu) cyclic",
		"-m plane=4":                   "task(1cpu) plane=4",
		"-m block:cyclic":              "task(1cpu) block",
		"--gres=gpu:h100:2,nvme:3":     "node(2xgpu:h100,gres/nvme=3) task(1cpu)",
		"--gres=gpu:a100_1g.5gb:2":     "node(2xgpu:a100/1g.5gb) task(1cpu)",
		"--gres=gpu:1g.10gb":           "node(1xgpu/1g.10gb) task(1cpu)",
		"--gres=mps:25":                "node(1xgpu*250) task(1cpu)",
		"--gpus=h100:2,a100:1":         "task(1cpu) total(2xgpu:h100,1xgpu:a100)",
		"--gpus=0":                     "task(1cpu)",
		"-n4 --tres-per-task=cpu:2,gres/gpu=1,mem=2G": "n4 task(2cpu,2GiB,1xgpu)",
		"--gpus=8 --gpus-per-node=4":                  "N2-2 node(4xgpu) task(1cpu)",
		"--gres=gpu:2 --gpus=2":                       "N1-1 node(2xgpu) task(1cpu)",
		"--gpus=4 --gpus-per-task=2":                  "n2 task(1cpu,2xgpu)",
		"-N2 --gpus-per-task=1":                       "N2-2 task(1cpu,1xgpu)",
		"-N1 --gres=gpu:4 --gpus-per-task=1":          "N1-1 tpn4 node(4xgpu) task(1cpu)",
		"-N2 -n8 --gres=gpu:4 --gpus-per-task=1":      "N2-2 n8 tpn4 node(4xgpu) task(1cpu)",
		"--ntasks-per-gpu=2 --gpus=2":                 "n4 task(1cpu) total(2xgpu)",
		"--ntasks-per-gpu=2 -n 5":                     "n5 task(1cpu) total(3xgpu)",
		"--ntasks-per-gpu=2 --gpus-per-node=2 -N 2":   "N2-2 tpn4 node(2xgpu) task(1cpu)",
		"--gpus-per-socket=2 --sockets-per-node=2":    "node(4xgpu) task(1cpu)",
		"--gres=gpu:2 --gpus-per-node=h100:2":         "node(2xgpu:h100) task(1cpu)",
	} {
		s, _, err := parse(t, options, Options{})
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		if got := group(s.Groups[0]); got != want {
			t.Errorf("%s gives %s, want %s", options, got, want)
		}
	}
}

// Each case is one directive line (below the shebang, so line 2) and the whole
// message. COXSWAIN_UPDATE=1 prints the messages instead of comparing.
func TestParseErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	update := os.Getenv("COXSWAIN_UPDATE") != ""
	var out strings.Builder
	for _, c := range strings.Split(strings.TrimRight(string(data), "\n"), "\n\n") {
		options, want, _ := strings.Cut(c, "\n")
		_, _, err := parse(t, strings.ReplaceAll(strings.TrimPrefix(options, "#SBATCH "), " ⏎ ", "\n"), Options{MaxArraySize: 1001})
		var e *spec.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", options, err)
			continue
		}
		fmt.Fprintf(&out, "%s\n%v\n\n", options, err)
		for _, e := range append([]*spec.Error{e}, e.Others...) {
			if e.Remedy == "" && !strings.Contains(e.Message, "form") && !strings.Contains(e.Message, "(number with") && !strings.Contains(e.Message, "is not 0 to") {
				t.Errorf("%s: no remedy with %q", options, e.Message)
			}
			if e.File == "" || e.Line == 0 {
				t.Errorf("%s: no place with %q", options, e.Message)
			}
		}
		if !update && err.Error() != want {
			t.Errorf("%s\n%v\nwant\n%s", options, err, want)
		}
	}
	if update {
		if err := os.WriteFile("testdata/errors.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseWarnings(t *testing.T) {
	for options, want := range map[string]string{
		"--mail-user=a@b":                  "job.sbatch:2: --mail-user has no effect: without --mail-type no mail is sent",
		"--mail-type=NONE":                 "",
		"--mail-type=END --mail-user=a@b":  "job.sbatch:2: --mail-type has no effect here: no way to send mail is configured (notify.command or notify.smtp)",
		"--mail-type=NONE --mail-user=a@b": "",
		"--kill-on-invalid-dep=yes":        "job.sbatch:2: --kill-on-invalid-dep has no effect: the job has no --dependency",
		"-L matlab:2":                      "",
		"--signal=R:USR1":                  "job.sbatch:2: --signal has an R, which has no effect here: no reservation delays its start",
		"--requeue=expedite":               "job.sbatch:2: --requeue is read as --requeue: a requeued job waits like any other",
		"--sockets-per-node=2":             "job.sbatch:2: --sockets-per-node has no effect here without --gpus-per-socket: sockets and cores are not chosen one by one",
		"--reservation=r":                  "",
		"--version":                        "job.sbatch:2: --version has no effect here: it belongs on the command line",
		"--wait --parsable --test-only":    "",
		"-N 1\n-N 2":                       "job.sbatch:3: --nodes overrides --nodes=1 of line 2",
		"-N 2\n-N 2":                       "",
		"--requeue\n--no-requeue":          "job.sbatch:3: --no-requeue overrides --requeue of line 2",
		"-o $HOME/x":                       `job.sbatch:2: --output keeps the text "$HOME/x": variables are not expanded in #SBATCH lines`,
		"-J “abc”":                         "job.sbatch:2: --job-name has a typographic quote (U+201C) in its value, which is taken as it is",
		"--uenv=x --view y":                "job.sbatch:2: --uenv belongs to a plugin of some sites (user environments): not read\njob.sbatch:2: --view belongs to a plugin of some sites (user environments): not read",
		"--workdir=/x":                     "job.sbatch:2: --workdir is the old name of --chdir: read as that",
		"--get-user-env=L":                 "job.sbatch:2: --get-user-env=L is an old form: read as --get-user-env\njob.sbatch:2: --get-user-env has no effect here: no login environment is loaded: the job gets the environment of its submission",
		"--container-image=x":              "",
		"--container-save=x":               "job.sbatch:2: --container-save is an option of the pyxis plugin: a Slurm pool passes it on, other pools refuse it",
		"--dependency=singleton":           "",
		"-N 4 -n 2":                        "job.sbatch:2: --nodes is more than the tasks can use: 2 tasks on 2 nodes",
	} {
		_, warnings, err := parse(t, options, Options{})
		if err != nil {
			t.Errorf("%s: %v", options, err)
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: warnings\n%s\nwant\n%s", options, strings.Join(got, "\n"), want)
		}
	}
	if s := mustParse(t, "--workdir=/x", Options{}); s.WorkDir != "/x" {
		t.Errorf("--workdir=/x runs in %s", s.WorkDir)
	}
}

// TestMistypedGPU: a GRES that no site has does not become a resource that a job goes without.
func TestMistypedGPU(t *testing.T) {
	for _, line := range []string{"--gres=GPU:1", "--gres=Gpu:h100:2", "--gres=gpus:1"} {
		if _, _, err := parse(t, line, Options{}); err == nil || !strings.Contains(err.Error(), "the name is gpu") {
			t.Errorf("%s: %v", line, err)
		}
	}
	mustParse(t, "--gres=gpu:1,fpga:2", Options{})
}

// TestUnknownOptions: an option that sbatch does not have is refused, in the script and on
// the command line, with the option that was meant; those of known plugins warn.
func TestUnknownOptions(t *testing.T) {
	for option, want := range map[string]string{
		"--memory=32G":             "did you mean --mem?",
		"--num-nodes=4":            "did you mean --nodes?",
		"--num-nodes 4":            "did you mean --nodes?",
		"--walltime=1:00":          "did you mean --time?",
		"--queue=gpu":              "did you mean --partition?",
		"--procs=8":                "did you mean --ntasks?",
		"--num-gpus=2":             "did you mean --gpus?",
		"--outfile=x":              "did you mean --output?",
		"--dependencies=afterok:1": "did you mean --dependency?",
		"--ntasks-on-node=3":       "did you mean --ntasks-per-node?",
		"--cpu-bind=cores":         "put it on the srun line",
		"--x11":                    "an option of srun and salloc",
		"--quux=3":                 "take it out",
		"-Y":                       "take it out",
		"--uenv=x":                 "",
		"--view y":                 "",
		"--image=x":                "",
		"--quotatype=spot":         "",
		"--container-save=x":       "",
	} {
		for place, read := range map[string]func() (*job.Spec, []spec.Warning, error){
			"script":       func() (*job.Spec, []spec.Warning, error) { return parse(t, option, Options{}) },
			"command line": func() (*job.Spec, []spec.Warning, error) { return parse(t, "", Options{Args: strings.Fields(option)}) },
		} {
			_, warnings, err := read()
			name, _, _ := strings.Cut(strings.Fields(option)[0], "=")
			switch {
			case want == "" && (err != nil || len(warnings) == 0 || warnings[0].Option != name):
				t.Errorf("%s, %s: warnings %v, %v", option, place, warnings, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), name+" is no option of sbatch") || !strings.Contains(err.Error(), want)):
				t.Errorf("%s, %s: %v, want %s", option, place, err, want)
			case want != "" && strings.Contains(err.Error(), "\"4\""):
				t.Errorf("%s, %s: the value is an error of its own: %v", option, place, err)
			}
		}
	}
}

// Every option without effect warns by name, every refused one errs, in every
// spelling that the table knows.
func TestStatuses(t *testing.T) {
	for _, o := range Table() {
		line := "--" + o.Name
		if o.Arg == getopt.Required {
			line += "=" + valueOf(o)
		}
		_, warnings, err := parse(t, line, Options{})
		name := "--" + o.canonicalName()
		switch o.Status {
		case OnSome:
			if len(warnings) == 0 || !strings.Contains(warnings[0].Message, o.Engines) || o.Why == "" {
				t.Errorf("%s: warnings %v", line, warnings)
			}
		case Refused:
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error %v", line, err)
			}
		case NoEffect:
			if len(warnings) == 0 || warnings[0].Line != 2 || warnings[0].Option != name {
				t.Errorf("%s: warnings %v", line, warnings)
			}
		}
	}
}

// valueOf is a value that sbatch takes for an option.
func valueOf(o Option) string {
	if v, ok := map[string]string{"gpu-bind": "closest", "gres-flags": "enforce-binding", "hint": "multithread", "mem-bind": "local", "profile": "Task"}[o.Name]; ok {
		return v
	}
	return "1"
}

// TestValuesWithoutEffect: a value that sbatch refuses is refused for options without effect too.
func TestValuesWithoutEffect(t *testing.T) {
	for option, values := range map[string][2]string{ // taken, refused
		"acctg-freq": {"30 task=30 task=30,energy=60", "x task task=x"}, "core-spec": {"0 2", "x -1"}, "cores-per-socket": {"4", "0 x"},
		"cpu-freq":   {"high 2400000 low-high:performance performance", "fast low-"},
		"gpu-bind":   {"closest single:2 verbose,closest map:0,1 mask_gpu:0x3,0xc none", "near single"},
		"gpu-freq":   {"medium,memory=high 1200 verbose", "fast"},
		"gres-flags": {"disable-binding enforce-binding", "x"},
		"hint":       {"nomultithread compute_bound MULTITHREAD", "foo"}, "mem-bind": {"local verbose,local map_mem:0,1 none", "here"},
		"no-kill": {"off", "x"}, "ntasks-per-core": {"1 2", "0 x"}, "oom-kill-step": {"0 1", "2"}, "profile": {"all Task,Energy none", "foo Task,foo"},
		"propagate": {"NONE STACK,NOFILE", "x"}, "threads-per-core": {"1 2", "x"}, "wait-all-nodes": {"0 1", "2 yes"}, "delay-boot": {"5 1:00:00", "x"},
		"extra-node-info": {"2 2:4 2:4:2 *:*:1", "x 2:x 1:2:3:4"},
	} {
		for i, list := range values {
			for _, v := range strings.Fields(list) {
				_, _, err := parse(t, "--"+option+"="+v, Options{})
				if (err != nil) != (i == 1) || err != nil && !strings.Contains(err.Error(), "--"+option+"="+v) {
					t.Errorf("--%s=%s: %v", option, v, err)
				}
			}
		}
	}
}

// TestTakenAsSbatchTakesIt: what is taken, and with which warning, where sbatch has a meaning for
// options that do not go together.
func TestTakenAsSbatchTakesIt(t *testing.T) {
	for _, c := range []struct{ options, want, warning string }{
		{"-N 2 --ntasks-per-node=2 -n 8", "N2-2 n8 task(1cpu)", "--ntasks-per-node is not read, as by sbatch: on 2 nodes it allows 4 tasks, and --ntasks=8"},
		{"-w n[1-4] -N 2", "N2-2 2 named", "--nodelist names 4 nodes, more than --nodes=2 allows: the first are taken"},
		{"--gres=gpu=1", "node(1xgpu)", ""},
		{"--gres=gpu:a100=2", "node(2xgpu:a100)", ""},
		{"--gpus=a100=2", "total(2xgpu:a100)", ""},
		{"--nodes=2-4:2", "N2-2", "--nodes is taken as its least size, 2: the job takes no size that is not in the set, and sets are not built yet"},
		{"-B 2:4:2", "n16", "--extra-node-info has no effect here: sockets and cores are not chosen one by one"},
		{"-B 2:4:2 -N 2", "n32", ""},
		{"-B 2:4:2 -n 3", "n3", ""},
		{"-B 2 --ntasks-per-node=3 -N 1", "N1-1", ""},
		{"--array=1-4%2,7", "array 1-4,7%2", ""},
		{"-N1\n#SBATCH HETJOB\n#SBATCH -N2", "2 groups", ""},
	} {
		s, warnings, err := parse(t, strings.ReplaceAll(c.options, "\n#SBATCH ", "\n"), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.options, err)
			continue
		}
		got := fmt.Sprintf("%s %d groups %d named", group(s.Groups[0]), len(s.Groups), len(s.Groups[0].NodeList))
		if s.Array != nil {
			got += fmt.Sprintf(" array %s%%%d", slurmfmt.FormatArrayIndices(s.Array.Indices), s.Array.MaxRunning)
		}
		for _, word := range strings.Fields(c.want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: %s, want %s", c.options, got, c.want)
			}
		}
		if c.warning != "" && !slices.ContainsFunc(warnings, func(w spec.Warning) bool { return strings.Contains(w.String(), c.warning) }) {
			t.Errorf("%s: warnings %v", c.options, warnings)
		}
	}
}

// The command line outranks the environment, which outranks the script.
func TestPrecedence(t *testing.T) {
	const script = "-t 7 -J script -N1 --no-requeue --mem=4G"
	env := []string{"SBATCH_TIMELIMIT=5", "SBATCH_JOB_NAME=env", "SBATCH_EXCLUSIVE=", "SBATCH_REQUEUE=yes", "SBATCH_OVERCOMMIT=0", "SBATCH_MEM_PER_CPU=2G", "HOME=/x"}
	s := mustParse(t, script, Options{Environ: env})
	if s.TimeLimit != 5*time.Minute || s.Name != "env" || !s.Requeue || group(s.Groups[0]) != "N1-1 node(4GiB) task(1cpu) whole" {
		t.Errorf("environment over script: %v %s %v %s", s.TimeLimit, s.Name, s.Requeue, group(s.Groups[0]))
	}
	s = mustParse(t, script, Options{Environ: env, Args: []string{"--time=9", "-J", "cli", "-N3"}})
	if s.TimeLimit != 9*time.Minute || s.Name != "cli" || s.Groups[0].Nodes.Min != 3 {
		t.Errorf("command line over all: %v %s %v", s.TimeLimit, s.Name, s.Groups[0].Nodes)
	}
	_, _, err := parse(t, script, Options{Args: []string{"--time=x"}})
	if want := "command line: --time=x is not a time (forms: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S)\n      --time=x\n             ^"; err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, _, err = parse(t, script, Options{Environ: []string{"SBATCH_TIMELIMIT=x"}})
	if err == nil || !strings.HasPrefix(err.Error(), "environment: SBATCH_TIMELIMIT=x is not a time") {
		t.Errorf("bad variable: %v", err)
	}
}

// A variable without effect warns by its own name; what concerns the command
// sbatch alone does not.
func TestEnvironmentWarnings(t *testing.T) {
	_, warnings, err := parse(t, "-N1", Options{Environ: []string{"SBATCH_GPU_BIND=closest", "SBATCH_WAIT=1", "SBATCH_DEBUG=2", "SBATCH_POWER=x"}})
	if err != nil || len(warnings) != 1 || warnings[0].String() != "environment: SBATCH_POWER has no effect here: Slurm 23.11 removed its option" {
		t.Errorf("%v, %v", warnings, err)
	}
}

// Memory is asked for in one way: the environment's gives way to the script's and the
// command line's, and these two contradict each other. All of it as sbatch does.
func TestPrecedenceOfMemory(t *testing.T) {
	for _, c := range []struct{ script, env, args, want string }{
		{"--mem=1G", "SBATCH_MEM_PER_CPU=2G", "", "node(1GiB) task(1cpu)"},
		{"--mem=1G", "SBATCH_MEM_PER_NODE=3G", "", "node(3GiB) task(1cpu)"},
		{"--mem-per-cpu=1G", "SBATCH_MEM_PER_CPU=3G", "", "task(1cpu,3GiB)"},
		{"--mem-per-cpu=1G", "SBATCH_MEM_PER_NODE=3G", "", "task(1cpu,1GiB)"},
		{"--mem-per-gpu=1G -G1", "SBATCH_MEM_PER_CPU=3G", "", "task(1cpu) total(1xgpu) gpu(1GiB)"},
		{"-N1", "SBATCH_MEM_PER_CPU=2G", "--mem=4G", "N1-1 node(4GiB) task(1cpu)"},
		{"-N1", "SBATCH_MEM_PER_NODE=2G", "--mem-per-cpu=4G", "N1-1 task(1cpu,4GiB)"},
		{"--mem-per-cpu=1G", "SBATCH_MEM_PER_CPU=2G", "--mem-per-cpu=4G", "task(1cpu,4GiB)"},
		{"--mem-per-cpu=1G", "X=", "--mem=4G", "refused"},
		{"-N1", "SBATCH_MEM_PER_CPU=2G SBATCH_MEM_PER_NODE=3G", "", "refused"},
	} {
		got := "refused"
		s, _, err := parse(t, c.script, Options{Environ: strings.Fields(c.env), Args: strings.Fields(c.args)})
		if err == nil {
			got = group(s.Groups[0])
		}
		if got != c.want {
			t.Errorf("%s, %s, %s: %s, want %s (%v)", c.script, c.env, c.args, got, c.want, err)
		}
	}
}

func TestComponents(t *testing.T) {
	s, warnings, err := parse(t, `-J lead -N1 -o out -t 5 --mem=4G --gres=gpu:1 -p a
hetjob
-n2 -p b -t 10 -J other
hetjob
-N2 --mem=1G`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range s.Groups {
		got = append(got, group(g))
	}
	want := []string{"N1-1 node(4GiB,1xgpu) task(1cpu)", "n2 node(4GiB) task(1cpu)", "N2-2 node(1GiB) task(1cpu)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s.TimeLimit != 10*time.Minute || s.Name != "lead" || s.Partitions[0] != "a" {
		t.Errorf("%v %s %v", s.TimeLimit, s.Name, s.Partitions)
	}
	var lines []string
	for _, w := range warnings {
		lines = append(lines, w.String())
	}
	if got := strings.Join(lines, "\n"); got != `job.sbatch:4: --partition of component 1 is not used: the first component's holds for the whole job
job.sbatch:4: --time of component 1 holds for the whole job: it is the longest
job.sbatch:4: --job-name of component 1 is not used: the first component's holds for the whole job` {
		t.Error(got)
	}
	s = mustParse(t, "-N1", Options{Args: []string{"-c3", ":", "-c4"}})
	if len(s.Groups) != 2 || s.Groups[0].CPUsPerTask != 3 || s.Groups[1].CPUsPerTask != 4 {
		t.Errorf("components of the command line: %+v", s.Groups)
	}
	s, warnings, err = parse(t, "-N4 --switches=1 --segment=2\nhetjob\n-N2 --switches=2@5 --segment=1\nhetjob\n-n4 --spread-job\nhetjob\n-N1-4 --use-min-nodes", Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if g := s.Groups; g[0].Wishes.Switches.N != 1 || g[0].Segment != 2 || g[1].Wishes.Switches.N != 2 || g[1].Segment > 1 || !g[2].Spread || g[0].Spread || !g[3].FewNodes {
		t.Errorf("what each component asks of the topology: %+v", g)
	}
	s = mustParse(t, "-N1\nhetjob\n-N2", Options{Args: []string{"-c3"}})
	if s.Groups[0].CPUsPerTask != 3 || s.Groups[1].CPUsPerTask != 3 {
		t.Errorf("one command line for all: %+v", s.Groups)
	}
}

func TestFilesOfOptions(t *testing.T) {
	files := map[string]string{"env": "A=1\x00B=x y\x00", "bad": "no name", "hosts": "n[1-2]\nn2\nn9\n"}
	opts := Options{ReadFile: func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return []byte(data), nil
		}
		return nil, os.ErrNotExist
	}}
	s := mustParse(t, "--export-file=env -F hosts", opts)
	if diff := cmp.Diff([]string{"A=1", "B=x y"}, s.Env.Set); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n9"}, s.Groups[0].NodeList); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"--export-file=bad", "--export-file=none", "-F none"} {
		if _, _, err := parse(t, line, opts); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
}

// Strict is sbatch's own judgement: every record of the public headers that it
// accepts is read, and every other one errs at its first problem.
func TestHeadersStrict(t *testing.T) {
	values := 0
	for _, h := range readHeaders(t) {
		script := readLines(h.script())
		_, _, err := Parse(spec.Source{Name: "job.sbatch", Data: []byte(strings.ReplaceAll(string(h.script().Data), "\r\n", "\n"))}, Options{Dir: "/d", Strict: true})
		var e *spec.Error
		errors.As(err, &e)
		switch {
		case h.Accepted && err != nil:
			values++ // a bad value, or numbers that contradict each other
		case !h.Accepted && e == nil:
			t.Errorf("%s is accepted", h.Source)
		case !h.Accepted && e.Line > script.Problems[0].Line:
			t.Errorf("%s: the first error stands in line %d, want %d", h.Source, e.Line, script.Problems[0].Line)
		}
	}
	if values > 20 {
		t.Errorf("%d of the accepted headers err by their values", values)
	}
}
