package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coxswain-sched/coxswain/api"
)

// Policy returns a revision of the site's rules; 0: the one in force.
func (c *Client) Policy(ctx context.Context, revision uint64) (*api.Policy, error) {
	q := url.Values{}
	if revision > 0 {
		q.Set("revision", strconv.FormatUint(revision, 10))
	}
	return callJSON[api.Policy](ctx, c, http.MethodGet, api.Prefix+"/policy", q, nil)
}

// Settings returns what configuration and rules say for all jobs.
func (c *Client) Settings(ctx context.Context) (*api.Settings, error) {
	return callJSON[api.Settings](ctx, c, http.MethodGet, api.Prefix+"/settings", nil, nil)
}

// SetPolicy puts the site's rules in force, or says what that would change.
func (c *Client) SetPolicy(ctx context.Context, p *api.SetPolicy) (*api.PolicyDone, error) {
	return callJSON[api.PolicyDone](ctx, c, http.MethodPut, api.Prefix+"/policy", nil, p)
}

// PolicyHistory lists the revisions of the site's rules that are kept.
func (c *Client) PolicyHistory(ctx context.Context) (*api.PolicyHistory, error) {
	return callJSON[api.PolicyHistory](ctx, c, http.MethodGet, api.Prefix+"/policy/history", nil, nil)
}
