package jobs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

const (
	smallText   = "#!/bin/sh\n#SBATCH --time=10\nhostname\n"
	coupledText = "#!/bin/sh\n#SBATCH --nodes=2 --time=10\nsrun ./solver\n"
)

// TestWhichPool: a job that names no pool goes where the advice says, of what can run it; what
// is decided is in the answer and stays with the job. An earlier start outranks the advice, by a
// margin, among pools with the same machines.
//
// Seen to fail where each pool is not tried as itself, without the order of the advice, and
// with a pool that has not answered taken before one that can.
func TestWhichPool(t *testing.T) {
	few := &control.RefusedError{Reasons: []reason.Reason{{Code: reason.NodeCount, Resource: "nodes", Need: 2, Free: 1}}}
	door := fault.New(fault.Invalid, "the cluster has no such account").Advise("take another")
	no := func(err error, pools ...string) func(*job.Spec) (bool, error) {
		return func(s *job.Spec) (bool, error) {
			for _, p := range pools {
				if s.Pool == p {
					return true, err
				}
			}
			return true, nil
		}
	}
	for _, c := range []struct {
		name   string
		pools  []string
		change func(*servertest.Plane)
		site   string // jobs.pool
		pool   string // --pool
		text   string
		fits   func(*job.Spec) (bool, error)
		want   string // pool of the job's specification
		rule   string // "": nobody chose
		passed string
		starts map[string]time.Duration // by pool
		waits  string
	}{
		{name: "one pool", text: coupledText},
		{name: "named", pools: []string{"slurm-b"}, pool: "local", text: coupledText, want: "local"},
		{name: "small", pools: []string{"slurm-b"}, text: smallText, rule: "first-able-pool"},
		{name: "coupled", pools: []string{"slurm-b"}, text: coupledText, want: "slurm-b", rule: "advised-engine"},
		{name: "by name", pools: []string{"slurm-b", "slurm-a"}, text: coupledText, want: "slurm-a", rule: "advised-engine"},
		{name: "too large for one", pools: []string{"slurm-b"}, text: smallText, fits: no(few, "local"), want: "slurm-b", rule: "first-able-pool", passed: "local: needs 2 nodes, only 1 qualify"},
		{name: "refused at the door of one", pools: []string{"slurm-a", "slurm-b"}, text: coupledText, fits: no(door, "slurm-a"), want: "slurm-b", rule: "advised-engine", passed: "slurm-a: the cluster has no such account"},
		{name: "the engine that is advised cannot", pools: []string{"slurm-b"}, text: coupledText, fits: no(few, "slurm-b"), rule: "first-able-pool", passed: "slurm-b: needs 2 nodes, only 1 qualify"},
		{name: "a partition of another's", pools: []string{"slurm-b"}, text: "#!/bin/sh\n#SBATCH -p batch\nhostname\n", want: "slurm-b", rule: "first-able-pool", passed: "local: --partition=batch: there is no such partition"},
		{name: "a reservation of another's", pools: []string{"slurm-b"}, text: "#!/bin/sh\n#SBATCH --reservation=maint\nhostname\n", want: "slurm-b", rule: "first-able-pool", passed: "local: --reservation=maint: this site has no reservations"},
		{name: "the site says", pools: []string{"slurm-a", "slurm-b"}, site: "slurm-b", text: smallText, want: "slurm-b", rule: "site"},
		{name: "the site says, and somebody names one", pools: []string{"slurm-a"}, site: "slurm-a", pool: "local", text: smallText, want: "local"},
		{
			name: "not heard of, and another can", pools: []string{"slurm-a", "slurm-b"}, text: coupledText, want: "slurm-b", rule: "advised-engine", passed: "slurm-a: it has not said yet which nodes it has",
			fits: func(s *job.Spec) (bool, error) { return s.Pool != "slurm-a", nil },
		},
		{
			name: "not heard of, and no other can", pools: []string{"slurm-b"}, text: coupledText, want: "slurm-b", rule: "not-known-yet", passed: "local: needs 2 nodes, only 1 qualify",
			fits: func(s *job.Spec) (bool, error) {
				if s.Pool == "local" {
					return true, few
				}
				return false, nil
			},
		},
		{name: "declared GPUs", pools: []string{"slurm-b"}, change: func(p *servertest.Plane) { p.PoolViews[0].Declared = p.PoolViews[0].Devices }, text: "#!/bin/sh\n#SBATCH --gpus=1\nhostname\n", want: "slurm-b", rule: "real-devices"},
		{name: "silent", pools: []string{"slurm-a", "slurm-b"}, change: func(p *servertest.Plane) { p.PoolViews[1].Failed = errors.New("connection refused") }, text: coupledText, want: "slurm-b", rule: "advised-engine"},
		{
			name: "modules, and the server's own pool runs containers", pools: []string{"slurm-b"}, change: containersHere,
			text: "#!/bin/sh\n#SBATCH --time=10\nmodule load cuda/12.1\npython x.py\n", want: "slurm-b", rule: "advised-engine",
		},
		{name: "nothing of the machines", pools: []string{"slurm-b"}, change: containersHere, text: smallText, rule: "first-able-pool"},
		{name: "earlier elsewhere", pools: []string{"slurm-b"}, text: smallText, starts: map[string]time.Duration{"": time.Hour, "slurm-b": 10 * time.Minute}, want: "slurm-b", rule: "earliest-start", waits: "slurm-b in about 10 min|local in about 1 h"},
		{name: "earlier by less than a fifth", pools: []string{"slurm-b"}, text: smallText, starts: map[string]time.Duration{"": time.Hour, "slurm-b": 50 * time.Minute}, rule: "first-able-pool", waits: "local in about 1 h|slurm-b in about 45 min"},
		{name: "at once where it is advised", pools: []string{"slurm-b"}, text: coupledText, starts: map[string]time.Duration{"slurm-b": 0, "": 0}, want: "slurm-b", rule: "advised-engine"},
		{name: "earlier than where it is advised", pools: []string{"slurm-b"}, text: coupledText, starts: map[string]time.Duration{"slurm-b": time.Hour, "": 0}, rule: "earliest-start", waits: "local at once|slurm-b in about 1 h"},
		{name: "nobody knows of the first", pools: []string{"slurm-b"}, text: smallText, starts: map[string]time.Duration{"slurm-b": 3 * time.Hour}, want: "slurm-b", rule: "earliest-start", waits: "slurm-b in about 3 h|local nobody knows when"},
		{name: "earlier, on devices without hardware", pools: []string{"slurm-b"}, change: func(p *servertest.Plane) { p.PoolViews[0].Declared = p.PoolViews[0].Devices }, text: "#!/bin/sh\n#SBATCH --gpus=1\nhostname\n", starts: map[string]time.Duration{"slurm-b": time.Hour, "": 0}, want: "slurm-b", rule: "real-devices", waits: "slurm-b in about 1 h"},
		{name: "of two", pools: []string{"slurm-a", "slurm-b"}, pool: "slurm-a,slurm-b", text: smallText, starts: map[string]time.Duration{"": 0, "slurm-a": time.Hour, "slurm-b": 0}, want: "slurm-b", rule: "earliest-start", waits: "slurm-b at once|slurm-a in about 1 h"},
		{name: "any, though the site says", pools: []string{"slurm-b"}, site: "slurm-b", pool: "any", text: smallText, rule: "first-able-pool"},
		{name: "of two that the site names", pools: []string{"slurm-a", "slurm-b"}, site: "slurm-b, slurm-a", text: smallText, want: "slurm-a", rule: "first-able-pool"},
		{name: "cannot be opened", pools: []string{"slurm-b"}, change: func(p *servertest.Plane) { p.PoolViews[1].Broken = errors.New("no conf") }, text: coupledText, rule: "first-able-pool", passed: "slurm-b: it could not be opened: no conf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := servertest.NewPlane()
			p.AddSlurmPools(c.pools...)
			p.FitsFunc = c.fits
			if c.change != nil {
				c.change(p)
			}
			now := time.Now()
			p.StartFunc = func(s *job.Spec) time.Time {
				if wait, ok := c.starts[strings.TrimPrefix(s.Pool, "local")]; ok {
					return now.Add(wait)
				}
				return time.Time{}
			}
			r := start(t, p, func(cfg *Config) {
				cfg.Pool, cfg.Now = c.site, func() time.Time { return now }
				cfg.Rules = &admission.Rules{Pool: "local", Partitions: []admission.Partition{{Name: "main", Default: true}}}
			})
			s := servertest.Request()
			s.Form, s.Text, s.Args, s.Environ, s.Pool = api.FormSbatch, c.text, nil, nil, c.pool
			b, _ := json.Marshal(s)
			resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
			var out api.Submitted
			if err := json.Unmarshal([]byte(body), &out); err != nil || resp.StatusCode != 201 {
				t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
			}
			got := p.Jobs[len(p.Jobs)-1].Job.Spec
			if got.Pool != c.want {
				t.Errorf("it is in pool %q, want %q", got.Pool, c.want)
			}
			if c.rule == "" {
				if got.Chosen != nil || out.Chosen != nil {
					t.Errorf("somebody chose: %+v", got.Chosen)
				}
				return
			}
			if got.Chosen == nil || out.Chosen == nil || got.Chosen.Rule != c.rule || got.Chosen.Why == "" || out.Chosen.Rule != c.rule || out.Pool == "" {
				t.Fatalf("chosen by %+v, answered %+v, want %s", got.Chosen, out.Chosen, c.rule)
			}
			var passed []string
			for _, x := range got.Chosen.Passed {
				passed = append(passed, x.Pool+": "+x.Why)
			}
			if text := strings.Join(passed, "|"); text != c.passed {
				t.Errorf("passed over: %q, want %q", text, c.passed)
			}
			var waits []string
			for _, w := range got.Chosen.Waits {
				waits = append(waits, w.Pool+" "+w.Text())
			}
			if text := strings.Join(waits, "|"); text != c.waits {
				t.Errorf("waits: %q, want %q", text, c.waits)
			}
			if c.waits != "" && len(got.Chosen.Among) > 0 {
				w, err := r.As(t, "anna").Why(t.Context(), out.ID.String())
				if err != nil || len(w.Elsewhere) != len(got.Chosen.Among)-1 {
					t.Errorf("the other pools of %v: %+v, %v", got.Chosen.Among, w, err)
				}
			}
			if parts := strings.Join(got.Partitions, ","); c.want == "slurm-b" && parts == "main" {
				t.Errorf("it has a partition of another pool: %s", parts)
			}
		})
	}
}

