package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/coxswain-sched/coxswain/api"
)

// Secrets lists the caller's secrets, without their values.
func (c *Client) Secrets(ctx context.Context) (*api.Secrets, error) {
	return callJSON[api.Secrets](ctx, c, http.MethodGet, api.Prefix+"/secrets", nil, nil)
}

// SetSecret keeps a value for the caller; one of the same name is replaced.
func (c *Client) SetSecret(ctx context.Context, name string, value []byte) error {
	return c.doJSON(ctx, http.MethodPut, api.Prefix+"/secrets/"+url.PathEscape(name), nil, &api.SetSecret{Value: value}, nil)
}

// RemoveSecret forgets one. An unknown name is fault.NotFound.
func (c *Client) RemoveSecret(ctx context.Context, name string) error {
	return c.doJSON(ctx, http.MethodDelete, api.Prefix+"/secrets/"+url.PathEscape(name), nil, nil, nil)
}
