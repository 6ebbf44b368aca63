package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/coxswain-sched/coxswain/api"
)

// Shares says how accounts and users stand.
func (c *Client) Shares(ctx context.Context) (*api.Shares, error) {
	return callJSON[api.Shares](ctx, c, http.MethodGet, api.Prefix+"/shares", nil, nil)
}

// Priority says how the priority of a waiting job comes about.
func (c *Client) Priority(ctx context.Context, id string) (*api.Priority, error) {
	return callJSON[api.Priority](ctx, c, http.MethodGet, api.Prefix+"/jobs/"+url.PathEscape(id)+"/priority", nil, nil)
}

// Priorities says it of all jobs that wait.
func (c *Client) Priorities(ctx context.Context) (*api.Priorities, error) {
	return callJSON[api.Priorities](ctx, c, http.MethodGet, api.Prefix+"/priorities", nil, nil)
}

// Quotas says what accounts may hold, hold, borrow and lend.
func (c *Client) Quotas(ctx context.Context) (*api.Quotas, error) {
	return callJSON[api.Quotas](ctx, c, http.MethodGet, api.Prefix+"/quotas", nil, nil)
}

// Reservations lists the reservations in advance.
func (c *Client) Reservations(ctx context.Context) (*api.Reservations, error) {
	return callJSON[api.Reservations](ctx, c, http.MethodGet, api.Prefix+"/reservations", nil, nil)
}

// NewReservation makes one.
func (c *Client) NewReservation(ctx context.Context, r *api.SetReservation) (*api.ReservationDone, error) {
	return callJSON[api.ReservationDone](ctx, c, http.MethodPost, api.Prefix+"/reservations", nil, r)
}

// SetReservation replaces the one of a name.
func (c *Client) SetReservation(ctx context.Context, name string, r *api.SetReservation) (*api.ReservationDone, error) {
	return callJSON[api.ReservationDone](ctx, c, http.MethodPut, api.Prefix+"/reservations/"+url.PathEscape(name), nil, r)
}

// DeleteReservation ends one.
func (c *Client) DeleteReservation(ctx context.Context, name string) (*api.ReservationDone, error) {
	return callJSON[api.ReservationDone](ctx, c, http.MethodDelete, api.Prefix+"/reservations/"+url.PathEscape(name), nil, nil)
}
