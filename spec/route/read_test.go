package route

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// factsOf parses a text by the end of its name, as the intake does.
func factsOf(name, text string) (*Facts, error) {
	src := spec.Source{Name: name, Data: []byte(text)}
	if strings.HasSuffix(name, ".yaml") {
		doc, err := yaml.Parse(src)
		if err != nil {
			return nil, err
		}
		s, _, _, err := native.ParseDocument(doc, name, native.Options{Dir: "/", Now: now, Mail: true})
		if err != nil {
			return nil, err
		}
		return DocumentFacts(name, doc, s), nil
	}
	script, err := sbatch.Read(src)
	if err != nil {
		return nil, err
	}
	r, err := sbatch.ParseScript(script, sbatch.Options{Dir: "/", Now: now, Mail: true})
	if err != nil {
		return nil, err
	}
	return ScriptFacts(src, script, r.Job), nil
}

func read(t *testing.T, name, text string) *Facts {
	t.Helper()
	f, err := factsOf(name, text)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return f
}

// stated lists what a file states: "coupled 4", the fact and the line.
func stated(f *Facts) string {
	var out []string
	for _, fact := range f.All() {
		if fact.Origin == Assumed {
			continue
		}
		s := fact.String()
		for _, e := range fact.Evidence {
			s += fmt.Sprintf(" %d", e.Line)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestFactsOfScripts(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"srun ./a", ""},
		{"mpirun -np 4 ./a", "coupled 2"},
		{"  time mpiexec.hydra ./a", "coupled 2"},
		{"srun --mpi=pmix ./a", "coupled 2"},
		{"export NCCL_DEBUG=INFO", "coupled 2"},
		{"python -m torch.distributed.run x.py", "coupled 2"},
		{"torchrun x.py\ntorchrun y.py", "coupled 2 3"},
		{"accelerate launch x.py", "coupled 2"},
		{"srun deepspeed x.py", "coupled 2"},
		{"ray start --head", "python-native pipeline 2"},
		{"ray job submit -- python x.py", "python-native pipeline 2"},
		{"python - <<'EOF'\nimport ray\nray.init()\nEOF", "python-native pipeline 3 4"},
		{"vllm serve model --port 8000", "long-lived services 2"},
		{"python -m http.server 80", "long-lived services 2"},
		{"exec uvicorn app:x", "long-lived services 2"},
		{"module load cuda\nml load gcc", "bare metal 2 3"},
		{"apptainer exec x.sif ./a", "containers 2"},
		{"srun --container-image=x ./a", "containers 2"},
		{"kind create cluster", "edge or development 2"},
		// noise
		{"# mpirun ./a", ""},
		{"./a # mpirun", ""},
		{"echo running torchrun now", ""},
		{"echo \"first line \\\n torchrun later\"", ""},
		{"printf 'mpirun\\n'", ""},
		{"echo $(mpirun ./a)", "coupled 2"},
		{"echo x; mpirun ./a", "coupled 2"},
		{"cat <<EOF\nmpirun ./a\nimport ray\nEOF\ntorchrun x", "coupled 6"},
		{"cat > x.py <<-'PY'\nimport ray\n\tPY\nray start", "python-native pipeline 5"},
		{"./my-mpirun-wrapper", ""},
		{"./array start", ""},
		{"grep -c torchrun_x file", ""},
		{"python <<< 'x'\nmpirun ./a", "coupled 3"},
		{"bash <<EOF\nmpirun ./a\nEOF", "coupled 3"},
	} {
		if got := stated(read(t, "x.sh", "#!/bin/bash\n"+c.body+"\n")); got != c.want {
			t.Errorf("%q: %q, want %q", c.body, got, c.want)
		}
	}
}

func TestFactsOfDirectives(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"#!/bin/bash\n#SBATCH -J x\n#SBATCH -N 4\nsrun ./a\n", "4 nodes 3, coupled 4, bare metal 2"},
		{"#!/bin/bash\n#SBATCH --nodes=2-8\nsrun -N1 -n1 ./a &\n", "2 nodes 2, bare metal 2"},
		{"#!/bin/bash\n#SBATCH -n 64 --ntasks-per-node=16\nmpirun ./a\n", "4 nodes 2, coupled 3, bare metal 2"},
		{"#!/bin/bash\n#SBATCH -N1\n#SBATCH --container-image=x\n./a\n", "1 node 2, bare metal 2, containers 3"},
		{"#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\n./a\n", "3 nodes 2, bare metal 2"},
	} {
		if got := stated(read(t, "x.sbatch", c.text)); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestFactsOfYAML(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"command: ./a\n", ""},
		{"nodes: 4\ncommand: ./a\n", "4 nodes 1, coupled 1"},
		{"nodes: 1\ncommand: torchrun x\n", "1 node 1, coupled 2"},
		{"image: x\ncommand: [mpirun, ./a]\n", "coupled 2, containers 1"},
		{"tasks: 4\nkubernetes: {pods: task}\ncommand: ./a\n", "containers 2"},
		{"nodes: 2\nscript: |\n  # mpirun\n  ray start --head\n\n  srun ./a\n", "2 nodes 1, coupled 6, python-native pipeline 4"},
		{"env:\n  NCCL_DEBUG: INFO\ncommand: ./a\n", "coupled 2"},
		{"groups:\n- nodes: 2\n- tasks: 1\nscript: a\n", "3 nodes 2"},
		{"script: \"vllm serve m\"\n", "long-lived services 1"},
	} {
		if got := stated(read(t, "x.yaml", c.text)); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestTranscripts keeps what people and programs are told, for whole files.
func TestTranscripts(t *testing.T) {
	pools := []Pool{
		{"k8s-a", "kube", engine.Abilities{Gang: engine.GangStrict}},
		{"k8s-q", "kube", engine.Abilities{Gang: engine.GangApproximate}},
		{"slurm-b", "slurm", engine.Abilities{Gang: engine.GangStrict}},
	}
	files, err := filepath.Glob("testdata/*.job")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f := read(t, strings.TrimSuffix(filepath.Base(file), ".job"), string(data))
		if strings.Contains(file, "rl.yaml") {
			f.Tenants("shared", 3)
		}
		a := Advise(f)
		a.Judge(pools)
		asJSON, err := json.MarshalIndent(a, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, strings.TrimSuffix(file, ".job")+".txt", a.Text())
		golden(t, strings.TrimSuffix(file, ".job")+".json", string(asJSON)+"\n")
	}
}

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

