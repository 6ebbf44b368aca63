package admin

import (
	"cmp"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerSettings() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/settings", Verb: auth.SeePolicy, ID: "settings", Tag: "server",
		Summary: "Settings of configuration and rules that apply to all jobs", About: "What scontrol show config prints is made of it. Times are seconds.",
	}, func(c *call, _ *transport.Nothing) (*api.Settings, error) {
		rules, err := s.cfg.InForce.Now(c.Ctx())
		if err != nil {
			return nil, err
		}
		v, err := s.cfg.Plane.Policy(c.Ctx(), 0)
		if err != nil {
			return nil, err
		}
		out := s.cfg.Settings
		out.Accounts = rules.Known()
		p := v.Rules
		if p == nil {
			p = &account.Policy{}
		}
		addPolicySettings(&out, p)
		return &out, nil
	})
}

// addPolicySettings enters what the rules say, with the defaults of what they leave out.
func addPolicySettings(out *api.Settings, p *account.Policy) {
	seconds := func(d account.Duration) float64 { return time.Duration(d).Seconds() }
	out.Requeue = p.Batch.Requeue != account.RequeueOff
	out.RequeueExit, out.RequeueExitHold = string(p.Batch.RequeueExit), string(p.Batch.RequeueExitHold)
	out.AppendOutput = p.Batch.OpenMode == account.OpenAppend
	out.Backfill = !p.Backfill.Off
	out.PreemptBy, out.PreemptMode, out.PreemptExempt = p.Preemption.By, account.PreemptOff, seconds(p.Preemption.Exempt)
	if len(p.Preemption.By) > 0 {
		out.PreemptMode = cmp.Or(p.Preemption.Mode, account.PreemptRequeue)
	}
	w := &p.Priority
	out.FavorSmall = w.FavorSmall
	out.PriorityMaxAge = cmp.Or(seconds(w.MaxAge), (7 * 24 * time.Hour).Seconds())
	if !w.Zero() {
		out.Weights = map[string]uint32{}
		for name, n := range map[string]uint32{
			"age": w.Age, "association": w.Association, "fair_share": w.FairShare, "job_size": w.JobSize, "partition": w.Partition, "qos": w.QOS,
		} {
			out.Weights[name] = n
		}
		for name, n := range w.TRES {
			out.Weights["tres/"+name] = n
		}
	}
	out.HalfLife = max(cmp.Or(seconds(p.FairShare.HalfLife), fair.WeekHalfLife.Seconds()), 0)
	out.UsagePeriod = cmp.Or(seconds(p.FairShare.Period), (5 * time.Minute).Seconds())
	out.UsageReset = p.FairShare.Reset
}
