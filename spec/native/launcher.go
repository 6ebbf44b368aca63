package native

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/launcher"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// aLauncher is the form of launcher.
var aLauncher = form{text: strings.Join(launcher.Kinds(), ", "), schema: func() schema { return schema{"enum": launcher.Kinds()} }}

func setLauncher(p *parser, d *draft, v value) {
	s, ok := p.parseText(v)
	if ok && !slices.Contains(launcher.Kinds(), s) {
		p.failValue(v, "write "+strings.Join(launcher.Kinds(), " or ")+"; without it every task runs command", "%q is no launcher", shortName(s))
		return
	}
	d.launcher = launcher.Kind(s)
}

// settleLauncher makes the script of a launcher of the command. The group is settled already.
func (p *parser) settleLauncher(d *draft, base string) {
	v, ok := d.given["launcher"]
	command, hasCommand := d.given["command"]
	if !ok || d.launcher == "" {
		return
	}
	s := d.spec
	if !hasCommand {
		p.failValue(v, "write command: and the program that it starts", "needs command; a script starts its ranks itself")
		return
	}
	if _, many := d.given["groups"]; many || len(s.Groups) != 1 {
		p.failValue(v, "write the fields of the group at the top", "starts one group of tasks, and there is groups")
		return
	}
	g := &s.Groups[0]
	plan := launcher.Plan{Kind: d.launcher, RanksPerNode: g.TasksPerNode, GPUsPerTask: g.PerTask.DeviceCount()}
	if kill, said := d.given["kill_on_bad_exit"]; said && !s.KillOnBadExit {
		plan.KeepGoing = true
		if d.launcher == launcher.MPI {
			p.failValue(kill, "leave it out", "MPI ends all ranks when one fails")
		}
	}
	if g.Elastic {
		p.failValue(d.flat.given["elastic"], "leave it out, or leave launcher out", "a launcher's ranks are as many as at the start")
	}
	if d.launcher == launcher.Torchrun {
		p.settleTorchrun(d, g)
	}
	if command.Kind == yaml.List {
		plan.Words = s.Program.Args
	} else {
		plan.Line = s.Program.Args[len(s.Program.Args)-1] // of sh -c
	}
	script, err := launcher.Script(plan)
	if err != nil {
		p.failValue(command, fault.Remedy(err), "%v", err)
		return
	}
	d.script = []byte(script)
	s.Program, s.KillOnBadExit = job.Program{Kind: job.Batch, ScriptName: base, Args: p.opts.ScriptArgs}, false
	p.defaultOutputs(s)
}

// settleTorchrun checks what a group says of ranks: torchrun starts them, a node's at once.
func (p *parser) settleTorchrun(d *draft, g *job.TaskGroup) {
	if v, ok := d.flat.given["tasks"]; ok {
		p.failValue(v, "say tasks_per_node, or leave it out: one rank for each GPU", "torchrun starts the ranks of a node together")
	}
	if v, ok := d.flat.given["gpus_per_task"]; ok {
		p.failValue(v, "say gpus_per_node: each rank chooses its GPU by LOCAL_RANK", "torchrun's ranks share the GPUs of their node")
	}
	if g.TasksPerNode == 0 && g.Tasks.Want == 0 && g.Nodes.Min > 0 {
		g.TasksPerNode = 1 // of a range of nodes each has one torchrun
	}
}
