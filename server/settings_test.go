package server

import (
	"maps"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestSettings: what the configuration says comes back as it is; the rules in force are added
// with the defaults of what they leave out.
func TestSettings(t *testing.T) {
	r := start(t, servertest.NewPlane(), func(c *Config) {
		c.Settings = api.Settings{Memory: 300, MaxArray: 1001, KillOnInvalidDep: true}
	})
	anna, ctx := r.As(t, "anna"), t.Context()
	got, err := anna.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.Memory != 300 || got.MaxArray != 1001 || !got.KillOnInvalidDep {
		t.Errorf("the configuration is not there: %+v", got)
	}
	if !got.Requeue || got.AppendOutput || !got.Backfill || got.PreemptMode != "off" || got.HalfLife != 7*86400 || got.UsagePeriod != 300 || got.Weights != nil || got.Accounts {
		t.Errorf("without rules: %+v", got)
	}
	const rules = `
batch: {requeue: "off", open_mode: append, requeue_exit: 1-9, requeue_exit_hold: 75}
backfill: {off: true}
preemption: {by: [partition], exempt: 10m}
priority: {age: 10, tres: {gpu: 5}, max_age: 1d}
fair_share: {half_life: never, reset: weekly}
accounts: [{name: nlp, users: [{name: anna}]}]
`
	if _, err := r.Admin(t).SetPolicy(ctx, &api.SetPolicy{Text: rules}); err != nil {
		t.Fatal(err)
	}
	if got, err = anna.Settings(ctx); err != nil {
		t.Fatal(err)
	}
	if got.Requeue || got.RequeueExit != "1-9" || got.RequeueExitHold != "75" || !got.AppendOutput || got.Backfill || got.PreemptMode != "requeue" || got.PreemptExempt != 600 || got.HalfLife != 0 || got.UsageReset != "weekly" || got.PriorityMaxAge != 86400 || !got.Accounts {
		t.Errorf("under the rules: %+v", got)
	}
	want := map[string]uint32{"age": 10, "association": 0, "fair_share": 0, "job_size": 0, "partition": 0, "qos": 0, "tres/gpu": 5}
	if !maps.Equal(got.Weights, want) {
		t.Errorf("weights %v, want %v", got.Weights, want)
	}
}

// TestSystem: nodes of the server's own machine come with what its kernel says, others without.
func TestSystem(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Machine = func() *api.System { return &api.System{OS: "Linux 6", Load: 1.5} } })
	list, err := r.As(t, "anna").Nodes(t.Context())
	if err != nil || len(list.Nodes) == 0 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, n := range list.Nodes {
		if local := n.Engine == "local"; local != (n.System != nil) || local && n.System.Load != 1.5 {
			t.Errorf("%s of engine %q: %+v", n.Name, n.Engine, n.System)
		}
	}
}