// TestTextIsSafe: a file cannot put control characters on a terminal.
func TestTextIsSafe(t *testing.T) {
	f := read(t, "x.sh", "#!/bin/sh\nmpirun \x1b[31m\xff "+strings.Repeat("x", 5000)+"\n")
	for line := range strings.SplitSeq(Advise(f).Text(), "\n") {
		if strings.Contains(line, "\x1b") || !utf8.ValidString(line) || len(line) > 250 {
			t.Errorf("%q", line)
		}
	}
}

// TestLargeScriptsAreScannedInLinearTime with lines that patterns look at long.
func TestLargeScriptsAreScannedInLinearTime(t *testing.T) {
	for _, line := range []string{"mpirun ./a\n", "cat <<EOF\n", strings.Repeat("srun ", 700) + "\n", "import ray\n"} {
		text := "#!/bin/sh\n" + strings.Repeat(line, 400_000/len(line))
		from := time.Now()
		f := &Facts{}
		scanScript(f, "x", text, 1)
		if took := time.Since(from); took > 20*time.Second {
			t.Errorf("%.20q: %v", line, took)
		}
		if len(f.launchers)+len(f.steps) > 2*maxFound {
			t.Errorf("%.20q: %d findings kept", line, len(f.launchers)+len(f.steps))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("x.sh", "#!/bin/sh\n#SBATCH -N2\ncat <<EOF\nEOF\nmpirun\n")
	f.Add("x.yaml", "nodes: 2\nscript: |\n  ray start\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		facts, err := factsOf(name, text)
		if err != nil {
			return
		}
		a := Advise(facts)
		_ = a.Text()
		lines := strings.Count(text, "\n") + 1
		for _, fact := range a.Facts {
			for _, e := range fact.Evidence {
				if e.Line > lines+1 {
					t.Fatalf("line %d of %d: %+v", e.Line, lines, e)
				}
			}
		}
	})
}
