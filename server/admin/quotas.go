package admin

import (
	"math"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/model/account/priority"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerQuotas() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/quotas", Verb: auth.SeePolicy, ID: "quotas", Tag: "policy",
		Summary: "What accounts may hold, hold, borrow and lend", About: "The trees of accounts with quotas, as of the last decision: sums, without jobs.",
	}, func(c *call, _ *transport.Nothing) (*api.Quotas, error) {
		list := s.cfg.Plane.Quotas(c.Ctx())
		out := &api.Quotas{Accounts: []api.QuotaAccount{}}
		for i := range list {
			out.Accounts = append(out.Accounts, shownHolding(list, i))
		}
		return out, nil
	})
}

func shownHolding(list []query.Holding, i int) api.QuotaAccount {
	h := &list[i]
	out := api.QuotaAccount{Account: h.Account, Depth: h.Depth, Own: h.Own, Running: h.Running, Pending: h.Pending, Dominant: h.Dominant}
	if h.Parent >= 0 {
		out.Parent = list[h.Parent].Account
	}
	if h.Share.Borrowing {
		share := float64(h.Share.PerMille())
		if h.Share.PerMille() == math.MaxInt64 {
			share = -1
		}
		out.Share = &share
	}
	for k := range h.Amounts {
		a := &h.Amounts[k]
		shown := func(n resource.Amount) float64 { return float64(n) / priority.Unit(a.Resource) }
		bound := func(n resource.Amount) *float64 {
			if n == resource.Unlimited {
				return nil
			}
			x := shown(n)
			return &x
		}
		x := api.QuotaAmount{
			Flavor: a.Flavor, Resource: a.Resource, Nominal: shown(a.Nominal), Quota: shown(a.Quota), Held: shown(a.Held),
			Borrowed: shown(a.Borrowed), Lent: shown(a.Lent), Pending: shown(a.Pending), MayBorrow: bound(a.Borrow), MayLend: bound(a.Lend),
		}
		if a.Borrowed > 0 {
			x.From = quotaLenders(list, i, a)
		}
		out.Amounts = append(out.Amounts, x)
	}
	return out
}

// quotaLenders are whose quota an account may have borrowed of: its siblings that have some
// idle, else, as its parent borrows itself, those of its parent, and so on.
func quotaLenders(list []query.Holding, i int, of *query.HoldingAmount) (out []string) {
	for at := i; list[at].Parent >= 0; at = list[at].Parent {
		for k := range list {
			if k == at || list[k].Parent != list[at].Parent {
				continue
			}
			for _, a := range list[k].Amounts {
				if a.Flavor == of.Flavor && a.Resource == of.Resource && a.Lent > 0 {
					out = append(out, list[k].Account)
				}
			}
		}
		if !isBorrowing(&list[list[at].Parent], of) {
			break
		}
	}
	return out
}

func isBorrowing(h *query.Holding, of *query.HoldingAmount) bool {
	for _, a := range h.Amounts {
		if a.Flavor == of.Flavor && a.Resource == of.Resource {
			return a.Borrowed > 0
		}
	}
	return false
}
