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
}

func refuseHandovers() error {
	return fault.New(fault.Unsupported, "this server hands no machines over").Advise("start one that does: cox up")
}

func requestOf(m *api.MachineMove) controller.Request {
	r := controller.Request{
		Nodes: m.Nodes, Count: m.Count, Rack: m.Rack, From: m.From, To: m.To, Requeue: m.Now,
		Deadline: time.Duration(m.Deadline) * time.Second, Reason: m.Reason, DryRun: m.DryRun,
	}
	if m.Deadline == 0 {
		r.Deadline = defaultDeadline
	}
	return r
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
