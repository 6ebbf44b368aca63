package controller

import (
	"context"
	"strings"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/store"
)

// Plane is what schedules need of a control plane.
type Plane interface {
	// Documents lists the stored documents of schedules.
	Documents(ctx context.Context) ([]state.Controller, error)
	// SetDocument makes a document durable; RemoveDocument makes it durable that it is gone.
	SetDocument(ctx context.Context, by job.Actor, v state.Controller) error
	RemoveDocument(ctx context.Context, by job.Actor, controller string) error

	// Submit submits a job with a part, or returns the job that is that part already, if it lives or is
	// remembered after its end.
	Submit(ctx context.Context, s control.Submission) (control.Accepted, error)
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)

	// Parts lists the jobs in memory that are parts of a controller, ended ones too.
	Parts(controller string) []state.View
	// Past returns the last state of a job that has left memory, or of all tasks of an array; none:
	// there is no such job.
	Past(ctx context.Context, id job.ID) ([]state.View, error)
	// Next waits for changes of schedules' jobs after a number and returns the names of their
	// controllers, with the number to go on from; gap says that more changed than is remembered.
	Next(ctx context.Context, after uint64) (controllers []string, last uint64, gap bool, err error)
}

// controlPlane is the Plane of a control plane.
type controlPlane struct{ *control.Control }

// NewPlane makes the Plane of a control plane.
func NewPlane(c *control.Control) Plane { return controlPlane{c} }

func (p controlPlane) Documents(context.Context) ([]state.Controller, error) {
	return p.Controllers(schedule.ControllerKind), nil
}

func (p controlPlane) SetDocument(ctx context.Context, by job.Actor, v state.Controller) error {
	return p.SetController(ctx, by, v)
}

func (p controlPlane) RemoveDocument(ctx context.Context, by job.Actor, controller string) error {
	return p.RemoveController(ctx, by, controller)
}

func (p controlPlane) Past(ctx context.Context, id job.ID) ([]state.View, error) {
	read := func(q store.Query) (out []state.View, err error) {
		_, err = p.History(ctx, q, func(v *state.View) bool { out = append(out, *v); return true })
		return out, err
	}
	out, err := read(store.Query{IDs: []uint64{uint64(id)}, Limit: 1})
	if err == nil && len(out) > 0 && out[0].Job.Array != nil {
		out, err = read(store.Query{Array: uint64(id)})
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p controlPlane) Next(ctx context.Context, after uint64) (names []string, last uint64, gap bool, err error) {
	views, last, gap, err := p.Control.Next(ctx, after)
	for i := range views {
		if part := views[i].Job.Spec.Part; part != nil && strings.HasPrefix(part.Controller, schedule.ControllerKind+"/") {
			names = append(names, part.Controller)
		}
	}
	return names, last, gap, err
}
