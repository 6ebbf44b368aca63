package admin

import (
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerLicenses() {
	type in struct{}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/licenses", Verb: auth.SeeNodes, ID: "listLicenses", Tag: "nodes",
		Summary: "List licences and who holds them", About: "Those that the policy names. Holders are in order of their numbers.",
	}, func(c *call, _ *in) (*api.Licenses, error) { return s.listLicenses(c) })
}

func (s *service) listLicenses(c *call) (*api.Licenses, error) {
	p, err := s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	out := &api.Licenses{Licenses: []api.License{}}
	at := map[string]int{}
	for i, l := range p.Rules.Licenses {
		at[l.Name] = i
		out.Licenses = append(out.Licenses, api.License{Name: l.Name, Total: l.Count})
	}
	s.cfg.Plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		if v.Job.Spec.Licenses == "" {
			return true
		}
		for _, l := range licensesOf(v.Job.Spec.Licenses) {
			i, known := at[l.Name]
			if !known {
				continue
			}
			have := &out.Licenses[i]
			if !v.Job.State.Holds() {
				have.Wanted += l.Count
				continue
			}
			have.Used += l.Count
			if c.MaySee(v) {
				have.Holders = append(have.Holders, api.LicenseHolder{Job: v.Job.Name(), User: v.Job.Spec.Owner.User, Count: l.Count})
			}
		}
		return true
	})
	return out, nil
}

// licensesOf lists the licences that a job asks for; of alternatives each.
func licensesOf(text string) (out []account.License) {
	choices, _ := account.LicenseChoices(text) // read at submission
	for _, one := range choices {
		list, _ := account.ParseLicenses(one)
		out = append(out, list...)
	}
	return out
}
