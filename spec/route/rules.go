package route

import "fmt"

// Engine is where work runs.
type Engine string

// The engines that are advised.
const (
	Slurm      Engine = "slurm"
	Kubernetes Engine = "kubernetes"
	K3s        Engine = "k3s"
)

// Runtime is what runs the work's parts on an engine.
type Runtime string

// The runtimes. Plain work has none.
const (
	Plain    Runtime = ""
	Ray      Runtime = "ray"
	MPI      Runtime = "mpi"
	Torchrun Runtime = "torchrun"
)

// Stage groups the rules: of those that choose the engine the first that applies
// decides, of the others every one that applies speaks.
type Stage uint8

// The stages, in order.
const (
	ChooseEngine Stage = iota
	ChooseRuntime
	ChooseAddOn
	ChooseSplit
)

// Condition is a test of one fact, or of the engine that was chosen.
type Condition struct {
	Fact   Key
	Is     bool     // what the fact must be; of Nodes: more than one
	Engine []Engine // instead of a fact: the engine is one of these
	Used   Runtime  // instead of a fact: the work starts this by itself
	Needs  bool     // instead of a fact: the work takes things from the machines as it is written
	Kept   bool     // instead of a fact: it is, or is not (Is), written as a service (kind: service)
}

// AddOn is something that must or should be there beside the engine.
type AddOn struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Why      string `json:"why"`
}

// Rule is one line of the table.
type Rule struct {
	Name  string
	Stage Stage
	When  []Condition // all must hold

	// What follows. Of these the one that the stage is about is set.
	Engine  Engine
	Runtime Runtime
	AddOn   *AddOn
	Split   bool // services apart from batch work

	Then string // what follows in a word, for the trace
	Why  string // one sentence
}

// asItIs is the rule for work that takes things from the machines. Any pool of machines will do.
const asItIs = "as-it-is"

// GangScheduler is the add-on that admits coupled work whole.
const GangScheduler = "gang scheduler"

var onKubernetes = []Engine{Kubernetes, K3s}

