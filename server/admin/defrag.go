package admin

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerDefrag() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/defrag", Verb: auth.SeeNodes, ID: "getDefrag", Tag: "nodes",
		Summary: "Jobs that are proposed to move, and jobs that move", About: "Running jobs that save checkpoints may be moved so that a waiting one fits. At most one proposal is made at a time, for the first job of the queue.",
	}, func(c *call, _ *transport.Nothing) (*api.Defrag, error) { return s.defragPlan(c) })
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/defrag/approve", Verb: auth.Move, ID: "approveDefrag", Tag: "nodes", Body: transport.TypeOf[api.ApproveDefrag](),
		Example: &api.ApproveDefrag{ID: "17-3fa2c1"},
		Summary: "Move jobs as proposed", About: "All of the proposal or, if it is not the present one any more, nothing (conflict).",
	}, func(c *call, _ *transport.Nothing) (*api.Defrag, error) {
		req, err := transport.DecodeBody[api.ApproveDefrag](c.Call)
		if err != nil {
			return nil, err
		}
		if err := s.cfg.Plane.ApproveMoves(c.Ctx(), c.ID.Actor(), req.ID); err != nil {
			return nil, err
		}
		return s.defragPlan(c)
	})
}

func (s *service) defragPlan(c *call) (*api.Defrag, error) {
	m, err := s.cfg.Plane.Moves(c.Ctx())
	if err != nil {
		return nil, err
	}
	out := &api.Defrag{Mode: m.Mode, Idle: m.Idle}
	for i := range m.Moving {
		out.Moving = append(out.Moving, c.shownMove(&m.Moving[i]))
	}
	p := m.Proposal
	if p == nil {
		return out, nil
	}
	out.Proposal = &api.DefragPlan{ID: p.ID, Nodes: nodeNames(p.Claims), Starts: p.At}
	if c.MaySee(&p.For) {
		out.Proposal.Job, out.Proposal.User = p.For.Job.Name(), p.For.Job.Spec.Owner.User
	}
	for i := range p.Moves {
		x := c.shownMove(&p.Moves[i])
		x.For = ""
		out.Proposal.Moves = append(out.Proposal.Moves, x)
		out.Proposal.Cost += x.Cost
		out.Proposal.CoreCost += x.CoreCost
	}
	return out, nil
}

func (c *call) shownMove(m *query.Moved) api.DefragMove {
	out := api.DefragMove{From: nodeNames(m.Claims), To: nodeNames(m.Home), Lost: int64(m.Lost / time.Second), For: strconv.FormatUint(uint64(m.For), 10)}
	gpus, cpus := int64(0), int64(0) // thousandths
	for i := range m.Claims {
		cpus += int64(m.Claims[i].Take.CPU)
		for _, d := range m.Claims[i].Devices {
			gpus += int64(d.Share)
		}
	}
	out.GPUs, out.Cost, out.CoreCost = float64(gpus)/1000, out.Lost*gpus/1000, out.Lost*cpus/1000
	if c.MaySee(&m.View) {
		out.Job, out.User = m.Job.Name(), m.Job.Spec.Owner.User
	}
	return out
}

// nodeNames names the nodes of claims, each once.
func nodeNames(claims []fleet.Claim) []string {
	names := []string{}
	for i := range claims {
		if !slices.Contains(names, claims[i].Node) {
			names = append(names, claims[i].Node)
		}
	}
	return names
}
