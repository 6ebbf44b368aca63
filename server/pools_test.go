package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPoolsAreShown: to everybody, and how engines are reached to administrators alone.
func TestPoolsAreShown(t *testing.T) {
	p := newPlane()
	p.pools = append(p.pools, pools.View{
		Pool: fleet.Pool{Name: "b", Engine: "slurm"}, Added: &state.PoolSpec{Name: "b", Engine: "slurm", Settings: []byte(`{"ssh":"login1"}`), By: job.Actor{Name: "root"}},
	})
	p.nodes[0].Jobs, p.nodes[0].Held = []job.ID{7}, map[int][]job.ID{0: {7}}
	p.nodes[1].Jobs, p.nodes[1].Held = []job.ID{7}, map[int][]job.ID{0: {7}}
	p.nodes[3].Node.Pool = "b"
	r := start(t, p, func(c *Config) { c.Engines = []string{"slurm"} })
	list, err := r.admin(t).Pools(t.Context())
	if err != nil || len(list.Pools) != 2 || !slices.Equal(list.Engines, []string{"slurm"}) {
		t.Fatalf("%+v, %v", list, err)
	}
	home, b := list.Pools[0], list.Pools[1]
	if home.State != api.PoolUp || home.Gang != "strict" || home.Jobs != 1 || home.DevicesUsed != 2 || !home.Default {
		t.Errorf("%+v", home)
	}
	if b.State != api.PoolOpening || string(b.Settings) != `{"ssh":"login1"}` || b.By != "root" || b.Jobs != 0 {
		t.Errorf("%+v", b)
	}
	c, err := client.New(client.Options{URL: r.url, Token: r.token(t, "anna", nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if list, err = c.Pools(t.Context()); err != nil || list.Pools[1].Settings != nil || list.Pools[0].Jobs != 1 {
		t.Errorf("a user is told %+v, %v", list, err)
	}
	if n, err := c.Node(t.Context(), "v4"); err != nil || n.Engine != "slurm" || n.Pool != "b" {
		t.Errorf("%+v, %v", n, err)
	}
	if i, err := c.Info(t.Context()); err != nil || len(i.Pools) != 2 || i.Pools[1].Settings != nil || i.Pools[1].Name != "b" {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestAPoolThatLacksSomethingIsNotAdded(t *testing.T) {
	p := newPlane()
	r := start(t, p, func(c *Config) { c.Engines = []string{"slurm"} })
	c := r.admin(t)
	ask := api.NewPool{Name: "b", Engine: "slurm"}
	p.findings = []engine.Finding{{What: "site", State: engine.Found, Text: "north"}, {What: "rights", State: engine.Missing, Text: "none", Mend: "sacctmgr …"}, {What: "disk", State: engine.Missing, Text: "none"}}
	var e *api.Error
	if _, err := c.AddPool(t.Context(), &ask); !errors.As(err, &e) || e.Status != 409 || len(e.Errors) != 2 || e.Errors[0].Message != "pool b: rights: none" || e.Errors[0].Remedy != "sacctmgr …" || e.Remedy == "" {
		t.Errorf("it is added: %+v", e)
	}
	ask.Check = true
	if done, err := c.AddPool(t.Context(), &ask); err != nil || done.Added || done.Missing != 2 || len(done.Findings) != 3 {
		t.Errorf("a look: %+v, %v", done, err)
	}
	if len(p.calls) != 0 {
		t.Errorf("the control plane was asked for %q", p.calls)
	}
	ask.Check, ask.Force = false, true
	if done, err := c.AddPool(t.Context(), &ask); err != nil || !done.Added {
		t.Errorf("with force: %+v, %v", done, err)
	}
	if !slices.Equal(p.calls, []string{"add pool b"}) || p.pools[1].Added.By.Name == "" {
		t.Errorf("the control plane was asked for %q", p.calls)
	}
	if _, err := c.AddPool(t.Context(), &api.NewPool{Name: "b"}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) != "kinds of engine here: slurm" {
		t.Errorf("without a kind: %v", err)
	}
}

// talker is an engine that has output of its own.
type talker struct {
	engine.Engine
	files
}

// TestLogsComeFromTheEngineOfTheJobsPool, not from the server's own.
func TestLogsComeFromTheEngineOfTheJobsPool(t *testing.T) {
	p := newPlane()
	p.fill(t, 3, "anna", 2001, nil)
	there := talker{files: files{dir: t.TempDir(), asked: make(chan string, 1)}}
	if err := os.WriteFile(filepath.Join(there.dir, "out"), []byte("from there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.added = map[string]engine.Engine{"b": &there, "c": struct{ engine.Engine }{}}
	for i, pool := range []string{"b", "c", "local"} {
		p.start(job.ID(i+1), "v1")
		p.jobs[i].Pool, p.jobs[i].Report.Files = pool, []string{"/home/anna/out"}
	}
	r := start(t, p, func(c *Config) { c.Output, c.Exec = &files{dir: t.TempDir(), asked: make(chan string, 1)}, &shell{} })
	c := r.as(t, "anna")
	body, err := c.Logs(t.Context(), "1", client.LogOptions{})
	if got := text(t, body, err); got != "from there\n" {
		t.Errorf("the output is %q", got)
	}
	if _, err := c.Logs(t.Context(), "2", client.LogOptions{}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("of an engine without output: %v", err)
	}
	if _, err := c.Logs(t.Context(), "3", client.LogOptions{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of the server's own pool: %v", err)
	}
	for _, name := range []string{"1", "2"} { // neither runs commands
		if _, err := c.Exec(t.Context(), name, api.Exec{Command: []string{"true"}}, client.ExecStreams{}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("a command in job %s: %v", name, err)
		}
	}
}
