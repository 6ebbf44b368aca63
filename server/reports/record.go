package reports

import (
	"cmp"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/report"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// servicePart is the beginning of a controller's name whose jobs are replicas of a service.
const servicePart = "service/"

// unknownIndex is the index of a device that a pool's own scheduler chose. It has the kind that all devices of its
// node have.
const unknownIndex = -1

// recorder makes records of views. The record that it made last is written again by the next.
type recorder struct {
	home   string                           // pool of jobs that name none
	now    int64                            // Unix seconds
	kinds  map[fleet.NodeKey]map[int]string // kinds of the devices of nodes by their index, or unknownIndex; nil: nobody wants them
	record report.Record
}

// recordOf makes the record of a job. It is valid until the next call.
func (r *recorder) recordOf(v *state.View) *report.Record {
	s, x := v.Job.Spec, &r.record
	*x = report.Record{
		User: s.Owner.User, Account: s.Account, QOS: s.QOS, Pool: cmp.Or(v.Pool, s.Pool, r.home),
		Submitted: unixOf(v.Job.Submitted), Eligible: unixOf(v.Eligible), Ended: unixOf(v.Job.Ended),
		Waits: v.Job.State == job.Pending, Limit: int64(s.TimeLimit / time.Second),
		Asked: askedOf(s), Attempts: x.Attempts[:0],
	}
	if s.Part != nil {
		if name, ok := strings.CutPrefix(s.Part.Controller, servicePart); ok {
			x.Service = name
		}
	}
	held := r.heldOf(v, &x.Asked)
	past := false // the last attempt is one of Past: the job waits again, or ended while it did
	for i := range v.Past {
		p := &v.Past[i]
		past = past || p.Attempt == v.Job.Attempt
		if p.Started == 0 {
			continue
		}
		x.Attempts = append(x.Attempts, report.Attempt{Started: p.Started / int64(time.Second), Ended: p.Ended / int64(time.Second), Held: held, Lost: true, CutShort: true})
	}
	if x.Waits || past || v.Job.Started.IsZero() {
		return x
	}
	x.Attempts = append(x.Attempts, report.Attempt{
		Started: unixOf(v.Job.Started), Ended: unixOf(v.Job.Ended), Suspended: suspendedSeconds(v, r.now),
		Held: held, Lost: isLost(v.Job.State, v.Report.Cause), CutShort: isCutShort(v.Job.State, v.Report.Cause), Used: v.Report.Used,
	})
	return x
}

// isLost reports whether an attempt came to nothing.
func isLost(s job.State, cause engine.Cause) bool {
	switch s {
	case job.Failed, job.Timeout, job.NodeFail, job.OutOfMemory, job.Preempted, job.Lost, job.BootFail:
		return true
	}
	return cause == engine.NodeLost
}

// isCutShort reports whether an attempt did not end by itself.
func isCutShort(s job.State, cause engine.Cause) bool {
	switch s {
	case job.NodeFail, job.Preempted, job.Lost, job.BootFail:
		return true
	}
	return cause == engine.NodeLost
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// suspendedSeconds is how long the last attempt was suspended, as sacct counts it.
func suspendedSeconds(v *state.View, now int64) int64 {
	n := int64(v.SuspendedFor / time.Second)
	if !v.SuspendedAt.IsZero() && v.ResumedAt.IsZero() {
		n += max(cmp.Or(unixOf(v.Job.Ended), now)-v.SuspendedAt.Unix(), 0)
	}
	return n
}

// askedOf is what a job asks for in all. A part of a device counts as that part.
func askedOf(s *job.Spec) (a report.Amounts) {
	d := s.Demand()
	a.Nodes, a.CPUs, a.Memory = d.Nodes, d.CPUs, d.Memory
	if d.GPUs == 0 {
		return a
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		one := job.Spec{Groups: s.Groups[i : i+1]}
		of := one.Demand()
		add := func(list []resource.DeviceRequest, times int) {
			for _, r := range list {
				part := 1.0
				if !r.Whole() && r.Share > 0 {
					part = float64(r.Share) / float64(resource.WholeDevice)
				}
				a.AddDevice(r.Type, float64(r.Count*times)*part)
			}
		}
		add(g.PerNode.Devices, of.Nodes)
		add(g.PerTask.Devices, of.Tasks)
		add(g.Total.Devices, 1)
	}
	return a
}

// heldOf is what the last attempt holds or held; what the job asks for where that is not known.
func (r *recorder) heldOf(v *state.View, asked *report.Amounts) (a report.Amounts) {
	if len(v.Claims) == 0 {
		return *asked
	}
	d := v.Demand()
	a.Nodes, a.CPUs, a.Memory = d.Nodes, d.CPUs, d.Memory
	for i := range v.Claims {
		c := &v.Claims[i]
		var kinds map[int]string
		if len(c.Devices) > 0 {
			kinds = r.kinds[fleet.NodeKey{Pool: r.record.Pool, Name: c.Node}]
		}
		for _, device := range c.Devices {
			part := 1.0
			if device.Share > 0 && device.Share < resource.WholeDevice {
				part = float64(device.Share) / float64(resource.WholeDevice)
			}
			a.AddDevice(cmp.Or(kinds[device.Index], d.GPUType), part)
		}
	}
	return a
}
