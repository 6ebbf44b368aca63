package client

import (
	"context"
	"io"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
)

// WhatIf asks what would be if something were otherwise.
func (c *Client) WhatIf(ctx context.Context, q *api.WhatIf) (*api.WhatIfDone, error) {
	return callJSON[api.WhatIfDone](ctx, c, http.MethodPost, api.Prefix+"/whatif", nil, q)
}

// Snapshot is the scheduling core's state and its last steps, as cox replay reads them.
func (c *Client) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	resp, err := c.openStream(ctx, api.Prefix+"/snapshot", nil, "application/json")
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
