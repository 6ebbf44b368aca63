package route

import (
	"regexp"
	"strings"
	"sync"
)

// pattern recognises what a command, an assignment or a line of Python uses.
type pattern struct {
	// One of these. A command is a program's name, with the first word behind its options where
	// that counts; a module is behind python -m.
	commands []string // "ray start", "uvicorn"
	modules  []string // "torch.distributed.run"; what begins so counts
	variable string   // regular expression of the name of a variable that is assigned
	code     string   // regular expression of a line that Python reads

	says  string
	facts []Key
	runs  Runtime // what starts the work, Plain if this does not
}

// patterns is the only place that says what is recognised.
var patterns = []pattern{
	{
		commands: []string{
			"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "jsrun", "aprun", "ibrun", "mpirun_rsh", "mpiexecjl", "prun", "upcrun", "charmrun",
			"ccc_mprun", "flux run", "poe", "mpprun", "horovodrun", "$MPIRUN",
		},
		says: "MPI launcher", facts: []Key{TightlyCoupled}, runs: MPI,
	},
	{code: `^\s*(?:from\s+mpi4py|import\s+mpi4py)\b`, modules: []string{"mpi4py"}, says: "mpi4py", facts: []Key{TightlyCoupled}, runs: MPI},
	{code: `^\s*import\s+horovod\b`, says: "Horovod", facts: []Key{TightlyCoupled}, runs: MPI},
	{commands: []string{"torchrun"}, says: "torchrun", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{modules: []string{"torch.distributed"}, code: `\btorch\.distributed\b`, says: "torch.distributed", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{commands: []string{"deepspeed"}, code: `^\s*import\s+deepspeed\b`, says: "DeepSpeed", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{commands: []string{"accelerate launch"}, modules: []string{"accelerate.commands.launch"}, says: "accelerate launch", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{commands: []string{"colossalai run"}, says: "colossalai run", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{variable: `MASTER_ADDR`, says: "ranks that meet at MASTER_ADDR", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{code: `\bjax\.distributed\.initialize\b`, says: "jax.distributed", facts: []Key{TightlyCoupled}},

	{commands: []string{"ray start", "ray up", "ray submit", "ray job", "ray symmetric-run"}, says: "Ray", facts: []Key{PythonPipeline}, runs: Ray},
	{code: `^\s*(?:import\s+ray\b|from\s+ray\b)|\bray\.init\(`, says: "Ray", facts: []Key{PythonPipeline}, runs: Ray},
	{variable: `RAY_ADDRESS|RAY_HEAD_[A-Z]+`, says: "a Ray cluster", facts: []Key{PythonPipeline}, runs: Ray},

	{
		commands: []string{
			"uvicorn", "gunicorn", "hypercorn", "ollama serve", "streamlit run", "jupyter lab", "jupyter notebook", "jupyter server",
			"jupyter-lab", "jupyter-notebook", "jupyter-server", "jupyterhub", "code-server", "rserver", "tensorboard", "redis-server", "mongod", "mlflow ui",
			"mlflow server", "bentoml serve", "serve run", "flask run", "torchserve", "dask-scheduler", "dask scheduler", "gradio",
		},
		modules: []string{"http.server", "uvicorn", "gunicorn", "flask", "streamlit", "jupyter", "notebook", "tensorboard", "dask.distributed", "distributed.cli.dask_scheduler"},
		says:    "a server", facts: []Key{LongLivedService},
	},
	{
		commands: []string{
			"vllm serve", "tritonserver", "text-generation-launcher", "text-embeddings-router", "trtllm-serve", "lmdeploy serve", "llama-server", "sglang serve",
		},
		modules: []string{"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "sglang.launch_server", "fastchat.serve", "llama_cpp.server"},
		says:    "an inference server", facts: []Key{LongLivedService},
	},
	{commands: []string{"sleep infinity", "tail /dev/null"}, says: "runs until it is stopped", facts: []Key{LongLivedService}},
	{code: `^\s*(?:uvicorn\.run|serve\.run|app\.run)\(`, says: "a server", facts: []Key{LongLivedService}},

	{commands: []string{"docker run", "docker exec", "docker compose", "podman run", "podman exec", "podman compose", "nerdctl run", "nerdctl exec"}, says: "containers", facts: []Key{Containers}},
	{
		commands: []string{
			"apptainer run", "apptainer exec", "apptainer shell", "apptainer instance", "singularity run", "singularity exec", "singularity shell", "singularity instance",
		},
		says: "Apptainer", facts: []Key{Containers},
	},
	{commands: []string{"enroot start", "enroot import", "enroot create"}, says: "enroot", facts: []Key{Containers}},

	{
		commands: []string{"module load", "module add", "module swap", "module purge", "module use", "module restore", "ml"},
		says:     "modules of the machines' own software", facts: []Key{BareMetal},
	},
	{commands: []string{"spack load", "spack env"}, says: "the machines' own software", facts: []Key{BareMetal}},
	{commands: []string{"k3s", "k3d", "minikube", "kind create"}, says: "a small cluster", facts: []Key{EdgeOrDev}},
}

// patternIndex finds the patterns of a command quickly.
type patternIndex struct {
	commands map[string][]int // by a program's name, and by name and word
	variable []*regexp.Regexp // by the place in the table; nil: none
	code     []*regexp.Regexp
}

// compiled is the index of the table. It is made when it is first needed: most commands never are
// asked for advice.
var compiled = sync.OnceValue(func() *patternIndex {
	x := &patternIndex{map[string][]int{}, make([]*regexp.Regexp, len(patterns)), make([]*regexp.Regexp, len(patterns))}
	for i, p := range patterns {
		for _, c := range p.commands {
			x.commands[c] = append(x.commands[c], i)
		}
		if p.variable != "" {
			x.variable[i] = regexp.MustCompile(`^(?:` + p.variable + `)$`)
		}
		if p.code != "" {
			x.code[i] = regexp.MustCompile(p.code)
		}
	}
	return x
})

// matchCommand lists the patterns of a program with its arguments.
func (x *patternIndex) matchCommand(program string, args []string) (found []int) {
	found = append(found, x.commands[program]...)
	if word := firstPlain(args); word != "" {
		found = append(found, x.commands[program+" "+word]...)
	}
	return found
}

// firstPlain is the first argument that is no option.
func firstPlain(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// matchModule lists the patterns of a module behind python -m.
func matchModule(name string) (found []int) {
	for i, p := range patterns {
		for _, m := range p.modules {
			if name == m || strings.HasPrefix(name, m+".") {
				found = append(found, i)
				break
			}
		}
	}
	return found
}