// containersHere has the server's own pool be one of Kubernetes.
func containersHere(p *servertest.Plane) { p.PoolViews[0].Engine = "kube" }

// TestPoolsNamedWrong: of several pools that a job names, each has to be there, once.
func TestPoolsNamedWrong(t *testing.T) {
	p := servertest.NewPlane()
	p.AddSlurmPools("slurm-b")
	r := start(t, p, nil)
	for pool, want := range map[string]string{"local,slurm-x": "there is no pool slurm-x", "slurm-b,local,slurm-b": "pool slurm-b is named twice"} {
		s := servertest.Request()
		s.Pool = pool
		if _, err := r.As(t, "anna").Submit(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pool, err)
		}
	}
	if len(p.Jobs) > 0 {
		t.Errorf("it was submitted: %+v", p.Jobs)
	}
}

// TestNoPoolCanRunIt: every pool says why, the server's own with the place in the text, and
// each with what would help.
func TestNoPoolCanRunIt(t *testing.T) {
	p := servertest.NewPlane()
	p.AddSlurmPools("slurm-b")
	p.FitsFunc = func(s *job.Spec) (bool, error) {
		if s.Pool == "local" {
			return true, &control.RefusedError{Reasons: []reason.Reason{{Code: reason.NodeCount, Resource: "nodes", Need: 2, Free: 1}}}
		}
		return true, fault.New(fault.Invalid, "more time than any partition gives").Advise("ask for less")
	}
	r := start(t, p, nil)
	s := servertest.Request()
	s.Form, s.Text, s.Args, s.Environ = api.FormSbatch, coupledText, nil, nil
	b, _ := json.Marshal(s)
	resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
	var e api.Error
	if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != 400 || len(e.Errors) != 2 || len(e.Reasons) != 1 {
		t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
	}
	if own := e.Errors[0]; own.Line != 2 || !strings.Contains(own.Message, "needs 2 nodes") {
		t.Errorf("%+v", own)
	}
	if o := e.Errors[1]; o.Message != "pool slurm-b: more time than any partition gives" || o.Remedy != "ask for less" {
		t.Errorf("%+v", o)
	}
	if len(p.Jobs) > 0 {
		t.Errorf("it was submitted: %+v", p.Jobs)
	}
}

