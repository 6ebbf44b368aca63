package route

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// ScriptFacts finds the facts about a job in its sbatch script. script and s are what sbatch
// made of the text, without any option from outside.
func ScriptFacts(src spec.Source, script *sbatch.Script, s *job.Spec) *Facts {
	f := &Facts{}
	lines := strings.Split(string(src.Data), "\n")
	at := func(n int, says string) Evidence {
		e := Evidence{File: src.Name, Line: n, Says: says}
		if n > 0 && n <= len(lines) {
			e.Text = strings.TrimSpace(lines[n-1])
		}
		return e
	}
	found := map[string]Evidence{}
	for _, component := range script.Components {
		for _, d := range component {
			if _, ok := found[d.Option]; !ok {
				found[d.Option] = at(d.Line, "--"+d.Option)
			}
		}
	}
	if script.Lines[0] > 0 {
		f.Set(BareMetal, 1, File, at(script.Lines[0], "a script for Slurm"))
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "#SBATCH") && strings.Contains(line, "--container-") {
			f.Set(Containers, 1, File, at(i+1, "container image"))
		}
	}
	if e := firstEvidence(found, []string{"chdir"}, "a path of the site"); len(e) > 0 {
		f.need(Need{Kind: NeedPath, What: sitePath(s.WorkDir), Evidence: e[0]})
	}
	scanScript(f, src.Name, string(src.Data), 1)
	fromSpec(f, s, found, []string{"nodes", "ntasks", "ntasks-per-node", "gpus", "gres", "nodelist"}, "container-image")
	return f
}

// DocumentFacts finds the facts about a job in its YAML or JSON. s is what the native form made
// of the document.
func DocumentFacts(file string, doc *yaml.Document, s *job.Spec) *Facts {
	f := &Facts{}
	found := map[string]Evidence{}
	note := func(fields []yaml.Field) {
		for _, x := range fields {
			if _, ok := found[x.Name]; !ok {
				found[x.Name] = Evidence{File: file, Line: x.Place.Line, Text: strings.TrimSpace(doc.Line(x.Place.Line)), Says: x.Name}
			}
		}
	}
	note(doc.Root.Fields)
	if groups := doc.Root.Get("groups"); groups != nil {
		for _, g := range groups.Items {
			note(g.Fields)
		}
	}
	if f.kept = s.Serve != nil; f.kept {
		f.Set(LongLivedService, 1, File, firstEvidence(found, []string{"kind"}, "a service")...)
	}
	for _, name := range []string{"script", "command", "env"} {
		scanNode(f, file, doc, name)
	}
	if n := doc.Root.Get("launcher"); n != nil && launcherCommands[n.Text] != "" {
		scanScript(f, file, launcherCommands[n.Text], n.Place.Line)
	}
	f.dropNeeds(NeedProgram) // jobs in this form name an image, or take that of their pool
	fromSpec(f, s, found, []string{"nodes", "tasks", "tasks_per_node", "gpus", "gpus_per_node", "nodelist"}, "image")
	return f
}

// launcherCommands is what each launcher of the native form stands for in a script.
var launcherCommands = map[string]string{"torchrun": "torchrun", "mpi": "mpirun", "ray": "ray start"}

// scanNode looks through the text of a field.
func scanNode(f *Facts, file string, doc *yaml.Document, name string) {
	n := doc.Root.Get(name)
	if n == nil {
		return
	}
	switch n.Kind {
	case yaml.Scalar:
		first := n.Place.Line
		if line := doc.Line(first); n.Place.Col <= len(line) && strings.ContainsAny(line[n.Place.Col-1:n.Place.Col], "|>") {
			first++ // the text of a block begins below
		}
		scanScript(f, file, n.Text, first)
	case yaml.List:
		var words []string
		for _, i := range n.Items {
			words = append(words, i.Text)
		}
		scanScript(f, file, strings.ReplaceAll(strings.Join(words, " "), "\n", " "), n.Place.Line)
	case yaml.Mapping: // variables
		for _, x := range n.Fields {
			scanScript(f, file, x.Name+"=", x.Place.Line)
		}
	}
}

// fromSpec states what the parsed job says: nodes, images, and tasks that start
// together on several nodes.
func fromSpec(f *Facts, s *job.Spec, found map[string]Evidence, counts []string, image string) {
	if !f.startsRuntime(Ray) {
		for _, e := range f.tuned {
			f.Set(TightlyCoupled, 1, File, e)
		}
	}
	nodes := 0
	for _, g := range s.Groups {
		nodes += leastNodes(g)
	}
	if nodes > 1 {
		f.Set(Nodes, nodes, File, firstEvidence(found, counts, fmt.Sprintf("%d nodes", nodes))...)
	} else if e := firstEvidence(found, counts[:1], "1 node"); len(e) > 0 && e[0].Line > 0 {
		f.Set(Nodes, 1, File, e...)
	}
	if s.Image != "" {
		f.imaged = true
		f.Set(Containers, 1, File, firstEvidence(found, []string{image}, "container image")...)
	} else if s.Pod != nil {
		f.imaged = true
		f.Set(Containers, 1, File, firstEvidence(found, []string{"kubernetes", "k8s", "pods", "pod"}, "what is asked of its pods")...)
	}
	if _, known := f.m[TightlyCoupled]; nodes > 1 && !known && len(f.steps) > 0 {
		f.Set(TightlyCoupled, 1, File, f.steps[0])
	}
	if s.Program.Kind != job.Batch && nodes > 1 {
		f.Set(TightlyCoupled, 1, File, firstEvidence(found, counts, "tasks of one command on several nodes start together")...)
	}
}

// Asked states what a job asks for with the options that it was submitted with: they outrank
// its text.
func Asked(f *Facts, s *job.Spec) {
	nodes := 0
	for _, g := range s.Groups {
		nodes += leastNodes(g)
	}
	const by = "options of the submission"
	if nodes != f.Get(Nodes).Value {
		f.Override(Nodes, nodes, by)
	}
	if _, known := f.m[TightlyCoupled]; known || nodes < 2 {
		return
	}
	switch {
	case s.Program.Kind != job.Batch:
		f.Set(TightlyCoupled, 1, Flag, Evidence{Text: by, Says: "tasks of one command on several nodes start together"})
	case len(f.steps) > 0:
		f.Set(TightlyCoupled, 1, File, f.steps[0])
	}
}

// leastNodes is the smallest number of nodes that a group can start on, as far as
// the job says it.
func leastNodes(g job.TaskGroup) int {
	n := max(g.Nodes.Min, len(g.NodeList), 1)
	if least := g.Tasks.Least(); g.TasksPerNode > 0 && least > 0 {
		n = max(n, (least+g.TasksPerNode-1)/g.TasksPerNode)
	}
	return n
}

// firstEvidence is the evidence of the first of some options that was given.
func firstEvidence(found map[string]Evidence, names []string, says string) []Evidence {
	for _, n := range names {
		if e, ok := found[n]; ok {
			e.Says = says
			return []Evidence{e}
		}
	}
	return nil
}
