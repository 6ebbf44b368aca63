package sched_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// slow is the oracle of limits with what runs by the book.
func (w *world) slow() *limit.Slow {
	if w.oracle != nil && w.oracle.Policy == w.policy {
		return w.oracle
	}
	s := &limit.Slow{Policy: w.policy, Now: int64(w.now) / int64(time.Second)}
	for id, h := range w.book.Held {
		j := w.job(h.Asked(), h.Claims)
		j.Endless, j.Until = h.Until == 0, int64(h.Until)/int64(time.Second)
		if full := w.parked[id]; full != nil { // what it lends counts too, and what is left of its time
			j = w.job(h.Asked(), full)
			j.Rests = true
			j.Seconds, j.Endless = w.core.Left(id)
		}
		s.Running = append(s.Running, j)
	}
	s.All = w.all()
	w.oracle = s
	return s
}

// all is what there is, in the cluster and in each partition with a QOS of its own.
func (w *world) all() map[string]account.TRES {
	out := map[string]account.TRES{"": {}}
	for _, p := range w.policy.Partitions {
		out[p.Name] = account.TRES{}
	}
	for base, all := range out {
		for _, l := range w.policy.Licenses {
			all["license/"+l.Name] = resource.Amount(l.Count)
		}
		for _, n := range w.book.Nodes {
			if base != "" && len(n.Parts) > 0 && !slices.Contains(n.Parts, base) {
				continue
			}
			all["node"]++
			all["cpu"] += n.Capacity.CPU
			all["memory"] += n.Capacity.Memory
			all["disk"] += n.Capacity.Disk
			all["tape"] += n.Capacity.Get("tape")
			for _, d := range n.Devices {
				all[d.Kind] += resource.Amount(resource.WholeDevice)
				all[d.Kind+":"+d.Type] += resource.Amount(resource.WholeDevice)
			}
		}
	}
	return out
}

// job is what claims hold, by name.
func (w *world) job(spec *job.Spec, claims []fleet.Claim) limit.SlowJob {
	j := limit.SlowJob{Key: keyOf(spec), Held: account.TRES{}, Fullest: account.TRES{}, Seconds: int64(spec.TimeLimit / time.Second), Endless: spec.TimeLimit == 0, AsUsed: spec.Endless()}
	nodes := map[string]account.TRES{}
	for _, c := range claims {
		one := nodes[c.Node]
		if one == nil {
			one = account.TRES{"node": 1}
			nodes[c.Node] = one
		}
		one["cpu"] += c.Take.CPU
		one["memory"] += c.Take.Memory
		one["disk"] += c.Take.Disk
		one["tape"] += c.Take.Get("tape")
		for _, d := range c.Devices {
			one["gpu"] += resource.Amount(d.Share)
			for _, x := range w.book.Nodes[c.Node].Devices {
				if x.Index == d.Index {
					one["gpu:"+x.Type] += resource.Amount(d.Share)
				}
			}
		}
	}
	for _, one := range nodes {
		for name, a := range one {
			j.Held[name] += a
			j.Fullest[name] = max(j.Fullest[name], a)
		}
	}
	withLicenses(&j)
	return j
}

func withLicenses(j *limit.SlowJob) {
	licenses, _ := account.ParseLicenses(j.Key.Licenses)
	for _, l := range licenses {
		j.Held["license/"+l.Name], j.Fullest["license/"+l.Name] = resource.Amount(l.Count), resource.Amount(l.Count)
	}
}

func keyOf(spec *job.Spec) limit.Key {
	k := limit.Key{Account: spec.Account, User: spec.Owner.User, QOS: spec.QOS, Licenses: spec.Licenses}
	if len(spec.Partitions) > 0 {
		k.Partition = spec.Partitions[0]
	}
	return k
}

// exceeded lists the limits that a start would exceed, with the licence that it is to have.
func (w *world) exceeded(t *rapid.T, spec *job.Spec, d sched.Start) []limit.Broken {
	if w.policy == nil {
		return nil
	}
	choices, _ := account.LicenseChoices(spec.Licenses)
	if several := len(choices) > 1; several != (d.License != "") || several && !slices.Contains(choices, d.License) {
		t.Fatalf("job %d asks for licences %s and has %s", d.Job, spec.Licenses, d.License)
	}
	j := w.job((&schedtest.Held{Spec: spec, License: d.License}).Asked(), d.Claims)
	return w.slow().Blocked(&j)
}

