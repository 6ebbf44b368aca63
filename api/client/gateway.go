package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// mostRoutes bounds one line of routes.
const mostRoutes = 64 << 20

// WatchRoutes calls f with all routes of gateways, then with every change, until ctx ends, f fails, or
// the connection breaks; call it again then. The caller has to have the right to be a gateway.
func (c *Client) WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.openStream(ctx, api.Prefix+"/gateway/routes", nil, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), mostRoutes)
	for lines.Scan() {
		quiet.Reset(silence)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var r api.GatewayRoutes
		if err := json.Unmarshal(line, &r); err != nil {
			return fault.New(fault.Unsupported, "the routes of the server at %s are not understood: %w", c.addr, err).
				Advise("gateway and server may be of different versions: cox version and cox info show them")
		}
		if err := f(r); err != nil {
			return err
		}
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return c.explainTransport(ctx, err)
}

// PutLoad posts what a gateway counts.
func (c *Client) PutLoad(ctx context.Context, l api.GatewayLoad) error {
	return c.doJSON(ctx, http.MethodPost, api.Prefix+"/gateway/load", nil, &l, nil)
}
