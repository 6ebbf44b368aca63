package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	world "github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

// paper is a kind of engine that runs work on paper: on nodes that its settings name,
// until somebody ends it.
type paper struct {
	mu     sync.Mutex
	worlds map[string]*world.World
}

type paperSettings struct {
	Nodes   []string `json:"nodes"`
	Site    string   `json:"site"`
	Lacking string   `json:"lacking"` // what Check misses
}

func (p *paper) open(_ context.Context, name string, settings json.RawMessage, at daemon.Place) (engine.Engine, error) {
	var set paperSettings
	if err := daemon.ReadSettings(settings, &set); err != nil {
		return nil, err
	}
	if set.Site == "" {
		return nil, fault.New(fault.Invalid, "settings: site is needed").Advise("--set site=NAME")
	}
	cfg := world.Config{Now: time.Now, Script: func(*engine.Launch) world.Outcome { return world.Outcome{Run: world.Never} }}
	for _, n := range set.Nodes {
		cfg.Nodes = append(cfg.Nodes, fleet.Node{
			Name: n, Pool: name, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB},
			Devices: []fleet.Device{{Index: 0, Kind: "gpu", Type: "h100", NUMA: -1}},
		})
	}
	cfg.Findings = []engine.Finding{{What: "site", State: engine.Found, Text: set.Site}}
	if set.Lacking != "" {
		cfg.Findings = append(cfg.Findings, engine.Finding{What: set.Lacking, State: engine.Missing, Text: "it is not there", Mend: "buy " + set.Lacking})
	}
	if at.Trial {
		return world.New(cfg), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worlds[name] == nil {
		p.worlds[name] = world.NewWorld(cfg)
	}
	return p.worlds[name].Open(), nil
}

// advance is the time of the worlds, until ctx ends.
func (p *paper) advance(ctx context.Context) {
	for t := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		p.mu.Lock()
		for _, w := range p.worlds {
			w.Advance()
		}
		p.mu.Unlock()
	}
}

// serving starts a server that knows paper, and returns its address and what ends it.
func serving(t *testing.T, dir string, p *paper) (server string, stop func()) {
	t.Helper()
	cfg := config.Default()
	cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = dir, filepath.Join(dir, "cox.sock"), "none"
	cfg.Room.Nodes, cfg.Room.ByAddress = 2, true
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	var helpers sync.WaitGroup
	helpers.Go(func() { p.advance(ctx) })
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{
			Config: cfg, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Ready: func(daemon.Info) { close(ready) },
			Engines: map[string]daemon.Opener{"paper": p.open},
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the server did not start: %v", err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		helpers.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "unix://" + cfg.Listen.Socket, stop
}

// paperPool adds a pool of paper, which lacks its site; paperSite adds one with all that it takes.
var (
	paperPool = []string{"pool", "add", "b", "--engine", "paper"}
	paperSite = append(paperPool[:5:5], "--set", "site=north", "--set", `nodes=["b1","b2"]`)
)

// onPaper is a real server that knows paper.
func onPaper(t *testing.T) (*slurmSite, *paper) {
	t.Helper()
	s, p := &slurmSite{dir: t.TempDir()}, &paper{worlds: map[string]*world.World{}}
	s.server, s.stop = serving(t, s.dir, p)
	return s, p
}

// TestPoolsThatAreNotAdded: what is wrong with a pool is said before there is one, and what is printed
// or looked at adds none.
func TestPoolsThatAreNotAdded(t *testing.T) {
	s, _ := onPaper(t)
	s.cox(t, "pool", "add", "b", "--engine", "papr").Check(t, 2, "", `cox: there is no kind of engine "papr"; did you mean paper?
  pools can be added with kube, paper, slurm
not added                                                    exit 2 (invalid request)
`)
	s.cox(t, "pool", "add", "b", "--engine", "sge").Check(t, 2, "", "~there is no kind of engine \"sge\"\n  pools can be added with kube, paper, slurm\n")
	s.cox(t, "pool", "add", "b", "--engine", "local").Check(t, 69, "", "~engine local is this machine's, and its pool is there already")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--ssh", "login1").Check(t, 2, "", "~--ssh is of --engine slurm, not of kube\n")
	s.cox(t, "pool", "add", "b", "--engine", "slurm", "--kubeconfig", "f").Check(t, 2, "", "~--kubeconfig is of --engine kube, not of slurm\n")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--set", "namespace=m").Check(t, 2, "", "~--namespace and --set namespace=m\n")
	s.cox(t, "pool", "add", "b", "--engine", "kube").Check(t, 2, "", "~say which cluster: --kubeconfig FILE\n")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--kubeconfig", "/no/such").Check(t, 2, "", "~kubeconfig /no/such: ")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--print-rbac").Check(t, 2, "", "~in which namespace are the roles?\n  --namespace NAME\n")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--print-rbac", "user:ann").Check(t, 2, "", "~who has the roles stands behind =, as in --print-rbac=user:ann\n")
	s.cox(t, "pool", "add", "b", "--engine", "slurm", "--print-rbac").Check(t, 2, "", "~--print-rbac is of --engine kube\n")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--placed", "--print-rbac=group:ops").Check(t, 0, "~  - kind: Group\n    name: \"ops\"\n", "")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--set", `namespaces={"nlp":"team"}`, "--set", `impersonate={"nlp":"user:ann"}`, "--print-rbac=user:cox").Check(t, 0,
		"~  name: \"coxswain-b-jobs\"\n  namespace: \"team\"\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: \"coxswain-b-jobs\"\nsubjects:\n  - kind: User\n    name: \"ann\"\n", "")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--set", "reserve=true", "--set", `impersonate={"nlp":"user:ann"}`, "--print-rbac").Check(t, 2, "", "~settings: impersonate: with reserve")
	s.cox(t, "pool", "add", "b", "--engine", "kube", "--namespace", "n", "--print-rbac", "--print-policy").Check(t, 0, "~\n---\nkind: ValidatingAdmissionPolicy\n", "")
	s.cox(t, "pool", "add", "b").Check(t, 2, "", "~pool b needs a kind of engine\n  --engine kube, --engine paper, --engine slurm\n")
	s.cox(t, paperPool...).Check(t, 2, "", "cox: settings: site is needed\n  --set site=NAME\nnot added                                                    exit 2 (invalid request)\n")
	s.cox(t, slices.Concat(paperSite, []string{"--set", "nods=3"})...).Check(t, 2, "", "~settings: there is no field nods; did you mean nodes?\n  there are lacking, nodes, site\n")
	s.cox(t, slices.Concat(paperSite, []string{"--set", "site=4"})...).Check(t, 2, "", "~settings: site: number is not text\n  write text there\n")
	s.cox(t, "pool", "add", "local", "--engine", "paper", "--set", "site=north").Check(t, 4, "", "~there is a pool local already\n  cox pool list shows it; take another name, or remove it first: cox pool remove local\n")
	s.cox(t, slices.Concat(paperSite, []string{"--dry-run"})...).Check(t, 0, `found    engine  fake 1, gangs strict
found    nodes   2 with 2 devices: b[1-2]
found    site    north
pool b: nothing is missing
`, "")
	s.cox(t, "pool", "list", "-o", "name").Check(t, 0, "local\n", "")
}

