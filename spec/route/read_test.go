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
		if native.IsService(doc) {
			sv, _, err := native.ParseService(doc, name, native.Options{Dir: "/", Now: now})
			if err != nil {
				return nil, err
			}
			return DocumentFacts(name, doc, &sv.Job), nil
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
		{"ibrun ./a", "coupled 2"},
		{"mpirun_rsh -np 4 ./a", "coupled 2"},
		{"mpiexecjl -n 4 julia a.jl", "coupled 2"},
		{"prun ./a", "coupled 2"},
		{"upcrun -n 4 ./a", "coupled 2"},
		{"./charmrun +p4 ./a", "coupled 2"},
		{"ccc_mprun ./a", "coupled 2"},
		{"flux run -n4 ./a", "coupled 2"},
		{"colossalai run --nproc_per_node 4 x.py", "coupled 2"},
		{"${MPIRUN} -np 4 ./a", "coupled 2"},
		{"$SRUN torchrun x.py", "coupled 2"},
		{"time -p \\\n  mpirun \\\n ./a", "coupled 2"},
		{"CMD=\"torchrun x.py\"\nsrun bash -c \"$CMD\"", "coupled 3"},
		{"LAUNCH='torchrun x.py'\n$LAUNCH --more", "coupled 2"},
		{"if true; then mpirun ./a; fi", "coupled 2"},
		{"for i in 1 2; do mpirun ./a; done", "coupled 2"},
		{"f() {\n mpirun ./a\n}\nf", "coupled 3"},
		{"A=$(mpirun ./a)", "coupled 2"},
		{"A=`mpirun ./a`", "coupled 2"},
		{"(cd x && mpirun ./a)", "coupled 2"},
		{"apptainer exec --nv x.sif torchrun x.py", "coupled 2, containers 2"},
		{"flask run --host 0.0.0.0", "long-lived services 2"},
		{"torchserve --start", "long-lived services 2"},
		{"trtllm-serve m", "long-lived services 2"},
		{"lmdeploy serve api_server m", "long-lived services 2"},
		{"/usr/lib/rstudio-server/bin/rserver --www-port 8787", "long-lived services 2"},
		{"dask-scheduler --port 8786", "long-lived services 2"},
		{"mongod --dbpath x", "long-lived services 2"},
		{"python -m vllm.entrypoints.openai.api_server --model m", "long-lived services 2"},
		{"srun --job-name tensorboard tensorboard --logdir x", "long-lived services 2"},
		{"NCCL_DEBUG=INFO srun -N1 ray start --head", "python-native pipeline 2"},
		// noise
		{"TB_DIR=/x/tensorboard", ""},
		{"pip install tensorboard uvicorn", ""},
		{"pip install ray[default] && python x.py", ""},
		{"srun --job-name torchrun ./a", ""},
		{"ls mpirun torchrun", ""},
		{"A=mpirun", ""},
		{"ml list\nml spider gcc", ""},
		{"cat > run.sh <<EOF\nflask run\nmodule load cuda\nEOF", ""},
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

// TestNeeds: what a script takes from the machines, and what it would take to run it in containers.
func TestNeeds(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"module load cuda/12.1\nsource ~/venv/bin/activate\npython x.py", "an image holds cuda/12.1 and ~/venv is on a volume"},
		{"hostname", ""},
		{"cd /tmp && ls /usr/bin /dev/shm", ""},
		{"cd $HOME/work", "$HOME/work is on a volume"},
		{"./solve in.txt", "an image holds ./solve"},
		{"#SBATCH -D /project/x\nhostname", "/project/x is on a volume"},
		{"curl -o x https://a.b/home/x/y", "an image holds curl"},
		{"echo /home/x/y", ""},
		{"sed -i s/a/b/ x; grep /home/x y", ""},
		{"spack load gromacs", "an image holds gromacs"},
		{"mpirun -np 4 ./a", "an image holds ./a"},
		{"singularity exec --nv x.sif python x.py", "the job names its image in place of singularity"},
		{"srun --container-image=a/b:c --container-mounts=/home/u/x:/data python /data/x.py", "the job names its image in place of srun's container and /home/u/x is on a volume"},
		{"sbatch next.sh", "its containers can submit the jobs that it submits by sbatch"},
		{"srun -N1 ray start --head --block", "an image holds ray and a Ray cluster is there for it: the script starts one by srun"},
	} {
		a := Advise(read(t, "x.sh", "#!/bin/bash\n#SBATCH -J x\n"+c.body+"\n"))
		got := joinConditions(conditionsOf(a.Needs))
		if got != c.want || (got != "") != (a.Engine == Slurm) || (a.Or != nil) != (got != "") {
			t.Errorf("%q: %s, %s; want %s", c.body, a.Engine, got, c.want)
		}
	}
	f := read(t, "x.sh", "#!/bin/bash\nmodule load cuda\n")
	f.Override(BareMetal, 0, "--bare-metal=false")
	if a := Advise(f); a.Engine != Kubernetes || a.Or != nil {
		t.Errorf("with --bare-metal=false: %s", a.Title())
	}
}

// TestOneSettingOfNCCLTurnsNothing: Ray that srun starts belongs where srun is, with and without it.
func TestOneSettingOfNCCLTurnsNothing(t *testing.T) {
	const text = "#!/bin/bash\n#SBATCH -N 4\n%ssrun -N1 -n1 -w \"$head\" ray start --head --block &\nsrun -N1 -n1 ray start --address $head --block &\npython x.py\n"
	without := Advise(read(t, "x.sh", fmt.Sprintf(text, "")))
	with := Advise(read(t, "x.sh", fmt.Sprintf(text, "export NCCL_DEBUG=WARN\n")))
	if without.Title() != "ray on slurm" || with.Title() != without.Title() {
		t.Errorf("%s, and with it %s", without.Title(), with.Title())
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
	for _, line := range []string{"mpirun ./a\n", "cat <<EOF\n", strings.Repeat("srun ", 700) + "\n", "import ray\n", "${", "$((", "$(", "`", "'", "<<A\n", "A=$B env "} {
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

// A launcher of the native form says what starts the ranks, and that they belong together.
func TestLauncherIsEvidence(t *testing.T) {
	for name, want := range map[string]Runtime{"torchrun": Torchrun, "mpi": MPI, "ray": Ray} {
		a := Advise(read(t, "job.yaml", "nodes: 2\nlauncher: "+name+"\ncommand: a.py\n"))
		if a.Runtime != want || a.NeedsGang() == (want == Ray) { // Ray's own tasks do not wait for each other
			t.Errorf("launcher: %s is advised as %s, a gang: %v", name, a.Runtime, a.NeedsGang())
		}
	}
}
