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
				submits(1, "a", small(0)), submits(2, "b", held(small(0))), submits(3, "c", small(0)),
				alters(6, "a", model.Cancel, control.Cancel{Grace: time.Second}), alters(8, "b", model.Release, control.Hold{}),
				alters(9, "c", model.Hold, control.Hold{On: true}), alters(200, "c", model.Release, control.Hold{}),
			}
		},
		"requeued": func(*World) []Act {
			return []Act{
				submits(1, "a", gang()), alters(10, "a", model.Requeue, control.Requeue{}), alters(30, "a", model.Requeue, control.Requeue{Hold: true}),
				alters(40, "a", model.Release, control.Hold{}), alters(150, "a", model.Requeue, control.Requeue{}),
			}
		},
		"an array": func(*World) []Act {
			s := small(0)
			s.Array = &job.ArraySpec{Text: "0-3%1", Indices: []uint32{0, 1, 2, 3}, MaxRunning: 1, Step: 1}
			two := uint32(2)
			return []Act{submits(1, "a", s), alters(20, "a", model.SetLimit, control.Update{MaxRunning: &two}), alters(21, "a", model.Cancel, control.Cancel{})}
		},
		"dependencies": func(*World) []Act {
			kill := true
			return []Act{
				submits(1, "a", small(0)), depends(2, "b", "a", job.AfterOK, &kill), depends(3, "c", "a", job.AfterNotOK, &kill),
				depends(4, "d", "b", job.AfterAny, nil), alters(5, "d", model.Other, control.Top{}),
			}
		},
		"times": func(w *World) []Act {
			begins, late, long := small(0), small(0), small(5*time.Minute)
			begins.Begin, late.Deadline = w.start.Add(40*time.Second), w.start.Add(20*time.Second)
			late.Held = true
			short := time.Second
			return []Act{
				submits(1, "a", begins), submits(2, "b", late), submits(3, "c", long),
				alters(8, "c", model.Other, control.Update{TimeLimit: &short}),
			}
		},
		"drained": func(w *World) []Act {
			n := w.machine.nodes[0].Name
			acts := []Act{}
			for i := range 6 {
				s := small(0)
				s.Groups[0].Exclusive = true
				acts = append(acts, submits(1+i, fmt.Sprintf("a%d", i), s))
			}
			return append(acts,
				Act{"d drains " + n, 5 * time.Second, func(w *World) { w.drain("d", n, true) }},
				Act{"e resumes " + n, 50 * time.Second, func(w *World) { w.drain("e", n, false) }})
		},
		"a node is lost": func(w *World) []Act {
			again := gang()
			again.Requeue = true
			n := w.machine.nodes[0].Name
			return []Act{
				submits(1, "a", again), submits(2, "b", gang()), outraged(12, NodeLost, n), outraged(60, NodeSilent, n),
			}
		},
		"the engine forgets": func(w *World) []Act {
			again := small(0)
			again.Requeue = true
			return []Act{submits(1, "a", again), submits(2, "b", small(0)), outraged(10, EngineAmnesia, ""), outraged(50, EngineRestart, "")}
		},
	}
}

func small(limit time.Duration) *job.Spec {
	one := job.TaskGroup{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(2)}}}
	return &job.Spec{
		Owner: job.Owner{User: "ann", UID: 1000}, WorkDir: "/work", TimeLimit: limit, Groups: []job.TaskGroup{one},
		Program: job.Program{Kind: job.Batch, ScriptName: "x"}, Source: job.Source{Form: "sbatch"},
	}
}

func held(s *job.Spec) *job.Spec {
	s.Held = true
	return s
}

func gang() *job.Spec {
	s := small(0)
	g := &s.Groups[0]
	g.Tasks.Want, g.Nodes, g.TasksPerNode = 2, job.Range{Min: 2, Max: 2}, 1
	return s
}

func submits(at int, name string, s *job.Spec) Act {
	s.Name = name
	return Act{name + " is submitted", time.Duration(at) * time.Second, func(w *World) { w.submit(name, s) }}
}

func depends(at int, name, on string, kind job.DependencyKind, kill *bool) Act {
	s := small(0)
	s.Name = name
	return Act{name + " is submitted", time.Duration(at) * time.Second, func(w *World) { w.submit(name, w.resolve(s, &wait{kind, on, kill})) }}
}

func alters(at int, target string, verb model.Verb, op control.Op) Act {
	name := fmt.Sprintf("%s of %s at %d", verb, target, at)
	return Act{name, time.Duration(at) * time.Second, func(w *World) {
		if id, ok := w.jobs[target]; ok {
			limit := uint32(0)
			if u, is := op.(control.Update); is && u.MaxRunning != nil {
				limit = *u.MaxRunning
			}
			w.alter(name, verb, limit, []job.ID{id}, op)
		}
	}}
}

func outraged(at int, kind Fault, node string) Act {
	name := fmt.Sprintf("%s at %d", kind, at)
	return Act{name, time.Duration(at) * time.Second, func(w *World) { w.outrage(kind, name, node, 15*time.Second, 0) }}
}

// PlanNames are the names of Plans in order.
func PlanNames() (names []string) {
	for name := range Plans() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
