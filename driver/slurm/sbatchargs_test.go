package slurm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// told returns everything that Slurm is told of a job: script, options, variables.
func told(t *testing.T, s *job.Spec, text string) (string, error) {
	t.Helper()
	e := &Engine{cfg: Config{}}
	j := &job.Job{ID: 7, Spec: s}
	w, err := e.buildSbatchJob(j, engine.Ref{Allocation: 3, Attempt: 1}, []fleet.Claim{{Node: "n1", Tasks: 2}, {Node: "n2", Tasks: 2}}, []byte(text))
	if err != nil {
		return "", err
	}
	env := jobEnvironment(&order{Job: j, Env: []string{"HOME=/home/u", "SBATCH_ARRAY_INX=1-3", "A=1"}}, &script.Guard{Dir: "/l"})
	out := string(w.script) + "ARGS " + strings.Join(w.args, " ") + "\n" + strings.Join(w.options, "\n") + "\n"
	for _, m := range w.more {
		out += ": " + strings.Join(m, "\n: ") + "\n"
	}
	return out + strings.Join(env, "\n") + "\n", nil
}

// one is the least that is a job.
func one() *job.Spec {
	return &job.Spec{
		Name: "j", WorkDir: "/w", Program: job.Program{Kind: job.Direct, Args: []string{"prog", "a b"}}, Source: job.Source{Form: "native"},
		Groups: []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Want: 4}, TasksPerNode: 2, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}}}},
	}
}

// fact says what becomes of a field.
type fact struct {
	set   func(*job.Spec)
	words []string // what Slurm is told
	not   string   // what it must not be told
	error string   // what it is refused with
	none  string   // why nothing is said
}

func group(f func(*job.TaskGroup)) func(*job.Spec) {
	return func(s *job.Spec) { f(&s.Groups[0]) }
}

