package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Plans are small fixed workloads by name, in which every kind of journal record but
// those of tokens is written. They fit into any fleet of a seed.
func Plans() map[string]func(*World) []Act {
	return map[string]func(*World) []Act{
		"cancelled, held, released": func(*World) []Act {
			return []Act{
				submitAct(1, "a", smallJob(0)), submitAct(2, "b", heldJob(smallJob(0))), submitAct(3, "c", smallJob(0)),
				alterAct(6, "a", model.Cancel, control.Cancel{Grace: time.Second}), alterAct(8, "b", model.Release, control.Hold{}),
				alterAct(9, "c", model.Hold, control.Hold{On: true}), alterAct(200, "c", model.Release, control.Hold{}),
			}
		},
		"requeued": func(*World) []Act {
			return []Act{
				submitAct(1, "a", gangJob()), alterAct(10, "a", model.Requeue, control.Requeue{}), alterAct(30, "a", model.Requeue, control.Requeue{Hold: true}),
				alterAct(40, "a", model.Release, control.Hold{}), alterAct(150, "a", model.Requeue, control.Requeue{}),
			}
		},
		"an array": func(*World) []Act {
			s := smallJob(0)
			s.Array = &job.ArraySpec{Text: "0-3%1", Indices: []uint32{0, 1, 2, 3}, MaxRunning: 1, Step: 1}
			two := uint32(2)
			return []Act{submitAct(1, "a", s), alterAct(20, "a", model.SetLimit, control.Update{MaxRunning: &two}), alterAct(21, "a", model.Cancel, control.Cancel{})}
		},
		"dependencies": func(*World) []Act {
			kill := true
			return []Act{
				submitAct(1, "a", smallJob(0)), dependAct(2, "b", "a", job.AfterOK, &kill), dependAct(3, "c", "a", job.AfterNotOK, &kill),
				dependAct(4, "d", "b", job.AfterAny, nil), alterAct(5, "d", model.Other, control.Top{}),
			}
		},
		"times": func(w *World) []Act {
			begins, late, long := smallJob(0), smallJob(0), smallJob(5*time.Minute)
			begins.Begin, late.Deadline = w.start.Add(40*time.Second), w.start.Add(20*time.Second)
			late.Held = true
			short := time.Second
			return []Act{
				submitAct(1, "a", begins), submitAct(2, "b", late), submitAct(3, "c", long),
				alterAct(8, "c", model.Other, control.Update{TimeLimit: &short}),
			}
		},
		"a controller": func(w *World) []Act {
			d := w.dice.streamFor("part", "plan")
			part := job.Part{Controller: controllerName, Revision: 1}
			next := part
			next.Try = 1
			return []Act{
				{"a keeps a document", time.Second, func(w *World) { w.keepDocument("a") }},
				partAct("b", 2*time.Second, part, d), partAct("c", 2*time.Second, part, d), partAct("d", 9*time.Second, part, d),
				{"e keeps a document", 10 * time.Second, func(w *World) { w.keepDocument("e") }},
				alterAct(20, "b", model.Cancel, control.Cancel{Grace: time.Second}), partAct("f", 30*time.Second, next, d),
				{"g forgets its document", 40 * time.Second, func(w *World) { w.forgetDocument("g") }},
			}
		},
		"drained": func(w *World) []Act {
			n := w.machine.nodes[0].Name
			acts := []Act{}
			for i := range 6 {
				s := smallJob(0)
				s.Groups[0].Exclusive = true
				acts = append(acts, submitAct(1+i, fmt.Sprintf("a%d", i), s))
			}
			return append(acts,
				Act{"d drains " + n, 5 * time.Second, func(w *World) { w.drainNode("d", n, true) }},
				Act{"e resumes " + n, 50 * time.Second, func(w *World) { w.drainNode("e", n, false) }})
		},
		"a node is lost": func(w *World) []Act {
			again := gangJob()
			again.Requeue = true
			n := w.machine.nodes[0].Name
			return []Act{
				submitAct(1, "a", again), submitAct(2, "b", gangJob()), outrageAct(12, NodeLost, n), outrageAct(60, NodeSilent, n),
			}
		},
		"the engine forgets": func(w *World) []Act {
			again := smallJob(0)
			again.Requeue = true
			return []Act{submitAct(1, "a", again), submitAct(2, "b", smallJob(0)), outrageAct(10, EngineAmnesia, ""), outrageAct(50, EngineRestart, "")}
		},
	}
}

func smallJob(limit time.Duration) *job.Spec {
	one := job.TaskGroup{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(2)}}}
	return &job.Spec{
		Owner: job.Owner{User: "ann", UID: 1000}, WorkDir: "/work", TimeLimit: limit, Groups: []job.TaskGroup{one},
		Program: job.Program{Kind: job.Batch, ScriptName: "x"}, Source: job.Source{Form: "sbatch"},
	}
}

func heldJob(s *job.Spec) *job.Spec {
	s.Held = true
	return s
}

func gangJob() *job.Spec {
	s := smallJob(0)
	g := &s.Groups[0]
	g.Tasks.Want, g.Nodes, g.TasksPerNode = 2, job.Range{Min: 2, Max: 2}, 1
	return s
}

func submitAct(at int, name string, s *job.Spec) Act {
	s.Name = name
	return Act{name + " is submitted", time.Duration(at) * time.Second, func(w *World) { w.submitJob(name, s) }}
}

func dependAct(at int, name, on string, kind job.DependencyKind, kill *bool) Act {
	s := smallJob(0)
	s.Name = name
	return Act{name + " is submitted", time.Duration(at) * time.Second, func(w *World) { w.submitJob(name, w.resolveNumbers(s, &wait{kind, on, kill})) }}
}

func alterAct(at int, target string, verb model.Verb, op control.Op) Act {
	name := fmt.Sprintf("%s of %s at %d", verb, target, at)
	return Act{name, time.Duration(at) * time.Second, func(w *World) {
		if id, ok := w.jobs[target]; ok {
			limit := uint32(0)
			if u, is := op.(control.Update); is && u.MaxRunning != nil {
				limit = *u.MaxRunning
			}
			w.alterJobs(name, verb, limit, []job.ID{id}, op)
		}
	}}
}

func outrageAct(at int, kind Fault, node string) Act {
	name := fmt.Sprintf("%s at %d", kind, at)
	return Act{name, time.Duration(at) * time.Second, func(w *World) { w.injectOutrage(kind, name, node, 15*time.Second, 0) }}
}

// PlanNames are the names of Plans in order.
func PlanNames() (names []string) {
	for name := range Plans() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