// rules is the only place that says what follows from what.
var rules = []Rule{
	{
		Name: "coupled-on-bare-metal", Stage: ChooseEngine, Engine: Slurm, Then: "Slurm",
		When: []Condition{{Fact: TightlyCoupled, Is: true}, {Fact: Nodes, Is: true}, {Fact: BareMetal, Is: true}},
		Why:  "Slurm starts coupled tasks on whole machines together, next to each other and on the machines' own network, without anything added",
	},
	{
		Name: "small-cluster", Stage: ChooseEngine, Engine: K3s, Then: "k3s",
		When: []Condition{{Fact: EdgeOrDev, Is: true}},
		Why:  "k3s is Kubernetes in one process: it fits where machines are few, far off or somebody's own",
	},
	{
		Name: asItIs, Stage: ChooseEngine, Engine: Slurm, Then: "Slurm",
		When: []Condition{{Needs: true}},
		Why:  "it takes software and files from the machines, which a container does not have: as it is it runs on the machines themselves",
	},
	{
		Name: "service", Stage: ChooseEngine, Engine: Kubernetes, Then: "Kubernetes",
		When: []Condition{{Kept: true, Is: true}},
		Why:  "Coxswain keeps a service alive on every engine: on this machine, on Slurm and on Kubernetes, which probes the replicas beside them and gives each an address of its own",
	},
	{
		Name: "anything-else", Stage: ChooseEngine, Engine: Kubernetes, Then: "Kubernetes",
		Why: "Kubernetes runs work of every kind in containers, restarts it and keeps services",
	},
	{
		Name: "python-on-ray", Stage: ChooseRuntime, Runtime: Ray, Then: "Ray",
		When: []Condition{{Fact: PythonPipeline, Is: true}, {Engine: onKubernetes}},
		Why:  "Ray runs Python functions and actors and moves their data; it is a runtime on the engine, which still places its machines",
	},
	{
		Name: "ray-inside-slurm", Stage: ChooseRuntime, Runtime: Ray, Then: "Ray started by the script",
		When: []Condition{{Fact: PythonPipeline, Is: true}, {Engine: []Engine{Slurm}}},
		Why:  "inside a Slurm job Ray has the nodes of the job and no more: it does not grow and shrink",
	},
	{
		Name: "torch-launcher", Stage: ChooseRuntime, Runtime: Torchrun, Then: "torchrun",
		When: []Condition{{Used: Torchrun}},
		Why:  "the work starts its ranks by torchrun or by the variables that torch.distributed reads",
	},
	{
		Name: "mpi-launcher", Stage: ChooseRuntime, Runtime: MPI, Then: "MPI",
		When: []Condition{{Used: MPI}},
		Why:  "the work starts its ranks by MPI",
	},
	{
		Name: "gang-on-kube", Stage: ChooseAddOn, AddOn: &AddOn{Name: GangScheduler, Required: true}, Then: "gang",
		When: []Condition{{Fact: TightlyCoupled, Is: true}, {Fact: Nodes, Is: true}, {Engine: onKubernetes}, {Fact: PythonPipeline, Is: false}},
		Why:  "coupled work of more than one node on a Kubernetes scheduler, k3s too, must be admitted whole, or two such jobs can each hold half and wait for ever",
	},
	{
		Name: "ray-on-kube-gang", Stage: ChooseAddOn, AddOn: &AddOn{Name: GangScheduler, Required: true}, Then: "gang",
		When: []Condition{{Fact: TightlyCoupled, Is: true}, {Fact: Nodes, Is: true}, {Engine: onKubernetes}, {Fact: PythonPipeline, Is: true}},
		Why:  "a Ray cluster whose workers are coupled is such work as well: on a Kubernetes scheduler, k3s too, it must be admitted whole, or two of them can each hold half and wait for ever",
	},
	{
		Name: "tenants-on-kube", Stage: ChooseAddOn, AddOn: &AddOn{Name: "quotas by tenant"}, Then: "quotas",
		When: []Condition{{Fact: MultiTenant, Is: true}, {Engine: onKubernetes}},
		Why:  "Kubernetes' own quotas refuse work instead of letting it wait: a queue with a share for each tenant (Kueue, KAI, Volcano, or Coxswain's accounts) does",
	},
	{
		Name: "containers-on-slurm", Stage: ChooseAddOn, AddOn: &AddOn{Name: "container runtime on the nodes"}, Then: "containers",
		When: []Condition{{Fact: Containers, Is: true}, {Engine: []Engine{Slurm}}},
		Why:  "Slurm brings no containers: the nodes need enroot with pyxis, Apptainer or Podman",
	},
	{
		Name: "services-apart", Stage: ChooseSplit, Split: true, Then: "services on Kubernetes",
		When: []Condition{{Fact: LongLivedService, Is: true}, {Kept: true, Is: false}, {Engine: []Engine{Slurm}}},
		Why:  "a service in a batch job ends with its time limit: write it with kind: service, which Coxswain keeps alive on every engine, or keep services in a partition of the machines that Kubernetes has, the coupled work on Slurm",
	},
}

// Rules returns a copy of the table.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// holds reports whether a condition holds, and the fact that says so.
func (c Condition) holds(f *Facts, e Engine) (Fact, bool) {
	switch {
	case c.Needs:
		return Fact{}, len(f.Needs()) > 0
	case c.Kept:
		return Fact{}, f.kept == c.Is
	case c.Used != Plain:
		return Fact{}, f.startsRuntime(c.Used)
	case len(c.Engine) > 0:
		for _, x := range c.Engine {
			if x == e {
				return Fact{}, true
			}
		}
		return Fact{}, false
	}
	fact := f.Get(c.Fact)
	return fact, fact.Yes() == c.Is
}

// String is the condition as documentation shows it.
func (c Condition) String() string {
	switch {
	case c.Needs:
		return "it needs something of the machines"
	case c.Kept && c.Is:
		return "its kind is service"
	case c.Kept:
		return "its kind is not service"
	case c.Used != Plain:
		return "it starts " + string(c.Used)
	case len(c.Engine) > 0:
		text := "engine is " + string(c.Engine[0])
		for _, e := range c.Engine[1:] {
			text += " or " + string(e)
		}
		return text
	case c.Fact == Nodes && c.Is:
		return "nodes > 1"
	case !c.Is:
		return fmt.Sprintf("not %s", c.Fact)
	}
	return string(c.Fact)
}
