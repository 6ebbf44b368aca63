package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// Nodes lists all nodes with what is used of them.
func (c *Client) Nodes(ctx context.Context) (*api.Nodes, error) {
	return callJSON[api.Nodes](ctx, c, http.MethodGet, api.Prefix+"/nodes", nil, nil)
}

// Node returns one node.
func (c *Client) Node(ctx context.Context, name string) (*api.Node, error) {
	return callJSON[api.Node](ctx, c, http.MethodGet, api.Prefix+"/nodes/"+url.PathEscape(name), nil, nil)
}

// ChangeNodes drains nodes or takes them back, and returns them.
func (c *Client) ChangeNodes(ctx context.Context, ch *api.NodeChange) (*api.Nodes, error) {
	return callJSON[api.Nodes](ctx, c, http.MethodPost, api.Prefix+"/nodes/change", nil, ch)
}

// NodeChecks lists what the last checks of nodes saw; pool "": of all pools.
func (c *Client) NodeChecks(ctx context.Context, pool string) (*api.NodeChecks, error) {
	var query url.Values
	if pool != "" {
		query = url.Values{"pool": {pool}}
	}
	return callJSON[api.NodeChecks](ctx, c, http.MethodGet, api.Prefix+"/node-checks", query, nil)
}

// CheckNodes checks nodes, and returns what was seen when all checks have ended.
func (c *Client) CheckNodes(ctx context.Context, in *api.CheckNodes) (*api.NodeChecks, error) {
	return callJSON[api.NodeChecks](ctx, c, http.MethodPost, api.Prefix+"/node-checks", nil, in)
}

// Machines lists the machines, which pool owns each, and hand-overs.
func (c *Client) Machines(ctx context.Context) (*api.Machines, error) {
	return callJSON[api.Machines](ctx, c, http.MethodGet, api.Prefix+"/machines", nil, nil)
}

// Licenses lists the site's licences and who holds them.
func (c *Client) Licenses(ctx context.Context) (*api.Licenses, error) {
	return callJSON[api.Licenses](ctx, c, http.MethodGet, api.Prefix+"/licenses", nil, nil)
}

// Defrag returns what is proposed to move, and what moves.
func (c *Client) Defrag(ctx context.Context) (*api.Defrag, error) {
	return callJSON[api.Defrag](ctx, c, http.MethodGet, api.Prefix+"/defrag", nil, nil)
}

// ApproveDefrag has a proposal carried out.
func (c *Client) ApproveDefrag(ctx context.Context, id string) (*api.Defrag, error) {
	return callJSON[api.Defrag](ctx, c, http.MethodPost, api.Prefix+"/defrag/approve", nil, &api.ApproveDefrag{ID: id})
}

// Partitions lists the partitions.
func (c *Client) Partitions(ctx context.Context) (*api.Partitions, error) {
	return callJSON[api.Partitions](ctx, c, http.MethodGet, api.Prefix+"/partitions", nil, nil)
}

// Tokens lists access tokens: one's own, or all for an administrator.
func (c *Client) Tokens(ctx context.Context) (*api.Tokens, error) {
	return callJSON[api.Tokens](ctx, c, http.MethodGet, api.Prefix+"/tokens", nil, nil)
}

// NewToken makes an access token. Its secret is in this answer and nowhere else.
func (c *Client) NewToken(ctx context.Context, n *api.NewToken) (*api.MadeToken, error) {
	return callJSON[api.MadeToken](ctx, c, http.MethodPost, api.Prefix+"/tokens", nil, n)
}

// NewWebLink makes a link that signs a browser in to the web console, once.
func (c *Client) NewWebLink(ctx context.Context) (*api.WebLink, error) {
	return callJSON[api.WebLink](ctx, c, http.MethodPost, api.Prefix+"/web-links", nil, nil)
}

// RevokeToken makes a token useless, at once and for good.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.doJSON(ctx, http.MethodDelete, api.Prefix+"/tokens/"+url.PathEscape(id), nil, nil, nil)
}

// Audit returns records of changes after a number of the journal, oldest first;
// limit 0: as many as the server likes.
func (c *Client) Audit(ctx context.Context, after uint64, limit int) (*api.Audit, error) {
	v := url.Values{}
	if after > 0 {
		v.Set("after", strconv.FormatUint(after, 10))
	}
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	return callJSON[api.Audit](ctx, c, http.MethodGet, api.Prefix+"/audit", v, nil)
}

// copying is how long a backup may take: what came with jobs may be many gigabytes.
const copying = 24 * time.Hour

// Backup writes an online copy of the server's state into a new folder on the
// server's machine. It is waited for, a day at the most; the end of ctx gives it up.
func (c *Client) Backup(ctx context.Context, b api.Backup) (*api.BackupDone, error) {
	patient := *c
	patient.timeout = max(c.timeout, copying)
	return callJSON[api.BackupDone](ctx, &patient, http.MethodPost, api.Prefix+"/backup", nil, b)
}
