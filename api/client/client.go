// Package client is the Go client of the whole HTTP API: a Client has one method
// per route, with the types of package api.
//
// A Client is safe for concurrent use and keeps connections open. Every error has
// a kind (package fault) and, where there is one, a remedy; errors.As finds the
// server's own *api.Error in it. Nothing that changes state is sent twice: where
// no answer came the error is fault.Unavailable and the outcome is unknown. Watch
// and Wait do go on over a broken connection and a restart of the server, because
// asking again changes nothing.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/tunnel"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Options say which server, as whom, and how long to wait. The zero value means
// the server that package address finds.
type Options struct {
	Socket  string        // path of a unix socket
	URL     string        // or an address as COX_SERVER takes it
	Token   string        // for a URL; empty: COX_TOKEN or the token file
	Timeout time.Duration // of a request that does not stream; 0: 60 s
}

// Client talks to one server.
type Client struct {
	addr    address.Address
	http    *http.Client
	timeout time.Duration
}

// New returns a client. It does not connect yet.
func New(o Options) (*Client, error) {
	where := o.URL
	if o.Socket != "" {
		where = "unix://" + o.Socket
	}
	a, err := address.Find(where, o.Token)
	if err != nil {
		return nil, err
	}
	c := &Client{addr: a, timeout: o.Timeout}
	if c.timeout == 0 {
		c.timeout = time.Minute
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	dial, err := dialFunc(a, dialer)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:         dial,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	c.http = &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// dialFunc connects to an address, through a tunnel where it is behind SSH.
func dialFunc(a address.Address, dialer *net.Dialer) (func(ctx context.Context, _, _ string) (net.Conn, error), error) {
	if a.SSH == "" {
		network, to := a.Network()
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, network, to) }, nil
	}
	target, err := tunnel.Parse(a.SSH)
	if err != nil {
		return nil, err
	}
	var one sync.Mutex
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		one.Lock()
		defer one.Unlock()
		socket, err := tunnel.Open(ctx, target)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, "unix", socket)
	}, nil
}

// Address is where the client asks.
func (c *Client) Address() address.Address { return c.addr }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// apiRequest makes a request of the API.
func (c *Client) apiRequest(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		r = bytes.NewReader(b)
	}
	u := c.addr.URL + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, r)
	if err != nil {
		return nil, fault.New(fault.Invalid, "request %s: %w", path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(api.VersionHeader, version)
	if c.addr.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.addr.Token)
	}
	return req, nil
}

var version = fmt.Sprintf("%d.%d", api.Version, api.Minor)

// sendRequest sends a request and returns the response if it is a success.
func (c *Client) sendRequest(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explainTransport(req.Context(), err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp)
}

// explainTransport explains an error of the transport.
func (c *Client) explainTransport(ctx context.Context, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the URL, which names nothing that the user knows
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errSlow) {
			return fault.New(fault.Unavailable, "the server at %s did not answer within %s", c.addr, c.timeout).
				Advise("whether it did what was asked is not known: look before you ask again")
		}
		return fault.New(fault.Unavailable, "given up: %w", ctx.Err())
	}
	if c.addr.SSH != "" && fault.Remedy(err) != "" {
		return err // of the tunnel
	}
	return c.addr.Explain(err)
}

// readError reads the error of a response.
func readError(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	e := &api.Error{}
	if err == nil && strings.Contains(resp.Header.Get("Content-Type"), "json") && json.Unmarshal(b, e) == nil && e.Title != "" {
		return e.Fault()
	}
	e = &api.Error{Status: resp.StatusCode, Detail: fmt.Sprintf("the answer was %s: %s", resp.Status, firstLine(b))}
	if resp.Header.Get(api.VersionHeader) == "" {
		e.Remedy = "what answers there is not a cox server; see COX_SERVER"
	}
	e.Title = e.FaultKind().String()
	return e.Fault()
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	return string(line[:min(len(line), 200)])
}

var errSlow = errors.New("the time for an answer is over")

// doJSON sends a request and decodes the answer into out, if out is not nil.
func (c *Client) doJSON(ctx context.Context, method, path string, query url.Values, body, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errSlow)
	defer cancel()
	req, err := c.apiRequest(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	resp, err := c.sendRequest(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.explainTransport(ctx, err)
	}
	if out == nil {
		return nil
	}
	if resp.StatusCode == http.StatusNoContent {
		return errNothing
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fault.New(fault.Unsupported, "the answer of the server at %s is not understood: %w", c.addr, err).
			Advise("client and server may be of different versions: cox version and cox info show them")
	}
	return nil
}

var errNothing = errors.New("nothing yet")

// openStream sends a request whose answer is read as it comes.
func (c *Client) openStream(ctx context.Context, path string, query url.Values, accept string) (*http.Response, error) {
	req, err := c.apiRequest(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	return c.sendRequest(req)
}

func callJSON[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (*T, error) {
	out := new(T)
	if err := c.doJSON(ctx, method, path, query, body, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Info says what answers, and who it takes the caller for.
func (c *Client) Info(ctx context.Context) (*api.ServerInfo, error) {
	return callJSON[api.ServerInfo](ctx, c, http.MethodGet, api.Prefix, nil, nil)
}
