// Package machines has the routes by which machines are handed over from one pool to another: move and abort.
// Who owns which machine is shown by package admin.
package machines

import (
	"context"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
)

// Controller hands machines over; *controller.Controller is one.
type Controller interface {
	Move(ctx context.Context, by job.Actor, r controller.Request) ([]controller.Moved, error)
	Abort(ctx context.Context, by job.Actor, names []string) ([]controller.Moved, error)
	Fence(ctx context.Context, by job.Actor, r controller.FenceRequest) ([]controller.Closed, error)
}

// defaultDeadline is how long a hand-over may take until it is admitted, where nobody says.
const defaultDeadline = 24 * time.Hour

// Register adds the routes to a server. With a nil controller they refuse everything.
func Register(t *transport.Server, c Controller) {
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/machines/move", Verb: auth.HandOver, ID: "moveMachines", Tag: "nodes", Body: transport.TypeOf[api.MachineMove](),
		Example: &api.MachineMove{Count: 2, To: "k8s", Reason: "inference by day"},
		Summary: "Hand machines over to another pool", About: "Each machine by itself: some may be refused while others move. The answer comes when it is durable that they are asked for. A request for one machine that is refused is an error.",
	}, func(call *transport.Call, _ *transport.Nothing) (*api.MovedMachines, error) {
		body, err := transport.DecodeBody[api.MachineMove](call)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, refuseHandovers()
		}
		return answerMoved(c.Move(call.Ctx(), call.ID.Actor(), requestOf(body)))
	})
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/machines/abort", Verb: auth.HandOver, ID: "abortMoves", Tag: "nodes", Body: transport.TypeOf[api.MachineAbort](),
		Example: &api.MachineAbort{Machines: []string{"gpu[1-4]"}},
		Summary: "Walk hand-overs back", About: "The machines stay with the pools that own them, whose fences are removed. A machine that the new pool owns by now is refused: move it back.",
	}, func(call *transport.Call, _ *transport.Nothing) (*api.MovedMachines, error) {
		body, err := transport.DecodeBody[api.MachineAbort](call)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, refuseHandovers()
		}
		return answerMoved(c.Abort(call.Ctx(), call.ID.Actor(), body.Machines))
	})
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/machines/fence", Verb: auth.HandOver, ID: "fenceMachines", Tag: "nodes", Body: transport.TypeOf[api.MachineFence](),
		Example: &api.MachineFence{Nodes: []string{"gpu[1-4]"}, Reason: "Slurm has them"},
		Summary: "Close nodes of other pools on machines", About: "Before the first hand-over of a machine: the engines of pools that do not own it start nothing there any more. remove opens them again. The answer comes when it is durable that it is asked for; the engines are called after that, until they have done it.",
	}, func(call *transport.Call, _ *transport.Nothing) (*api.FencedMachines, error) {
		body, err := transport.DecodeBody[api.MachineFence](call)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, refuseHandovers()
		}
		return answerFenced(c.Fence(call.Ctx(), call.ID.Actor(), controller.FenceRequest{Nodes: body.Nodes, Remove: body.Remove, Reason: body.Reason}))
	})
}

func refuseHandovers() error {
	return fault.New(fault.Unsupported, "this server hands no machines over").Advise("start one that does: cox up")
}

func requestOf(m *api.MachineMove) controller.Request {
	r := controller.Request{
		Nodes: m.Nodes, Count: m.Count, Rack: m.Rack, From: m.From, To: m.To, Requeue: m.Now,
		Deadline: time.Duration(m.Deadline) * time.Second, Reason: m.Reason, DryRun: m.DryRun, Force: m.Force,
	}
	if m.Deadline == 0 {
		r.Deadline = defaultDeadline
	}
	return r
}

// answerFenced shows what becomes of the nodes of other pools. The refusal of the only machine is the error.
func answerFenced(list []controller.Closed, err error) (*api.FencedMachines, error) {
	if err == nil && len(list) == 1 {
		err = list[0].Err
	}
	if err != nil {
		return nil, err
	}
	out := &api.FencedMachines{Machines: []api.FencedMachine{}}
	for i := range list {
		v := &list[i]
		one := api.FencedMachine{Machine: v.Machine, Owner: v.Owner, Epoch: v.Epoch, Already: v.Already, Nodes: []string{}}
		for _, k := range v.Nodes {
			one.Nodes = append(one.Nodes, k.Pool+"/"+k.Name)
		}
		if v.Err != nil {
			one.Error = api.ErrorOf(v.Err)
		}
		out.Machines = append(out.Machines, one)
	}
	return out, nil
}

// answerMoved shows what becomes of machines. The refusal of the only one is the error.
func answerMoved(list []controller.Moved, err error) (*api.MovedMachines, error) {
	if err == nil && len(list) == 1 {
		err = list[0].Err
	}
	if err != nil {
		return nil, err
	}
	out := &api.MovedMachines{Machines: []api.MovedMachine{}}
	for i := range list {
		v := &list[i]
		one := api.MovedMachine{Machine: v.Machine, Node: v.Node, From: v.From, To: v.To, Epoch: v.Epoch, Why: v.Why, FreeBy: v.FreeBy}
		if v.Err != nil {
			one.Error = api.ErrorOf(v.Err)
		}
		out.Machines = append(out.Machines, one)
	}
	return out, nil
}
