package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestPolicy: a document is set whole or not at all, by an administrator, and is read
// again as it was written.
func TestPolicy(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	admin, anna := r.Admin(t), r.As(t, "anna")
	ctx := t.Context()
	if p, err := anna.Policy(ctx, 0); err != nil || p.Revision != 0 || p.Text != "" {
		t.Fatalf("%+v %v", p, err)
	}
	const text = "# our rules\npartitions: [{name: main, tier: 2}]\n"
	if _, err := anna.SetPolicy(ctx, &api.SetPolicy{Text: text}); fault.KindOf(err) != fault.Permission {
		t.Errorf("anna sets the rules: %v", err)
	}
	base := uint64(0)
	dry, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: text, DryRun: true, Base: &base})
	if err != nil || !dry.Changed || dry.Policy.Revision != 0 {
		t.Fatalf("%+v %v", dry, err)
	}
	done, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: text, File: "q.yaml", Note: "first", Base: &base})
	if err != nil || !done.Changed || done.Policy.Revision != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if _, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: "licenses: []\n", Base: &base}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("over a revision that is not in force: %v", err)
	}
	_, err = admin.SetPolicy(ctx, &api.SetPolicy{Text: text + "partitons: []\n", File: "q.yaml"})
	var e *api.Error
	if !errors.As(err, &e) || len(e.Errors) != 1 || e.Errors[0].Line != 3 || e.Errors[0].File != "q.yaml" || !strings.Contains(e.Errors[0].Message, "did you mean partitions?") {
		t.Errorf("%v %+v", err, e)
	}
	if p, err := anna.Policy(ctx, 0); err != nil || p.Revision != 1 || p.Text != text || p.Note != "first" || p.By == "" {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: "{}"}); err != nil {
		t.Fatal(err)
	}
	back, err := admin.SetPolicy(ctx, &api.SetPolicy{Back: 1})
	if err != nil || back.Policy.Revision != 3 || back.Policy.Back != 1 || back.Policy.Text != text {
		t.Errorf("%+v %v", back, err)
	}
	h, err := anna.PolicyHistory(ctx)
	if err != nil || len(h.Policies) != 3 || h.Policies[0].Text != "" || h.Policies[2].Back != 1 {
		t.Errorf("%+v %v", h, err)
	}
	if _, err := anna.Policy(ctx, 9); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestTheDoorUnderAPolicy: accounts and QOS of the policy in force decide who may
// submit what, and what a change would do to jobs is told before it is made.
func TestTheDoorUnderAPolicy(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) {
		c.Rules.Accounts = []admission.Account{{Name: "old", Users: []string{"anna"}}}
	})
	admin, anna, ctx := r.Admin(t), r.As(t, "anna"), t.Context()
	submit := func(args ...string) error {
		req := servertest.Request()
		req.Args = args
		_, err := anna.Submit(ctx, req)
		return err
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	const text = "accounts:\n  - {name: nlp, users: [anna], qos: normal}\nqos: [normal, high]\n"
	dry, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: text, DryRun: true})
	if err != nil || len(dry.Changes) != 3 || dry.Changes[0].Text != "account nlp is added" {
		t.Fatalf("%+v %v", dry, err)
	}
	if got := strings.Join(dry.Effects, "|"); !strings.Contains(got, "1 waiting job would be refused") || !strings.Contains(got, "--account=old: there is no such account") {
		t.Error(got)
	}
	if len(dry.Warnings) != 1 || !strings.Contains(dry.Warnings[0], "account old of cox.yaml") {
		t.Error(dry.Warnings)
	}
	if err := submit("--account=nlp"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a dry run was in force: %v", err)
	}
	if _, err := admin.SetPolicy(ctx, &api.SetPolicy{Text: text}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want fault.Kind
	}{
		{nil, 0}, {[]string{"--account=nlp"}, 0}, {[]string{"--account=old"}, fault.Invalid}, {[]string{"--qos=high"}, fault.Permission}, {[]string{"--qos=x"}, fault.Invalid}, {[]string{"--qos=normal"}, 0},
	} {
		if err := submit(c.args...); (err == nil) != (c.want == 0) || err != nil && fault.KindOf(err) != c.want {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	info, err := anna.Info(ctx)
	if err != nil || len(info.You.Accounts) != 1 || info.You.Accounts[0] != "nlp" {
		t.Errorf("%+v %v", info, err)
	}
	high := "high"
	out, err := anna.Change(ctx, &api.Change{Select: api.Select{IDs: []string{"2"}}, Verb: "update", Update: &api.Update{QOS: &high}})
	if err != nil || len(out.Errors) != 1 || out.Errors[0].Error.FaultKind() != fault.Permission {
		t.Errorf("an update to a QOS that may not be used: %+v %v", out, err)
	}
}

// stocked is an engine that has found partitions, or nothing yet.
type stocked struct {
	engine.Engine
	inv *fleet.Inventory
}

func (s stocked) Inventory() *fleet.Inventory { return s.inv }

// TestRulesOfAbsentPartitions: rules of a partition that neither the server nor a pool has are refused at
// their line. A pool that has not answered yet may have it: then they are warned of.
//
// Seen to fail without asking the pools, and without the check.
func TestRulesOfAbsentPartitions(t *testing.T) {
	p := servertest.NewPlane()
	p.PoolViews = []pools.View{{Pool: fleet.Pool{Name: "hpc", Engine: "slurm"}}}
	found := &fleet.Inventory{Partitions: []fleet.Partition{{Name: "gpu"}}}
	p.Engines = map[string]engine.Engine{"hpc": stocked{inv: found}}
	admin := start(t, p, nil).Admin(t)
	set := func(text string) (*api.PolicyDone, error) {
		return admin.SetPolicy(t.Context(), &api.SetPolicy{Text: text, DryRun: true, File: "q.yaml"})
	}
	if _, err := set("partitions: [main, gpu]\n"); err != nil {
		t.Fatal(err)
	}
	_, err := set("partitions:\n  - main\n  - {name: long, tier: 2}\n")
	var e *api.Error
	if !errors.As(err, &e) || len(e.Errors) != 1 || e.Errors[0].Line != 3 || e.Errors[0].Message != "partitions[1].name: there is no partition long on this server, which has main, gpu" {
		t.Fatalf("%v %+v", err, e)
	}
	p.Engines["hpc"] = stocked{}
	done, err := set("partitions: [long]\n")
	if err != nil || len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "partition long: the server does not have it, and pool hpc has not answered yet") {
		t.Errorf("%+v %v", done, err)
	}
}

