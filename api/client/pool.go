package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Pools lists the pools, and the kinds of engine that the server knows.
func (c *Client) Pools(ctx context.Context) (*api.Pools, error) {
	return callJSON[api.Pools](ctx, c, http.MethodGet, api.Prefix+"/pools", nil, nil)
}

// Inventory is what a pool has beside its nodes, as its engine found it last.
func (c *Client) Inventory(ctx context.Context, name string) (*fleet.Inventory, error) {
	return callJSON[fleet.Inventory](ctx, c, http.MethodGet, api.Prefix+"/pools/"+url.PathEscape(name)+"/inventory", nil, nil)
}

// AddPool looks at a pool and, unless that was all that is asked for, adds it.
func (c *Client) AddPool(ctx context.Context, p *api.NewPool) (*api.PoolDone, error) {
	return callJSON[api.PoolDone](ctx, c.withLongTimeout(), http.MethodPost, api.Prefix+"/pools", nil, p)
}

// CheckPool has the engine of a pool look at what it works with.
func (c *Client) CheckPool(ctx context.Context, name string) (*api.PoolDone, error) {
	return callJSON[api.PoolDone](ctx, c.withLongTimeout(), http.MethodPost, api.Prefix+"/pools/"+url.PathEscape(name)+"/check", nil, nil)
}

// lookWait is how long a look may take: the server gives it two minutes.
const lookWait = 3 * time.Minute

// withLongTimeout is the client with time for a look.
func (c *Client) withLongTimeout() *Client {
	p := *c
	p.timeout = max(p.timeout, lookWait)
	return &p
}

// RemovePool takes a pool away in which no job holds anything and for which none waits. force
// gives away the machines that it shares with others, unseen.
func (c *Client) RemovePool(ctx context.Context, name string, force bool) error {
	var query url.Values
	if force {
		query = url.Values{"force": {"true"}}
	}
	return c.doJSON(ctx, http.MethodDelete, api.Prefix+"/pools/"+url.PathEscape(name), query, nil, nil)
}
