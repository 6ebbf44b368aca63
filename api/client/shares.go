package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/coxswain-sched/coxswain/api"
)

// Shares says how accounts and users stand.
func (c *Client) Shares(ctx context.Context) (*api.Shares, error) {
	return call[api.Shares](ctx, c, http.MethodGet, api.Prefix+"/shares", nil, nil)
}

// Priority says how the priority of a waiting job comes about.
func (c *Client) Priority(ctx context.Context, id string) (*api.Priority, error) {
	return call[api.Priority](ctx, c, http.MethodGet, api.Prefix+"/jobs/"+url.PathEscape(id)+"/priority", nil, nil)
}

// Priorities says it of all jobs that wait.
func (c *Client) Priorities(ctx context.Context) (*api.Priorities, error) {
	return call[api.Priorities](ctx, c, http.MethodGet, api.Prefix+"/priorities", nil, nil)
}

// Quotas says what accounts may hold, hold, borrow and lend.
func (c *Client) Quotas(ctx context.Context) (*api.Quotas, error) {
	return call[api.Quotas](ctx, c, http.MethodGet, api.Prefix+"/quotas", nil, nil)
}