// facts are the fields of a job, all of them.
var facts = map[string]fact{
	"Name":          {set: func(s *job.Spec) { s.Name = "my job" }, words: []string{"--job-name=my job", `#SBATCH --job-name="my job"`}},
	"Owner":         {none: "the submission is made as its owner, see Identity"},
	"Account":       {set: func(s *job.Spec) { s.Account = "bio" }, words: []string{"--account=bio", "#SBATCH --account=bio"}},
	"QOS":           {set: func(s *job.Spec) { s.QOS = "high" }, words: []string{"--qos=high"}},
	"Comment":       {none: "it stands behind the tag: comment()"},
	"Pool":          {none: "this pool is it"},
	"Chosen":        {none: "why it is this pool"},
	"Partitions":    {set: func(s *job.Spec) { s.Partitions = []string{"a", "b"} }, words: []string{"--partition=a,b"}},
	"Begin":         {set: func(s *job.Spec) { s.Begin = time.Now().Add(time.Hour) }, not: "begin"},
	"Held":          {set: func(s *job.Spec) { s.Held = true }, not: "--hold"},
	"Nice":          {set: func(s *job.Spec) { s.Nice = 5 }, words: []string{"--nice=5"}},
	"Priority":      {set: func(s *job.Spec) { s.Priority = 9 }, not: "--priority"},
	"TimeLimit":     {set: func(s *job.Spec) { s.TimeLimit = 90 * time.Second }, words: []string{"--time=2"}},
	"TimeMin":       {set: func(s *job.Spec) { s.TimeLimit, s.TimeMin = time.Hour, 10*time.Minute }, words: []string{"--time-min=00:10:00"}},
	"Deadline":      {set: func(s *job.Spec) { s.Deadline = time.Now().Add(time.Hour) }, not: "deadline"},
	"Requeue":       {set: func(s *job.Spec) { s.Requeue = true }, words: []string{"--requeue"}, not: "--no-requeue"},
	"Depends":       {none: "it is handed over when they are met"},
	"Array":         {set: func(s *job.Spec) { s.Array = &job.ArraySpec{Indices: []uint32{1, 2}} }, not: "--array"},
	"Groups":        {none: "see TaskGroup"},
	"Within":        {set: func(s *job.Spec) { s.Within = job.InLeaf }, error: "together"},
	"Wish":          {set: func(s *job.Spec) { s.Wish = job.Wish{N: 1} }, error: "together"},
	"Levels":        {set: func(s *job.Spec) { s.Levels = []string{"rack"} }, error: "level"},
	"Program":       {words: []string{"\nexec srun prog 'a b'\n"}},
	"Output":        {set: func(s *job.Spec) { s.Output = job.Output{Stdout: "o-%j", Stderr: "e", Stdin: "i", Append: true} }, words: []string{"--output=/w/o-%j", "--error=/w/e", "--input=i", "--open-mode=append", "#SBATCH --output=/w/o-%j"}},
	"Env":           {set: func(s *job.Spec) { s.Env = job.Environment{Export: "A,B=2", Set: []string{"C=3"}} }, words: []string{"A=1", "B=2", "C=3", "SLURM_EXPORT_ENV=A,B=2", "SLURM_GET_USER_ENV=1", "COX_JOB_ID=7"}, not: "HOME="},
	"WorkDir":       {none: "Submission.Dir"},
	"Signal":        {set: func(s *job.Spec) { s.Signal = &job.SignalSpec{Signal: 10, Before: time.Minute, BatchOnly: true} }, words: []string{"--signal=B:10@60"}},
	"Licenses":      {set: func(s *job.Spec) { s.Licenses = "matlab:2" }, words: []string{"--licenses=matlab:2"}},
	"LicensesThere": {none: "Licenses has them"},
	"Mail":          {set: func(s *job.Spec) { s.Mail = &job.Mail{Types: []string{"END"}, To: "a@b"} }, words: []string{"--mail-type=END", "--mail-user=a@b"}},
	"Image":         {set: func(s *job.Spec) { s.Image = "repo/img:1" }, words: []string{"exec srun --container-image=repo/img:1 prog"}},
	"Pod":           {set: func(s *job.Spec) { s.Pod = &job.Pod{HostNetwork: true} }, error: "pods"},
	"Upload":        {set: func(s *job.Spec) { s.Upload = &job.Upload{Dir: "/w"} }, error: "comes with the job"},
	"Reservation":   {set: func(s *job.Spec) { s.Reservation = "r" }, words: []string{"--reservation=r"}},
	"KillOnBadExit": {set: func(s *job.Spec) { s.KillOnBadExit = true }, words: []string{"exec srun --kill-on-bad-exit=1 prog"}},
	"Source":        {set: func(s *job.Spec) { s.Source.File, s.Source.Host, s.Source.Submit = "t.yaml", "login", "/s" }, words: []string{"# It came as form native, file t.yaml, submitted from login:/s"}},
	"Provenance":    {none: "it is kept here"},

	"TaskGroup.Name":         {set: group(func(g *job.TaskGroup) { g.Name = "workers\n#SBATCH -N9" }), words: []string{"# Group 0 is workers #SBATCH -N9."}},
	"TaskGroup.Nodes":        {set: group(func(g *job.TaskGroup) { g.Nodes = job.Range{Min: 2, Max: 4} }), words: []string{"--nodes=2-4"}},
	"TaskGroup.Tasks":        {set: group(func(g *job.TaskGroup) { g.Tasks = job.Count{Want: 4, Min: 2} }), words: []string{"--ntasks=4"}},
	"TaskGroup.TasksPerNode": {words: []string{"--ntasks-per-node=2"}},
	"TaskGroup.CPUsPerTask":  {set: group(func(g *job.TaskGroup) { g.CPUsPerTask, g.PerTask.CPU = 3, resource.CPUs(3) }), words: []string{"--cpus-per-task=3", "srun --cpus-per-task=3 prog"}},
	"TaskGroup.Overcommit":   {set: group(func(g *job.TaskGroup) { g.Overcommit, g.PerTask.CPU, g.PerNode.CPU = true, 0, resource.OneCPU }), words: []string{"#SBATCH --overcommit"}},
	"TaskGroup.PerNode": {set: group(func(g *job.TaskGroup) {
		g.PerNode = resource.Requirements{Vector: resource.Vector{Memory: resource.GiB, Disk: resource.GiB}, Devices: []resource.DeviceRequest{{Type: "h100", Count: 2}}}
	}), words: []string{"--gres=gpu:h100:2", "--mem=1G", "--tmp=1G"}},
	"TaskGroup.PerTask": {set: group(func(g *job.TaskGroup) {
		g.PerTask.Memory, g.PerTask.Devices = 512*resource.MiB, []resource.DeviceRequest{{Count: 1}}
	}), words: []string{"--mem-per-cpu=512M", "--gpus-per-task=1"}},
	"TaskGroup.PerDevice": {set: group(func(g *job.TaskGroup) {
		g.PerTask.CPU, g.PerDevice = 0, resource.Vector{CPU: resource.CPUs(4), Memory: resource.GiB}
		g.PerNode.Devices = []resource.DeviceRequest{{Count: 2}}
	}), words: []string{"--cpus-per-gpu=4", "--mem-per-gpu=1G"}},
	"TaskGroup.Total":     {set: group(func(g *job.TaskGroup) { g.Total.Devices = []resource.DeviceRequest{{Count: 8}} }), words: []string{"--gpus=8"}},
	"TaskGroup.AllMemory": {set: group(func(g *job.TaskGroup) { g.AllMemory = true }), words: []string{"--mem=0"}},
	"TaskGroup.Exclusive": {set: group(func(g *job.TaskGroup) { g.Exclusive = true }), words: []string{"#SBATCH --exclusive"}},
	"TaskGroup.Constraint": {set: group(func(g *job.TaskGroup) {
		g.Constraint = job.Constraint{Text: "a&b", Alternatives: [][]string{{"a", "b"}}}
	}), words: []string{"--constraint=a&b"}},
	"TaskGroup.NodeList":     {set: group(func(g *job.TaskGroup) { g.NodeList = []string{"n1", "n2"} }), words: []string{"--nodelist=n[1-2]"}},
	"TaskGroup.Exclude":      {set: group(func(g *job.TaskGroup) { g.Exclude = []string{"n3"} }), words: []string{"--exclude=n3"}},
	"TaskGroup.Contiguous":   {set: group(func(g *job.TaskGroup) { g.Contiguous = true }), words: []string{"#SBATCH --contiguous"}},
	"TaskGroup.Elastic":      {set: group(func(g *job.TaskGroup) { g.Elastic = true }), error: "elastic"},
	"TaskGroup.Subgroup":     {set: group(func(g *job.TaskGroup) { g.Subgroup = 2 }), error: "subgroup"},
	"TaskGroup.Within":       {set: group(func(g *job.TaskGroup) { g.Within = 1 }), error: "within"},
	"TaskGroup.Segment":      {set: group(func(g *job.TaskGroup) { g.Segment = 2 }), words: []string{"--segment=2"}},
	"TaskGroup.Switches":     {set: group(func(g *job.TaskGroup) { g.Switches = 1 }), error: "switches_for"},
	"TaskGroup.Spread":       {set: group(func(g *job.TaskGroup) { g.Spread = true }), words: []string{"--spread-job"}},
	"TaskGroup.FewNodes":     {set: group(func(g *job.TaskGroup) { g.FewNodes = true }), words: []string{"--use-min-nodes"}},
	"TaskGroup.Wishes":       {set: group(func(g *job.TaskGroup) { g.Wishes.Switches = job.Wish{N: 1, For: time.Hour} }), words: []string{"--switches=1@1:00:00"}},
	"Wishes.Within":          {set: group(func(g *job.TaskGroup) { g.Wishes.Within = job.Wish{N: 1} }), error: "within_for"},
	"Wishes.Switches":        {none: "see TaskGroup.Wishes"},
	"Wishes.GPUs":            {set: group(func(g *job.TaskGroup) { g.Wishes.GPUs = []string{"a", "b"} }), error: "gpu_types"},
	"Wishes.GPUsFor":         {set: group(func(g *job.TaskGroup) { g.Wishes.GPUsFor = 1 }), error: "gpu_types"},
	"TaskGroup.Distribution": {set: group(func(g *job.TaskGroup) { g.Distribution = "cyclic" }), words: []string{"--distribution=cyclic"}},
}

