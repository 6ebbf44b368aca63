package services

import (
	"context"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/decide"
)

// none is a Controller of a server that runs no services.
type none struct{}

func refuseServices() error {
	return fault.New(fault.Unsupported, "this server runs no services").Advise("start one that does: cox up")
}

func unknownService(name string) error {
	return fault.New(fault.NotFound, "there is no service %s", name).Advise("cox service list shows the services that you may see")
}

func (none) Submit(context.Context, job.Actor, service.Spec, func(job.Owner) error) (decide.Submitted, error) {
	return decide.Submitted{}, refuseServices()
}
func (none) List(context.Context) ([]controller.Status, error) { return nil, nil }
func (none) Get(_ context.Context, name string) (controller.Status, error) {
	return controller.Status{}, unknownService(name)
}

func (none) Scale(_ context.Context, _ job.Actor, name string, _ int) error {
	return unknownService(name)
}

func (none) Pause(_ context.Context, _ job.Actor, name string) error { return unknownService(name) }

func (none) Resume(_ context.Context, _ job.Actor, name string) error { return unknownService(name) }

func (none) Undo(_ context.Context, _ job.Actor, name string, _ uint32) (decide.Submitted, error) {
	return decide.Submitted{}, unknownService(name)
}
func (none) Stop(_ context.Context, _ job.Actor, name string) error { return unknownService(name) }
