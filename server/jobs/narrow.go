package jobs

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// NarrowQuery narrows a list of jobs further than api.Select does, as people look for jobs. (It has
// a capital for the reason that SelectQuery has one.)
type NarrowQuery struct {
	Match   string   `query:"match" doc:"jobs whose number, name, user or account has this text in it, in upper or lower case"`
	Reasons []string `query:"reasons" doc:"codes of the first reason why a job waits"`
	Pools   []string `query:"pools" doc:"jobs that have nodes of these pools, or wait for them"`
}

// narrow is a NarrowQuery, read.
type narrow struct {
	match   string // lower case
	reasons []string
	pools   []string
	home    string // the pool of jobs that name none
}

// selectNarrowed reads a selection with what narrows it.
func (s *Service) selectNarrowed(q *SelectQuery, n *NarrowQuery) (*selection, error) {
	sel, err := selectJobs(q.toSelect(), nil)
	if err != nil {
		return nil, err
	}
	sel.narrow = narrow{match: strings.ToLower(n.Match), reasons: n.Reasons, pools: n.Pools}
	if len(n.Pools) > 0 {
		sel.narrow.home = pools.DefaultPool(s.cfg.Plane.Pools())
	}
	return sel, nil
}

// matchesView says whether a job is within.
func (n *narrow) matchesView(v *state.View) bool {
	if len(n.reasons) > 0 && (v.Job.State != job.Pending || !slices.Contains(n.reasons, string(v.Why.Code))) {
		return false
	}
	if len(n.pools) > 0 && !slices.Contains(n.pools, poolOf(v, n.home)) {
		return false
	}
	if n.match == "" {
		return true
	}
	s := v.Job.Spec
	var number [48]byte
	return containsFold(s.Name, n.match) || containsFold(s.Owner.User, n.match) || containsFold(s.Account, n.match) ||
		strings.Contains(string(appendName(number[:0], v)), n.match)
}

// containsFold reports whether a text has another one, which is in lower case, in it. Texts of ASCII
// are compared without a copy.
func containsFold(text, lower string) bool {
	for i := 0; i+len(lower) <= len(text); i++ {
		k := 0
		for k < len(lower) && lowerByte(text[i+k]) == lower[k] {
			k++
		}
		if k == len(lower) {
			return true
		}
	}
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Contains(strings.ToLower(text), lower)
		}
	}
	return false
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

type countInput struct {
	SelectQuery
	NarrowQuery
}

// mostCounted bounds the names of each kind that counts have.
const mostCounted = 100

func (s *Service) registerCounts() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/counts", Verb: auth.SeeJob, ID: "countJobs", Tag: "jobs", Owned: true,
		Summary: "Count jobs", About: "Of the same parameters as a list of jobs. An array counts as its tasks. Jobs that the caller may not see are not counted.",
	}, func(c *call, in *countInput) (*api.JobCounts, error) { return s.countJobs(c, in) })
}

func (s *Service) countJobs(c *call, in *countInput) (*api.JobCounts, error) {
	sel, err := s.selectNarrowed(&in.SelectQuery, &in.NarrowQuery)
	if err != nil {
		return nil, err
	}
	out := &api.JobCounts{States: map[string]int{}, Change: s.cfg.Plane.LastEvent()}
	kinds := []*map[string]int{&out.Reasons, &out.Pools, &out.Partitions, &out.Users, &out.Accounts}
	for _, k := range kinds {
		*k = map[string]int{}
	}
	home := pools.DefaultPool(s.cfg.Plane.Pools())
	every := *sel
	every.states, every.flags, every.live = allStates, 0, false
	c.eachSelected(&every, 0, false, func(v *state.View) bool {
		out.States[v.Job.State.String()]++
		if !sel.matchesState(v) {
			return true
		}
		out.Total++
		if v.Job.State == job.Pending && v.Why.Code != "" {
			out.Reasons[string(v.Why.Code)]++
		}
		sp := v.Job.Spec
		out.Pools[poolOf(v, home)]++
		for _, p := range sp.Partitions {
			out.Partitions[p]++
		}
		out.Users[sp.Owner.User]++
		out.Accounts[sp.Account]++
		return true
	})
	delete(out.Accounts, "")
	for _, k := range kinds {
		keepLargest(*k, mostCounted)
	}
	return out, c.Ctx().Err()
}

// keepLargest removes all but the largest counts.
func keepLargest(counts map[string]int, most int) {
	if len(counts) <= most {
		return
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for _, name := range names[most:] {
		delete(counts, name)
	}
}
