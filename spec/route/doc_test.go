package route

import (
	"fmt"
	"strings"
	"testing"
)

// TestDocTable keeps docs/advise.md what the tables say.
func TestDocTable(t *testing.T) { golden(t, "../../docs/advise.md", document()) }

func document() string {
	var b strings.Builder
	b.WriteString("# Where work belongs\n\nMade from the tables in advise/ by `make docs`.\n\n" +
		"`cox advise FILE` reads the facts from an sbatch script or a job in YAML, each with the line that shows it. Flags override them;\n" +
		"without a file, flags alone say them. `--expect slurm` (or `ray on kubernetes`) makes it a check: exit 4 if the advice is another.\n" +
		"The answer is an engine, a runtime on it, and what has to be added. Nothing is refused because of an advice.\n\n## Facts\n\n| fact | meaning | recognised by |\n|---|---|---|\n")
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
	b.WriteString("\nA fact that nothing states is taken as no, and nodes as 1. Programs are recognised where a command begins: arguments, text that\nis printed, values of variables that are never run, and here documents that no interpreter reads are not.\n\n## As it is\n\nA script may take things from the machines that a container does not have: modules, software of spack and conda, home directories and\nfile systems of the site, containers that it starts by itself, a Ray cluster that it starts by srun, jobs that it submits, and programs where no image is\nnamed. Such a script runs on the machines as it is, so that is advised, and the answer says with `or` where its shape belongs and what that\ntakes: \"kubernetes, if an image holds cuda/12.1 and ~/venv is on a volume\". `--bare-metal=false` says that it needs none of it. Pools of this server's own machines do as well as Slurm there.\n\n## Rules\n\nOf the rules for the engine, and of those for the runtime, the first that applies decides; of the others all that apply speak.\n\n| rule | about | if | then | why |\n|---|---|---|---|---|\n")
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
	b.WriteString("\n## Which pool\n\nA job that names no pool, on a server that has several, goes to the first that could run it, in this order; the first line in\nwhich two pools differ decides. Pools that start coupled work piece by piece, or only reserve for it, come last and are never\nchosen. `--pool`, and then `jobs.pool` of the configuration, outrank it. What is free at the moment does not count\n([pools.md](pools.md#which-pool-runs-a-job)).\n\n| rule | first is |\n|---|---|\n")
	for _, p := range preferences {
		fmt.Fprintf(&b, "| %s | %s |\n", p.Rule, p.Says)
	}
	b.WriteString("\n`cox show -o json` has the rule as `spec.chosen.rule`; `site` is `jobs.pool`, `not-known-yet` a pool that has not said which nodes\nit has, where no other can run the job.\n")
	return b.String()
}