// TestAdviceNamesThePool: what the advice says of the pools is what a submission does.
func TestAdviceNamesThePool(t *testing.T) {
	p := servertest.NewPlane()
	p.AddSlurmPools("slurm-a", "slurm-b")
	p.FitsFunc = func(s *job.Spec) (bool, error) {
		if s.Pool == "slurm-a" {
			return true, fault.New(fault.Invalid, "no room")
		}
		return true, nil
	}
	r := start(t, p, nil)
	for text, want := range map[string]string{coupledText: "slurm-b", smallText: "local", coupledText + "# pool\n": "slurm-b"} {
		s := servertest.Request()
		s.Form, s.Text, s.Args, s.Environ = api.FormSbatch, text, nil, nil
		b, _ := json.Marshal(s)
		resp, body := r.Ask(t, "POST", "/v1/advise", r.Token(t, "anna", nil), string(b))
		var out struct {
			Here []struct {
				Pool, Cannot string
				Chosen       bool
			}
		}
		if err := json.Unmarshal([]byte(body), &out); err != nil || resp.StatusCode != 200 || len(out.Here) != 3 {
			t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
		}
		for _, h := range out.Here {
			if h.Chosen != (h.Pool == want) || (h.Cannot == "no room") != (h.Pool == "slurm-a") {
				t.Errorf("%q: %+v, want %s", text, h, want)
			}
		}
	}
}

