package controller

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Plane is what services need of a control plane.
type Plane interface {
	// Documents lists the stored documents of services.
	Documents(ctx context.Context) ([]Stored, error)
	// SetDocument makes a document durable; RemoveDocument makes it durable that it is gone.
	SetDocument(ctx context.Context, by job.Actor, s Stored) error
	RemoveDocument(ctx context.Context, by job.Actor, controller string) error

	// Submit submits a job as a part, or returns the job that is that part already, if it lives or is
	// remembered after its end.
	Submit(ctx context.Context, part job.Part, s control.Submission) (control.Accepted, error)
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)

	// Parts lists the jobs in memory that are parts of a controller, ended ones too.
	Parts(ctx context.Context, controller string) ([]Part, error)
	// Next waits for changes of parts after a number and returns them as they are now, with the number
	// to go on from; gap says that more changed than is remembered.
	Next(ctx context.Context, after uint64) (parts []Part, last uint64, gap bool, err error)
}

// Stored is the document of a service as a control plane keeps it.
type Stored struct {
	Controller string // "service/team/chat"
	Owner      job.Owner
	Version    uint64 // of the document, from 1; a write that does not follow the one before is fault.Conflict
	Payload    []byte // JSON
}

// Part is a job that is a part of a controller.
type Part struct {
	state.View
	Part job.Part

	EndsAt  time.Time // when something that is known ends it; zero: nothing
	EndsWhy string    // "its time limit", "the drain of node n1"
}