// TestPools adds a pool to a real server, runs a job there and takes the pool away.
func TestPools(t *testing.T) {
	s, p := onPaper(t)
	lacking := slices.Concat(paperSite, []string{"--set", "lacking=paper"})
	s.cox(t, append(lacking, "--dry-run")...).Check(t, 4, "~missing  paper   it is not there\n                 buy paper\npool b: 1 thing missing\n", "")
	s.cox(t, lacking...).Check(t, 4, "", `pool b: paper: it is not there
  buy paper
  mend it and add the pool again, or add it all the same: --force (--dry-run shows all that was looked at)
not added                                                    exit 4 (conflict)
`)
	s.cox(t, append(lacking, "--force")...).Check(t, 0, "~pool b added: cox submit --pool b FILE runs a job there\n", "")
	s.cox(t, "pool", "list").Check(t, 0, "~paper 1  up ", "") // at once
	s.cox(t, paperSite...).Check(t, 4, "", "~there is a pool b already")
	s.cox(t, "pool", "check", "b").Check(t, 4, "~pool b: 1 thing missing", "")
	s.cox(t, "pool", "check", "c").Check(t, 3, "", "cox: there is no pool c\n  pools here: local, b\n")
	s.eventually(t, `paper 1 +up +2 +0/2 `, "pool", "list")
	s.cox(t, "info").Check(t, 0, "~pool      b: engine paper 1, gangs strict\n", "")
	s.cox(t, "nodes", "--pool", "b", "-o", "name").Check(t, 0, "b1\nb2\n", "")
	s.cox(t, "nodes").Check(t, 0, "~PARTITIONS  POOL   JOBS OR WHY\n", "")

	s.cox(t, "submit", "--pool", "b", "-N2", "--gpus-per-node=1", "--", "true").Check(t, 0, "~submitted\n", "")
	s.eventually(t, "RUNNING", "queue")
	s.eventually(t, `paper 1 +up +2 +2/2 +1 `, "pool", "list")
	s.cox(t, "pool", "remove", "b").Check(t, 4, "", `cox: pool b has 1 job that has not ended: 1
  let them end, or cox cancel 1; cox node drain keeps others from starting
not removed                                                  exit 4 (conflict)
`)
	s.stop() // and all of it is there again
	s.server, s.stop = serving(t, s.dir, p)
	s.eventually(t, `paper 1 +up +2 +2/2 +1 `, "pool", "list")
	s.cox(t, "pool", "show", "b").Check(t, 0, "~settings  {\"lacking\":\"paper\",\"nodes\":[\"b1\",\"b2\"],\"site\":\"north\"}\n", "")
	s.cox(t, "cancel", "1").Check(t, 0, "~1", "")
	s.cox(t, "wait", "1", "--quiet").Check(t, 130, "", "")
	s.cox(t, "pool", "remove", "b").Check(t, 0, "pool b is gone; what others run there was not touched\n", "")
	s.cox(t, "pool", "remove", "b").Check(t, 3, "", "~there is no pool b that was added")
	s.cox(t, "pool", "remove", "local").Check(t, 2, "", "~pool local is the server's own")
	if r := s.cox(t, "nodes", "-o", "name"); r.Code != 0 || strings.Count(r.Out, "\n") != 2 || strings.Contains(r.Out, "b1") {
		t.Errorf("the nodes are %q", r.Out)
	}
	s.cox(t, "audit", "-o", "json").Check(t, 0, "~\"what\": \"pool-removed\"", "")
	if left, err := filepath.Glob(filepath.Join(s.dir, "trial-*")); err != nil || len(left) > 0 {
		t.Errorf("looks have left %q, %v", left, err)
	}
}