// TestPartitionsOfAnotherPool: an update may name what only the scheduler of the job's own pool
// knows; in the server's own pool, partitions are those of its configuration.
//
// Seen to fail with: the configuration's partitions asked of every pool, and of none.
func TestPartitionsOfAnotherPool(t *testing.T) {
	p := servertest.NewPlane()
	p.AddSlurmPools("slurm-b")
	r := start(t, p, func(c *Config) { c.Rules.Pool = "local" })
	anna := r.As(t, "anna")
	ids := map[string]string{}
	for _, pool := range []string{"", "slurm-b"} {
		req := servertest.Request()
		req.Pool = pool
		if pool == "" {
			req.Pool = "local"
		}
		out, err := anna.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		ids[pool] = out.ID.String()
	}
	for _, who := range []*client.Client{anna, r.Admin(t)} {
		done, err := who.Change(t.Context(), &api.Change{Verb: api.VerbUpdate, Select: api.Select{IDs: []string{ids[""], ids["slurm-b"]}}, Update: &api.Update{Partitions: []string{"gpu-long"}}})
		if err != nil || done.Changed != 1 || len(done.Errors) != 1 || done.Errors[0].Name != ids[""] || !strings.Contains(done.Errors[0].Error.Remedy, "partitions here: main") {
			t.Errorf("%+v, %v", done, err)
		}
	}
}
