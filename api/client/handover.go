package client

import (
	"context"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
)

// MoveMachines hands machines over to another pool. Machines that are refused have an error of their own, unless
// there is one machine only: that is the error.
func (c *Client) MoveMachines(ctx context.Context, m *api.MachineMove) (*api.MovedMachines, error) {
	return callJSON[api.MovedMachines](ctx, c, http.MethodPost, api.Prefix+"/machines/move", nil, m)
}

// FenceMachines closes nodes of other pools on machines, or opens them again. Refusals are as those of MoveMachines.
func (c *Client) FenceMachines(ctx context.Context, m *api.MachineFence) (*api.FencedMachines, error) {
	return callJSON[api.FencedMachines](ctx, c, http.MethodPost, api.Prefix+"/machines/fence", nil, m)
}

// AbortMoves walks hand-overs back. Refusals are as those of MoveMachines.
func (c *Client) AbortMoves(ctx context.Context, machines []string) (*api.MovedMachines, error) {
	return callJSON[api.MovedMachines](ctx, c, http.MethodPost, api.Prefix+"/machines/abort", nil, &api.MachineAbort{Machines: machines})
}
