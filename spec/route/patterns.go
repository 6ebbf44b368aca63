package route

import (
	"regexp"
	"sync"
)

// pattern recognises in one line of a program what it uses.
type pattern struct {
	is    string   // regular expression
	has   []string // one of these stands in the line, or nothing is looked for
	says  string
	facts []Key
	runs  Runtime // what starts the work, Plain if this does not
	code  bool    // a line of Python; looked for in here documents as well
}

// Beginnings and ends of a word of a shell command.
const (
	word = `(?:^|[\s;&|(='"/` + "`" + `])`
	end  = `(?:$|[\s;&|)'"` + "`" + `])`
)

// patterns is the only place that says what is recognised.
var patterns = []pattern{
	{is: word + `(?:mpirun|mpiexec|orterun|prterun|mpiexec\.hydra|jsrun|aprun)` + end, has: []string{"mpi", "prterun", "orterun", "jsrun", "aprun"}, says: "MPI launcher", facts: []Key{TightlyCoupled}, runs: MPI},
	{is: word + `srun\b.*\s--mpi(?:=|\s)(?:pmi|openmpi|cray)`, has: []string{"--mpi"}, says: "srun with MPI", facts: []Key{TightlyCoupled}, runs: MPI},
	{is: `^\s*(?:from\s+mpi4py|import\s+mpi4py)\b`, has: []string{"mpi4py"}, says: "mpi4py", facts: []Key{TightlyCoupled}, runs: MPI, code: true},
	{is: word + `horovodrun` + end + `|^\s*import\s+horovod`, has: []string{"horovod"}, says: "Horovod", facts: []Key{TightlyCoupled}, runs: MPI, code: true},
	{is: word + `torchrun` + end, has: []string{"torchrun"}, says: "torchrun", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{is: `\btorch\.distributed\b`, has: []string{"torch.distributed"}, says: "torch.distributed", facts: []Key{TightlyCoupled}, runs: Torchrun, code: true},
	{is: word + `deepspeed` + end + `|^\s*import\s+deepspeed\b`, has: []string{"deepspeed"}, says: "DeepSpeed", facts: []Key{TightlyCoupled}, runs: Torchrun, code: true},
	{is: word + `accelerate\s+launch` + end, has: []string{"accelerate"}, says: "accelerate launch", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{is: `\b(?:NCCL|RCCL)_[A-Z_]+\s*=`, has: []string{"CCL_"}, says: "settings of NCCL", facts: []Key{TightlyCoupled}},
	{is: `\bMASTER_ADDR\s*=`, has: []string{"MASTER_ADDR"}, says: "ranks that meet at MASTER_ADDR", facts: []Key{TightlyCoupled}, runs: Torchrun},
	{is: `\bjax\.distributed\.initialize\b`, has: []string{"jax.distributed"}, says: "jax.distributed", facts: []Key{TightlyCoupled}, code: true},

	{is: word + `ray\s+(?:start|up|submit|job\s+submit)` + end, has: []string{"ray"}, says: "Ray", facts: []Key{PythonPipeline}, runs: Ray},
	{is: `^\s*(?:import\s+ray\b|from\s+ray\b)|\bray\.init\(`, has: []string{"ray"}, says: "Ray", facts: []Key{PythonPipeline}, runs: Ray, code: true},
	{is: `\b(?:RAY_ADDRESS|RAY_HEAD_[A-Z]+)\s*=`, has: []string{"RAY_"}, says: "a Ray cluster", facts: []Key{PythonPipeline}, runs: Ray},

	{is: word + `(?:uvicorn|gunicorn|hypercorn|tritonserver|text-generation-launcher|ollama\s+serve|streamlit\s+run|jupyter(?:-|\s+)(?:lab|notebook|server)|code-server|tensorboard|redis-server|mlflow\s+(?:ui|server)|bentoml\s+serve|serve\s+run)` + end, has: []string{"uvicorn", "gunicorn", "hypercorn", "tritonserver", "text-generation-launcher", "ollama", "streamlit", "jupyter", "code-server", "tensorboard", "redis-server", "mlflow", "bentoml", "serve"}, says: "a server", facts: []Key{LongLivedService}},
	{is: word + `vllm\s+serve` + end + `|\bvllm\.entrypoints\.(?:openai\.)?api_server\b|\bsglang\.launch_server\b`, has: []string{"vllm", "sglang"}, says: "an inference server", facts: []Key{LongLivedService}},
	{is: `-m\s+http\.server\b|\bsleep\s+infinity\b|\btail\s+-f\s+/dev/null\b`, has: []string{"http.server", "infinity", "/dev/null"}, says: "runs until it is stopped", facts: []Key{LongLivedService}},
	{is: `^\s*(?:uvicorn\.run|serve\.run|app\.run)\(`, has: []string{".run("}, says: "a server", facts: []Key{LongLivedService}, code: true},

	{is: word + `(?:docker|podman|nerdctl)\s+(?:run|exec|compose)` + end, has: []string{"docker", "podman", "nerdctl"}, says: "containers", facts: []Key{Containers}},
	{is: word + `(?:apptainer|singularity)\s+(?:run|exec|shell|instance)` + end, has: []string{"apptainer", "singularity"}, says: "Apptainer", facts: []Key{Containers}},
	{is: word + `enroot\s+(?:start|import|create)` + end, has: []string{"enroot"}, says: "enroot", facts: []Key{Containers}},
	{is: `\s--container-(?:image|name)(?:=|\s)`, has: []string{"--container-"}, says: "container image", facts: []Key{Containers}},

	{is: word + `(?:module|ml)\s+(?:load|add|swap|purge|use)` + end, has: []string{"module", "ml"}, says: "modules of the machines' own software", facts: []Key{BareMetal}},
	{is: word + `spack\s+load` + end, has: []string{"spack"}, says: "the machines' own software", facts: []Key{BareMetal}},
	{is: word + `(?:k3s|k3d|minikube|kind\s+create)` + end, has: []string{"k3s", "k3d", "minikube", "kind"}, says: "a small cluster", facts: []Key{EdgeOrDev}},
}

// compiled are the patterns ready for use. They are made when they are first needed:
// most commands never are asked for advice.
var compiled = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(p.is)
	}
	return out
})
