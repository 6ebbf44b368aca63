package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/report"
)

// ReportQuery says what a report counts. Zero values leave it to the server.
type ReportQuery struct {
	From, To        time.Time
	By              []string // account, user, qos, pool, service
	Users, Accounts []string
}

func (q *ReportQuery) urlValues() url.Values {
	v := url.Values{}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, list := range map[string][]string{"by": q.By, "users": q.Users, "accounts": q.Accounts} {
		if len(list) > 0 {
			v.Set(name, strings.Join(list, ","))
		}
	}
	return v
}

func reportPath(kind string) string { return api.Prefix + "/reports/" + url.PathEscape(kind) }

// Report returns a report of a kind: usage, waits, fairness, efficiency, cost.
func (c *Client) Report(ctx context.Context, kind string, q *ReportQuery) (*report.Report, error) {
	return callJSON[report.Report](ctx, c, http.MethodGet, reportPath(kind), q.urlValues(), nil)
}

// ReportForm returns a report as text: csv, md, html. The caller closes it.
func (c *Client) ReportForm(ctx context.Context, kind, form string, q *ReportQuery) (io.ReadCloser, error) {
	v := q.urlValues()
	v.Set("format", form)
	resp, err := c.openStream(ctx, reportPath(kind), v, "")
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
