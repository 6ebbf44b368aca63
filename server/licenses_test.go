package server

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestLicencesOfAPool: in a pool with a scheduler of its own, licences that the site does not
// count are for that; elsewhere they are refused.
//
// Seen to fail with: the site's list asked of every pool.
func TestLicencesOfAPool(t *testing.T) {
	p := servertest.NewPlane()
	p.AddSlurmPools("slurm-b", "blind")
	p.Engines = map[string]engine.Engine{"slurm-b": servertest.Delegate{Inv: &fleet.Inventory{}}}
	r := start(t, p, nil)
	if _, err := r.Admin(t).SetPolicy(t.Context(), &api.SetPolicy{Text: "licenses: [{name: ours, count: 2}]\n"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ pool, asked, there, want string }{
		{pool: "slurm-b", asked: "ours:1,theirs:9", there: "theirs"},
		{pool: "slurm-b", asked: "theirs|ours", there: "theirs"},
		{pool: "slurm-b", asked: "ours:2"},
		{pool: "slurm-b", asked: "ours:3,theirs", want: "the site has 2 of ours"},
		{pool: "local", asked: "theirs", want: "there is no licence theirs"},
		{pool: "blind", asked: "theirs", want: "there is no licence theirs"},
	} {
		req := servertest.Request()
		req.Pool, req.Args = c.pool, []string{"--licenses=" + c.asked}
		out, err := r.As(t, "anna").Submit(t.Context(), req)
		if c.want != "" {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s: %v, want %q", c.asked, c.pool, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %s: %v", c.asked, c.pool, err)
			continue
		}
		if s := p.Get(out.ID).Job.Spec; s.Licenses != c.asked || strings.Join(s.LicensesThere, ",") != c.there {
			t.Errorf("%s of %s: kept %q, of which %q are counted there", c.asked, c.pool, s.Licenses, s.LicensesThere)
		}
	}
}
