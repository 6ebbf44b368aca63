package route

import (
	"fmt"
	"strings"
	"testing"
)

// TestDocTable keeps docs/reference/advise.md what the tables say.
func TestDocTable(t *testing.T) { golden(t, "../../docs/reference/advise.md", document()) }

func document() string {
	var b strings.Builder
	b.WriteString("# Where work belongs\n\nMade from the tables in advise/ by `make docs`.\n\n" +
		"`cox advise FILE` reads the facts from an sbatch script or a job in YAML, each with the line that shows it. Flags override them;\n" +
		"without a file the flags state them all. `--expect slurm` (or `ray on kubernetes`) makes it a check: exit 4 if the advice differs.\n" +
		"The answer is an engine, a runtime on it, and what has to be added. Advice never refuses a job.\n\n## Facts\n\n| fact | meaning | recognised by |\n|---|---|---|\n")
	for _, k := range keys {
		var by []string
		for _, p := range patterns {
			for _, f := range p.facts {
				if f == k.key && !strings.Contains(strings.Join(by, ", "), p.says) {
					by = append(by, p.says)
				}
			}
		}
		switch k.key {
		case Nodes:
			by = []string{"nodes, tasks and tasks of a node, named nodes"}
		case BareMetal:
			by = append(by, "lines #SBATCH")
		case TightlyCoupled:
			by = append(by, "srun with MPI", "settings of NCCL where no Ray is started", "srun, or a command of every task, on several nodes")
		case Containers:
			by = append(by, "container image of srun", "image")
		case MultiTenant:
			by = append(by, "several accounts of a pool that is configured")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", k.key, k.meaning, strings.Join(by, ", "))
	}
	b.WriteString("\nFacts that nothing states are taken as no, and nodes as 1. Advice looks for programs only where a command begins. It skips arguments,\nprinted text, values of variables that are never run, and here documents that no interpreter reads.\n\n## Scripts that need the machines\n\nSome scripts need things that a container does not have: modules, software of spack or conda, home directories, file systems of the\nsite, containers or a Ray cluster that the script starts itself, jobs that it submits, or programs without a named image. Advice keeps\nsuch a script on the machines, on Slurm or on this server's own machines. After `or` it names the place that suits the script's shape\nand what would have to be true: \"kubernetes, if an image holds cuda/12.1 and ~/venv is on a volume\". With `--bare-metal=false` you\nstate that the script needs none of these things.\n\n## Rules\n\nOf the rules for the engine, and of those for the runtime, the first that applies decides. All other rules that apply are shown.\n\n| rule | about | if | then | why |\n|---|---|---|---|---|\n")
	stages := [...]string{"engine", "runtime", "add-on", "split"}
	for _, r := range rules {
		var when []string
		for _, c := range r.When {
			when = append(when, c.String())
		}
		then := r.Then
		if r.AddOn != nil {
			then = r.AddOn.Name
			if r.AddOn.Required {
				then += ", required"
			}
		}
		if len(when) == 0 {
			when = []string{"always"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name, stages[r.Stage], strings.Join(when, ", "), then, r.Why)
	}
	b.WriteString("\nOn 12 of 256 combinations of facts this differs from a published rule that it otherwise follows: Ray on k3s for coupled work on\nseveral nodes needs a gang scheduler. k3s is Kubernetes: its scheduler places pod by pod, so the same deadlock is possible.\n")
	b.WriteString("\n## Which pool\n\nA job that names no pool, or several, goes to the first pool of this order that could run it, unless another one is expected to\nstart it clearly earlier ([one-queue.md](../explanation/one-queue.md#which-pool)). The first line in which two pools differ\ndecides. Pools that start coupled work piece by piece, or only reserve for it, come last and are never chosen. An earlier start\ndoes not outrank `as-it-is` and `real-devices`. `--pool`, and then `jobs.pool` of the configuration, outrank the order.\n\n| rule | first is |\n|---|---|\n")
	for _, p := range preferences {
		fmt.Fprintf(&b, "| %s | %s |\n", p.Rule, p.Says)
	}
	b.WriteString("\n`cox show -o json` has the rule as `spec.chosen.rule`; `earliest-start` is a pool that comes later in the order and starts the\njob earlier, `site` is `jobs.pool`, `not-known-yet` a pool that has not said which nodes\nit has, where no other can run the job.\n")
	return b.String()
}
