package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ site.NodeKeeper = (*Site)(nil)

// UpdateNode is site.NodeKeeper's. v0.0.38 has no call for it.
func (s *Site) UpdateNode(ctx context.Context, node string, c site.NodeChange) error {
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return err
	}
	if v == old {
		if k, ok := s.cfg.Commands.(site.NodeKeeper); ok {
			return k.UpdateNode(ctx, node, c)
		}
		return unsupportedCall("slurmrestd "+v+" cannot change a node", "scontrol update")
	}
	d := map[string]any{}
	if c.State != "" {
		d["state"] = []string{c.State}
	}
	if c.Reason != "" {
		d["reason"] = c.Reason
	}
	if c.Extra != nil {
		d["extra"] = *c.Extra
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var a response
	err = s.callAPI(ctx, &request{method: http.MethodPost, base: "slurm", path: "/node/" + url.PathEscape(node), body: b}, &a)
	if hasErrno(err, errUserID) { // slurmctld's number for who is no operator
		return fault.New(fault.Permission, "%w", err)
	}
	return err
}

// WorkOn is site.NodeKeeper's. slurmrestd lists no node's jobs alone, and no steps: the commands do, where
// there are any, else all jobs are read.
func (s *Site) WorkOn(ctx context.Context, node string) ([]site.Work, error) {
	if k, ok := s.cfg.Commands.(site.NodeKeeper); ok {
		return k.WorkOn(ctx, node)
	}
	all, err := s.allJobs(ctx)
	if err != nil {
		return nil, err
	}
	var out []site.Work
	for i := range all {
		j, err := all[i].siteJob()
		if err != nil {
			return nil, err
		}
		if j.State == site.Pending || j.State.Final() && !j.Completing || !slices.Contains(j.Nodes, node) {
			continue
		}
		out = append(out, site.Work{Name: strconv.FormatUint(uint64(j.ID), 10), User: j.User, Comment: j.Comment, State: strings.Join(all[i].State, "+")})
	}
	return out, nil
}