// stopped lists the limits that a job exceeds with whichever licence it would have.
func (w *world) stopped(j limit.SlowJob) (all []limit.Broken) {
	choices, _ := account.LicenseChoices(j.Key.Licenses)
	for _, c := range choices {
		one := j
		one.Key.Licenses, one.Held, one.Fullest = c, maps.Clone(j.Held), maps.Clone(j.Fullest)
		withLicenses(&one)
		broken := w.slow().Blocked(&one)
		if len(broken) == 0 {
			return nil
		}
		all = append(all, broken...)
	}
	return all
}

// limited reports whether the core says that a limit stops a job. Of a job that takes
// the same wherever it runs the oracle has to agree.
func (w *world) limited(t *rapid.T, q *waiting) bool {
	if q.Spec.Reservation != "" && (w.policy == nil || len(w.policy.Reservations) == 0) {
		return true // it waits for what is not there
	}
	if w.policy == nil {
		return false
	}
	small := w.below != nil && w.below(q.Spec)
	if told := slices.ContainsFunc(w.core.Reasons(w.now, q.Job), func(r reason.Reason) bool { return r.Code == reason.Threshold }); told != small {
		t.Fatalf("job %d: its share is said to be too small: %v, it is: %v", q.Job, told, small)
	}
	if small {
		return true
	}
	said := slices.ContainsFunc(w.core.Reasons(w.now, q.Job), func(r reason.Reason) bool {
		return r.Code == reason.Licenses || r.Code.Limit() != ""
	})
	if j, ok := takes(q.Spec); ok {
		if broken := w.stopped(j); said != (len(broken) > 0) {
			t.Fatalf("job %d: stopped by a limit: %v, and it exceeds %v", q.Job, w.core.Reasons(w.now, q.Job), broken)
		}
	}
	return said
}

// takes is what a job needs that takes the same wherever it runs; false for others.
func takes(spec *job.Spec) (limit.SlowJob, bool) {
	j := limit.SlowJob{Key: keyOf(spec), Seconds: int64(spec.TimeLimit / time.Second), Endless: spec.TimeLimit == 0, AsUsed: spec.Endless()}
	g := &spec.Groups[0]
	if len(spec.Groups) > 1 || g.Tasks.Min > 0 || g.Tasks.Want == 0 || !g.Total.IsZero() || g.AllMemory || g.Exclusive || len(g.NodeList) > 0 ||
		g.Nodes.Min != g.Nodes.Max || g.Nodes.Min == 0 && g.Tasks.Want != 1 || g.Nodes.Min > 1 && g.Tasks.Want != g.Nodes.Min {
		return j, false
	}
	nodes, tasks := max(g.Nodes.Min, 1), g.Tasks.Want/max(g.Nodes.Min, 1)
	v := g.PerNode.Add(g.PerTask.Scale(tasks))
	devices := g.PerNode.DeviceCount() + tasks*g.PerTask.DeviceCount()
	v = v.Add(g.PerDevice.Scale(devices))
	j.Fullest = account.TRES{"node": 1, "cpu": v.CPU, "memory": v.Memory, "disk": v.Disk, "tape": v.Get("tape")}
	for _, list := range [][]resource.DeviceRequest{g.PerNode.Devices, g.PerTask.Devices} {
		times := 1
		if len(list) > 0 && len(g.PerTask.Devices) > 0 && &list[0] == &g.PerTask.Devices[0] {
			times = tasks
		}
		for _, d := range list {
			a := resource.WholeDevice
			if d.Share > 0 && d.Profile == "" {
				a = d.Share
			}
			if d.Type == "" {
				return j, false
			}
			j.Fullest["gpu"] += resource.Amount(a).Mul(d.Count * times)
			j.Fullest["gpu:"+d.Type] += resource.Amount(a).Mul(d.Count * times)
		}
	}
	j.Held = account.TRES{}
	for name, a := range j.Fullest {
		j.Held[name] = a.Mul(nodes)
	}
	withLicenses(&j)
	return j, true
}