// TestComponents: what each component of a heterogeneous job asks for is said for that
// component, in whatever form it came.
//
// Seen to fail with a name and an output that the components do not have and sbatch gives them.
func TestComponents(t *testing.T) {
	for _, form := range []string{"sbatch", "native"} {
		s := one()
		s.Source.Form = form
		s.Groups = append(s.Groups, job.TaskGroup{Nodes: job.Range{Min: 3, Max: 3}, Tasks: job.Count{Want: 3}, PerTask: s.Groups[0].PerTask})
		text, err := told(t, s, "#!/bin/sh\n#SBATCH -N2\n#SBATCH hetjob\n#SBATCH -N3\ntrue\n")
		if err != nil || !strings.Contains(text, "--nodes=2") || !strings.Contains(text, "--nodes=3") {
			t.Errorf("%s: %v\n%s", form, err, text)
		}
	}
}

// TestEveryFieldOfAJob: what Slurm is told of it, where Slurm places the job, or with which
// words it is refused. A new field has to be entered above.
func TestEveryFieldOfAJob(t *testing.T) {
	known := map[string]bool{}
	for prefix, of := range map[string]reflect.Type{"": reflect.TypeFor[job.Spec](), "TaskGroup.": reflect.TypeFor[job.TaskGroup](), "Wishes.": reflect.TypeFor[job.Wishes]()} {
		for i := range of.NumField() {
			name := prefix + of.Field(i).Name
			known[name] = true
			if _, ok := facts[name]; !ok {
				t.Errorf("nothing says what becomes of %s on Slurm", name)
			}
		}
	}
	for name, f := range facts {
		if !known[name] {
			t.Errorf("there is no field %s", name)
		}
		if f.none != "" {
			continue
		}
		s := one()
		if f.set != nil {
			f.set(s)
		}
		text, err := told(t, s, "")
		if f.error != "" {
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), f.error) {
				t.Errorf("%s: %v, want a refusal that names %s", name, err, f.error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range f.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		if f.not != "" && strings.Contains(text, f.not) {
			t.Errorf("%s: %q in\n%s", name, f.not, text)
		}
	}
}

// TestABatchScriptStaysWhatItWas: of public scripts' directives none changes but those of
// ours, nothing is said twice, and without the lines of the lock it is the same to the byte.
func TestABatchScriptStaysWhatItWas(t *testing.T) {
	all := corpus(t)
	about := regexp.MustCompile(`(?m)^#SBATCH.*(?:-a|-H|-d|-b|--array|--hold|--dep|--begin|--deadline|--wait|-W|--priority|--parsable|-M|--cluster)`)
	same := 0
	for name, text := range all {
		s, _, err := sbatch.Parse(spec.Source{Name: name, Data: []byte(text)}, sbatch.Options{Dir: "/w", Mail: true})
		if err != nil || len(s.Groups) > 1 {
			continue
		}
		e := &Engine{}
		w, err := e.buildSbatchJob(&job.Job{ID: 7, Spec: s}, engine.Ref{}, nil, []byte(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if got := unlock(t, script.Wrap(w.script, &script.Guard{Dir: "/l", Token: "x"}), w.script); got != string(w.script) {
			t.Errorf("%s: %q without its lock is\n%s", name, w.script, got)
		}
		if about.MatchString(text) {
			continue
		}
		same++
		if string(w.script) != text {
			t.Errorf("%s:\n%s\nbecomes\n%s", name, text, w.script)
		}
		for _, o := range w.options {
			option, _, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
			if !slices.Contains(always, option) {
				t.Errorf("%s: %s is said beside the script\n%s", name, o, text)
			}
		}
	}
	if same < 300 {
		t.Errorf("only %d scripts", same)
	}
}

// unlock takes the lock's lines out of a shell script; another's is what stands behind them.
func unlock(t *testing.T, wrapped, text []byte) string {
	t.Helper()
	if i := bytes.Index(wrapped, []byte("#--- the script, unpacked by the lines above ---\n")); i >= 0 {
		_, after, _ := bytes.Cut(wrapped[i:], []byte("\n"))
		return string(after)
	}
	before, rest, ok := bytes.Cut(wrapped, []byte("# coxswain: attempt "))
	_, after, ok2 := bytes.Cut(rest, []byte("# coxswain: end\n"))
	if !ok || !ok2 {
		t.Errorf("no lock in %q", wrapped)
	}
	out := string(before) + string(after)
	if !bytes.HasSuffix(text, []byte("\n")) && strings.HasSuffix(out, "\n") {
		out = strings.TrimSuffix(out, "\n") // a last line of directives gets its end
	}
	return out
}

// corpus are the batch scripts of this repository, and headers of public ones.
func corpus(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"../../examples/*.sbatch", "../../spec/route/testdata/*.job", "../../cmd/cox/testdata/*.sbatch"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(b)
		}
	}
	f, err := os.Open("../../spec/sbatch/testdata/sbatch-headers.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); d.More(); {
		var h struct {
			Lines []string `json:"lines"`
		}
		if err := d.Decode(&h); err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("header %d", len(out))] = "#!/bin/bash\n" + strings.Join(h.Lines, "\n") + "\n\nsrun true\n"
	}
	return out
}

