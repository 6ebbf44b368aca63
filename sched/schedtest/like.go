package schedtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file compares what the core does with what another scheduler does on the same
// scenario, and has jobs run that it did not start itself.

// deeds is what a step did.
type deeds struct {
	starts map[job.ID]string // in which flavours
	tasks  map[job.ID]string // how many of each group: "20+10"
	stops  map[job.ID]bool
}

func (d *deeds) noteDecision(x sched.Decision) {
	if d.starts == nil {
		d.starts, d.tasks, d.stops = map[job.ID]string{}, map[job.ID]string{}, map[job.ID]bool{}
	}
	switch x := x.(type) {
	case sched.Start:
		d.starts[x.Job] = strings.Join(slices.Sorted(slices.Values(x.Flavors)), ",")
		d.tasks[x.Job] = tasksOf(x.Claims)
	case sched.Preempt:
		d.stops[x.Job] = true
	}
}

func tasksOf(claims []fleet.Claim) string {
	var of []int
	for i := range claims {
		for len(of) <= claims[i].Group {
			of = append(of, 0)
		}
		of[claims[i].Group] += claims[i].Tasks
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(of), "[]"), " ", "+")
}

// readLike reads "starts ID in FLAVOR,… [with TASKS+…] and ID in …; stops ID …".
func (r *runner) readLike(args []string) {
	want := deeds{}
	want.noteDecision(nil)
	starts, stops, _ := strings.Cut(strings.Join(args, " "), ";")
	for _, one := range strings.Split(strings.TrimPrefix(starts, "starts"), " and ") {
		id, flavors, _ := strings.Cut(strings.TrimSpace(one), " in ")
		flavors, tasks, counted := strings.Cut(flavors, " with ")
		if n, err := parseID(id); err == nil {
			want.starts[n] = flavors
			if counted {
				want.tasks[n] = tasks
			}
		}
	}
	for _, id := range strings.Fields(strings.TrimPrefix(strings.TrimSpace(stops), "stops")) {
		if n, err := parseID(id); err == nil {
			want.stops[n] = true
		}
	}
	r.asks = append(r.asks, func() string { return r.did.compareDeeds(want) + "\n" })
}

// compareDeeds says "like it", or what is different.
func (d *deeds) compareDeeds(want deeds) string {
	var out []string
	say := func(word string, ids []job.ID) {
		if len(ids) > 0 {
			slices.Sort(ids)
			text := word
			for _, id := range ids {
				text += " " + strconv.FormatUint(uint64(id), 10)
			}
			out = append(out, text)
		}
	}
	say("not started:", missingJobs(want.starts, d.starts))
	say("started too:", missingJobs(d.starts, want.starts))
	say("not stopped:", missingJobs(want.stops, d.stops))
	say("stopped too:", missingJobs(d.stops, want.stops))
	var other []job.ID
	for id, f := range want.starts {
		if g, ok := d.starts[id]; ok && f != g {
			other = append(other, id)
		}
	}
	say("in other flavors:", other)
	var fewer []job.ID
	for id, n := range want.tasks {
		if g, ok := d.tasks[id]; ok && n != g {
			fewer = append(fewer, id)
		}
	}
	say("with other tasks:", fewer)
	if len(out) == 0 {
		return "like it"
	}
	return "unlike it: " + strings.Join(out, "; ")
}

func missingJobs[V any](want, got map[job.ID]V) (out []job.ID) {
	for id := range want {
		if _, ok := got[id]; !ok {
			out = append(out, id)
		}
	}
	return out
}

// readInstant takes the word KEY=DURATION out of the words of a job; now if there is none.
func (r *runner) readInstant(key string, args []string) (sched.Instant, []string, error) {
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, key+"=") })
	if i < 0 {
		return sched.Instant(r.now), args, nil
	}
	d, err := time.ParseDuration(args[i][len(key)+1:])
	return sched.Instant(d), slices.Delete(slices.Clone(args), i, i+1), err
}

// startRunning has a job run on the node that was named last.
func (r *runner) startRunning(args []string) error {
	id, err := parseID(args[0])
	if err != nil {
		return err
	}
	at, rest, err := r.readInstant("at", args[1:])
	if err != nil {
		return err
	}
	since, rest, err := r.readInstant("since", rest)
	if err != nil {
		return err
	}
	e := sched.Restored{Job: id, Submitted: at, Began: since}
	rest = slices.DeleteFunc(rest, func(a string) bool {
		flavors, is := strings.CutPrefix(a, "in=")
		if is {
			e.Flavors = strings.Split(flavors, ",")
		}
		e.Stopping = e.Stopping || a == "leaving"
		return is || a == "leaving"
	})
	if e.Spec, e.Priority, err = parseSpec(rest); err != nil {
		return err
	}
	for i := range e.Spec.Groups {
		g := &e.Spec.Groups[i]
		if len(g.PerTask.Devices)+len(g.PerNode.Devices)+len(g.Total.Devices) > 0 || cmp.Or(g.Nodes.Min, g.Nodes.Max) > 1 {
			return fmt.Errorf("only tasks without devices on one node may run")
		}
		n := g.Tasks.Want
		c := fleet.Claim{Node: r.last, Group: i, Tasks: n, Take: g.PerTask.Scale(n)}
		e.Claims = append(e.Claims, c)
	}
	r.add(e)
	return nil
}
