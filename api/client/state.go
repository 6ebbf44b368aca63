package client

import (
	"context"
	"io"

	"github.com/coxswain-sched/coxswain/api"
)

// Snapshot is the scheduling core's state and its last steps, as cox replay reads them.
func (c *Client) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	resp, err := c.stream(ctx, api.Prefix+"/snapshot", nil, "application/json")
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
