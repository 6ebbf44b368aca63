package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// servicePath is the route of a service: "team/chat", or "chat".
func servicePath(name, end string) (path string, query url.Values) {
	account, short, ok := strings.Cut(name, "/")
	if !ok {
		return api.Prefix + "/services/" + url.PathEscape(name) + end, nil
	}
	return api.Prefix + "/services/" + url.PathEscape(short) + end, url.Values{"account": {account}}
}

// Services lists the services that the caller may see.
func (c *Client) Services(ctx context.Context) (*api.Services, error) {
	return callJSON[api.Services](ctx, c, http.MethodGet, api.Prefix+"/services", nil, nil)
}

// Service is one service with its replicas and revisions. An unknown name is fault.NotFound.
func (c *Client) Service(ctx context.Context, name string) (*api.Service, error) {
	path, query := servicePath(name, "")
	return callJSON[api.Service](ctx, c, http.MethodGet, path, query, nil)
}

// ScaleService sets the number of replicas.
func (c *Client) ScaleService(ctx context.Context, name string, replicas int) (*api.Service, error) {
	path, query := servicePath(name, "/scale")
	return callJSON[api.Service](ctx, c, http.MethodPost, path, query, &api.ServiceScale{Replicas: replicas})
}

// RolloutService pauses, resumes or undoes a rollout.
func (c *Client) RolloutService(ctx context.Context, name string, r api.ServiceRollout) (*api.Service, error) {
	path, query := servicePath(name, "/rollout")
	return callJSON[api.Service](ctx, c, http.MethodPost, path, query, &r)
}

// StopService ends a service: its replicas are drained and ended, then it is gone.
func (c *Client) StopService(ctx context.Context, name string) (*api.Service, error) {
	path, query := servicePath(name, "")
	return callJSON[api.Service](ctx, c, http.MethodDelete, path, query, nil)
}
