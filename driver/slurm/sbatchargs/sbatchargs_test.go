package sbatchargs

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

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs/sbatchargstest"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// told returns everything that Slurm is told of a job: script, options, variables.
func told(t *testing.T, s *job.Spec, text string) (string, error) {
	t.Helper()
	j := &job.Job{ID: 7, Spec: s}
	w, err := Settings{}.Build(j, engine.Ref{Allocation: 3, Attempt: 1}, []fleet.Claim{{Node: "n1", Tasks: 2}, {Node: "n2", Tasks: 2}}, []byte(text))
	if err != nil {
		return "", err
	}
	env := Environment(j, []string{"HOME=/home/u", "SBATCH_ARRAY_INX=1-3", "A=1"}, &script.Guard{Dir: "/l"})
	out := string(w.Script) + "ARGS " + strings.Join(w.Args, " ") + "\n" + strings.Join(w.Options, "\n") + "\n"
	for _, m := range w.Components {
		out += ": " + strings.Join(m, "\n: ") + "\n"
	}
	return out + strings.Join(env, "\n") + "\n", nil
}

// TestComponents: what each component of a heterogeneous job asks for is said for that
// component, in whatever form it came.
//
// Seen to fail with a name and an output that the components do not have and sbatch gives them.
func TestComponents(t *testing.T) {
	for _, form := range []string{"sbatch", "native"} {
		s := sbatchargstest.Job()
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
			if _, ok := sbatchargstest.Fields[name]; !ok {
				t.Errorf("nothing says what becomes of %s on Slurm", name)
			}
		}
	}
	for name, f := range sbatchargstest.Fields {
		if !known[name] {
			t.Errorf("there is no field %s", name)
		}
		if f.None != "" {
			continue
		}
		s := sbatchargstest.Job()
		if f.Set != nil {
			f.Set(s)
		}
		text, err := told(t, s, "")
		if f.Error != "" {
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), f.Error) {
				t.Errorf("%s: %v, want a refusal that names %s", name, err, f.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range f.Words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		if f.Not != "" && strings.Contains(text, f.Not) {
			t.Errorf("%s: %q in\n%s", name, f.Not, text)
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
		w, err := Settings{}.Build(&job.Job{ID: 7, Spec: s}, engine.Ref{}, nil, []byte(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if got := unlock(t, script.Wrap(w.Script, &script.Guard{Dir: "/l", Token: "x"}), w.Script); got != string(w.Script) {
			t.Errorf("%s: %q without its lock is\n%s", name, w.Script, got)
		}
		if about.MatchString(text) {
			continue
		}
		same++
		if string(w.Script) != text {
			t.Errorf("%s:\n%s\nbecomes\n%s", name, text, w.Script)
		}
		for _, o := range w.Options {
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
	for _, pattern := range []string{"../../../examples/*.sbatch", "../../../spec/route/testdata/*.job", "../../../cmd/cox/testdata/*.sbatch"} {
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
	f, err := os.Open("../../../spec/sbatch/testdata/sbatch-headers.jsonl.gz")
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
	w, err := Settings{}.Build(&job.Job{ID: 7, Spec: s}, engine.Ref{Allocation: 3, Attempt: 1}, nil, text)
	if err != nil {
		t.Fatal(err)
	}
	want := `#!/bin/sh
# Job 7 of Coxswain, attempt 3.1.
# It came as form native, file train.yaml, submitted from login:/w; the directives below were made of that.
#SBATCH --job-name=train
#SBATCH --time=04:00:00
#SBATCH --no-requeue
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
	if string(w.Script) != want {
		t.Errorf("%s\nwant\n%s", w.Script, want)
	}
}

func parseNative(text string) (*job.Spec, []byte, error) {
	s, script, _, err := native.Parse(spec.Source{Name: "train.yaml", Data: []byte(text)}, native.Options{Dir: "/w", Host: "login"})
	return s, script, err
}

// Wherever a job has it from, how often another one was put back is not said to its script:
// the name of the lock has it.
func TestHowOftenAnotherWasPutBack(t *testing.T) {
	s := sbatchargstest.Job()
	s.Env.Export = "ALL,SLURM_RESTART_COUNT=3"
	s.Env.Set = []string{"SLURM_RESTART_COUNT=4", "B=2"}
	env := Environment(&job.Job{ID: 7, Spec: s}, []string{"A=1", "SLURM_RESTART_COUNT=2"}, &script.Guard{Dir: "/l"})
	text := "\n" + strings.Join(env, "\n") + "\n"
	if strings.Contains(text, "\nSLURM_RESTART_COUNT=") || !strings.Contains(text, "\nA=1\n") || !strings.Contains(text, "\nB=2\n") {
		t.Errorf("%s", text)
	}
}

// TestAvoid: nodes that slurmctld is not to choose are excluded for each component, beside those that the job and
// the pool exclude, whose own words sbatch would not count any more. Where the nodes are chosen nothing is said.
//
// Seen to fail with: the nodes of the pool's option left out, and those of the job.
func TestAvoid(t *testing.T) {
	for _, form := range []string{"sbatch", "native"} {
		s := sbatchargstest.Job()
		s.Source.Form, s.Groups[0].Exclude = form, []string{"n9"}
		s.Groups = append(s.Groups, job.TaskGroup{Nodes: job.Range{Min: 3, Max: 3}, Tasks: job.Count{Want: 3}, PerTask: s.Groups[0].PerTask, Exclude: []string{"n9"}})
		j, text := &job.Job{ID: 7, Spec: s}, []byte("#!/bin/sh\n#SBATCH --exclude=n9\n#SBATCH hetjob\n#SBATCH -N3 --exclude=n9\ntrue\n")
		c := Settings{Options: []string{"--exclude=m[1-2]"}, Avoid: []string{"n4", "n3"}}
		w, err := c.Build(j, engine.Ref{Allocation: 3, Attempt: 1}, nil, text)
		if err != nil {
			t.Fatal(err)
		}
		last := func(list []string) (out string) {
			for _, o := range list {
				if strings.HasPrefix(o, "--exclude=") {
					out = o
				}
			}
			return out
		}
		if a, b := last(w.Options), last(w.Components[0]); a != "--exclude=m[1-2],n[3-4,9]" || b != a {
			t.Errorf("%s: %s and %s", form, a, b)
		}
		c.Options = []string{"--exclude=/etc/nodes"}
		if _, err := c.Build(j, engine.Ref{}, nil, text); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("with a file of nodes: %v", err)
		}
	}
	c := Settings{Placed: true, Avoid: []string{"n4"}}
	s := sbatchargstest.Job()
	s.Groups = s.Groups[:1]
	if w, err := c.Build(&job.Job{ID: 7, Spec: s}, engine.Ref{}, []fleet.Claim{{Node: "n1", Tasks: 1}}, []byte("#!/bin/sh\n")); err != nil || strings.Contains(strings.Join(w.Options, " "), "exclude") {
		t.Errorf("placed: %v", err)
	}
}