// TestRulesOfHandover: rules of hand-over that contradict the pools are refused at their line.
//
// Seen to fail without each of the checks.
func TestRulesOfHandover(t *testing.T) {
	p := servertest.NewPlane()
	p.PoolViews = []pools.View{{Pool: fleet.Pool{Name: "slurm"}}, {Pool: fleet.Pool{Name: "kube"}}, {Pool: fleet.Pool{Name: "far"}, Delegated: true}, {Pool: fleet.Pool{Name: "old"}, Gone: true}}
	p.Nodes = nil
	for i := range 4 {
		for _, pool := range []string{"slurm", "kube"} {
			p.Nodes = append(p.Nodes, query.NodeView{Node: fleet.Node{Name: fmt.Sprint(pool, i), Pool: pool, Hosts: []string{fmt.Sprint("m", i)}, State: fleet.Up}})
		}
	}
	admin := start(t, p, nil).Admin(t)
	for _, c := range []struct{ rules, want string }{
		{"{name: slurm, min: 2}, {name: kube, min: 2}", ""},
		{"{name: slurm, min: 3}, {name: kube, min: 2}", "handover.pools: the minimums are 5 machines together, and there are 4"},
		{"{name: slurm, min: 5}, {name: kube}", "handover.pools[0].min: 5 is more than the 4 machines that pool slurm could have"},
		{"{name: slurm}, {name: cube}", `handover.pools[1].name: there is no pool "cube"`},
		{"{name: slurm}, {name: old}", `handover.pools[1].name: there is no pool "old"`},
		{"{name: slurm}, {name: far}", "handover.pools[1].name: the own scheduler of pool far chooses the nodes of its jobs"},
		{"{name: slurm, min: 3, max: 2}, {name: kube}", "handover.pools[0].max: 2 is less than min, 3"},
	} {
		_, err := admin.SetPolicy(t.Context(), &api.SetPolicy{Text: "handover: {pools: [" + c.rules + "]}\n", DryRun: true, File: "q.yaml"})
		var e *api.Error
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || !errors.As(err, &e) || len(e.Errors) != 1 || e.Errors[0].Line != 1 || !strings.HasPrefix(e.Errors[0].Message, c.want) || e.Errors[0].Remedy == "":
			t.Errorf("%s: %v %+v, want %s", c.rules, err, e, c.want)
		}
	}
}

// TestRulesOfHandoverLater: a pool that is delegated since the rules of hand-over were set is named in the list of
// machines and by the check of the pool.
//
// Seen to fail without either.
func TestRulesOfHandoverLater(t *testing.T) {
	p := servertest.NewPlane()
	p.PoolViews = []pools.View{{Pool: fleet.Pool{Name: "slurm"}}, {Pool: fleet.Pool{Name: "kube"}}}
	admin := start(t, p, nil).Admin(t)
	if _, err := admin.SetPolicy(t.Context(), &api.SetPolicy{Text: "handover: {pools: [{name: slurm}, {name: kube}]}\n", File: "q.yaml"}); err != nil {
		t.Fatal(err)
	}
	seen := func() (warnings []api.MachineWarning, findings []string) {
		t.Helper()
		all, err := admin.Machines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done, err := admin.CheckPool(t.Context(), "slurm")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range done.Findings {
			if f.What == "hand-over" {
				findings = append(findings, f.State+": "+f.Text)
			}
		}
		return all.Warnings, findings
	}
	if w, f := seen(); len(w)+len(f) != 0 {
		t.Errorf("%+v, %q", w, f)
	}
	p.Mu.Lock()
	p.PoolViews[0].Delegated = true
	p.Mu.Unlock()
	w, f := seen()
	if len(w) != 1 || !strings.Contains(w[0].Text, "handover.pools[0].name: the own scheduler of pool slurm chooses the nodes") || w[0].Do == "" {
		t.Errorf("machines: %+v", w)
	}
	if len(f) != 1 || !strings.HasPrefix(f[0], "warning: handover: of the policy in force names the pool, without effect") {
		t.Errorf("pool check: %q", f)
	}
}