// TestNativeScript is what a job of the native form becomes, whole.
func TestNativeScript(t *testing.T) {
	s, text, err := parseNative("name: train\nnodes: 2\ntasks_per_node: 2\ngpus_per_node: h100:2\nmemory: 8G\ntime: 4h\nenv: {A: \"1\"}\ncommand: |\n  export X=1\n  exec python3 train.py\n")
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{}
	w, err := e.buildSbatchJob(&job.Job{ID: 7, Spec: s}, engine.Ref{Allocation: 3, Attempt: 1}, nil, text)
	if err != nil {
		t.Fatal(err)
	}
	want := `#!/bin/sh
# Job 7 of Coxswain, attempt 3.1.
# It came as form native, file train.yaml, submitted from login:/w; the directives below were made of that.
#SBATCH --job-name=train
#SBATCH --time=04:00:00
#SBATCH --output=/w/slurm-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:h100:2
#SBATCH --mem=8G

# Every task runs this.
exec srun --kill-on-bad-exit=1 /bin/sh -c 'export X=1
exec python3 train.py
'
`
	if string(w.script) != want {
		t.Errorf("%s\nwant\n%s", w.script, want)
	}
}

func parseNative(text string) (*job.Spec, []byte, error) {
	s, script, _, err := native.Parse(spec.Source{Name: "train.yaml", Data: []byte(text)}, native.Options{Dir: "/w", Host: "login"})
	return s, script, err
}

// Wherever a job has it from, how often another one was put back is not said to its script:
// the name of the lock has it.
func TestHowOftenAnotherWasPutBack(t *testing.T) {
	s := one()
	s.Env.Export = "ALL,SLURM_RESTART_COUNT=3"
	s.Env.Set = []string{"SLURM_RESTART_COUNT=4", "B=2"}
	env := jobEnvironment(&order{Job: &job.Job{ID: 7, Spec: s}, Env: []string{"A=1", "SLURM_RESTART_COUNT=2"}}, &script.Guard{Dir: "/l"})
	text := "\n" + strings.Join(env, "\n") + "\n"
	if strings.Contains(text, "\nSLURM_RESTART_COUNT=") || !strings.Contains(text, "\nA=1\n") || !strings.Contains(text, "\nB=2\n") {
		t.Errorf("%s", text)
	}
}
