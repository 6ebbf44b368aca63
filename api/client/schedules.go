package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// schedulePath is the path of a schedule, of which a name may have its account before it: team/nightly.
func schedulePath(name, behind string) (string, url.Values) {
	query := url.Values{}
	if account, own, ok := strings.Cut(name, "/"); ok {
		query.Set("account", account)
		name = own
	}
	return api.Prefix + "/schedules/" + url.PathEscape(name) + behind, query
}

// Schedules lists the schedules that the caller may see.
func (c *Client) Schedules(ctx context.Context) (*api.Schedules, error) {
	return callJSON[api.Schedules](ctx, c, http.MethodGet, api.Prefix+"/schedules", nil, nil)
}

// Schedule is one schedule with its runs. An unknown name is fault.NotFound.
func (c *Client) Schedule(ctx context.Context, name string) (*api.Schedule, error) {
	path, query := schedulePath(name, "")
	return callJSON[api.Schedule](ctx, c, http.MethodGet, path, query, nil)
}

// SuspendSchedule stops the runs by the clock.
func (c *Client) SuspendSchedule(ctx context.Context, name string) (*api.Schedule, error) {
	path, query := schedulePath(name, "/suspend")
	return callJSON[api.Schedule](ctx, c, http.MethodPost, path, query, nil)
}

// ResumeSchedule begins with runs by the clock again.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (*api.Schedule, error) {
	path, query := schedulePath(name, "/resume")
	return callJSON[api.Schedule](ctx, c, http.MethodPost, path, query, nil)
}

// RunSchedule begins with a run by hand.
func (c *Client) RunSchedule(ctx context.Context, name string) (*api.ScheduledRun, error) {
	path, query := schedulePath(name, "/run")
	return callJSON[api.ScheduledRun](ctx, c, http.MethodPost, path, query, nil)
}

// StopSchedule removes a schedule. With cancel its runs that have not ended are cancelled.
func (c *Client) StopSchedule(ctx context.Context, name string, cancel bool) (*api.StoppedSchedule, error) {
	path, query := schedulePath(name, "")
	if cancel {
		query.Set("cancel", "true")
	}
	return callJSON[api.StoppedSchedule](ctx, c, http.MethodDelete, path, query, nil)
}
