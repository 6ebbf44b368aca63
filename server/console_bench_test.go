package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// consoleSite is a server on a port, on a real control plane with the fake engine: each node is held by
// a job, and many more jobs wait.
type consoleSite struct {
	control *control.Control
	url     string
	tokens  []string // of anna and ben in turn
}

func newConsoleSite(b *testing.B, nodes, waiting, users int) *consoleSite {
	b.Helper()
	var fleetNodes []fleet.Node
	for i := range nodes {
		n := fleet.Node{
			Name: fmt.Sprintf("gpu%05d", i+1), Pool: "local", State: fleet.Up, Parts: []string{"gpu"},
			Path:     []string{fmt.Sprintf("spine%d", i/512+1), fmt.Sprintf("rack%d", i/16+1)},
			Capacity: resource.Vector{CPU: resource.CPUs(128), Memory: 1024 * resource.GiB},
		}
		for k := range 8 {
			n.Devices = append(n.Devices, fleet.Device{Index: k, Minor: k, Kind: "gpu", Type: "h100", NUMA: k / 4})
		}
		fleetNodes = append(fleetNodes, n)
	}
	world := fake.NewWorld(fake.Config{Now: time.Now, Nodes: fleetNodes, Script: func(*engine.Launch) fake.Outcome { return fake.Outcome{Run: fake.Never} }})
	e := world.Open()
	c, err := control.Open(context.Background(), control.Config{Store: &store.Memory{}, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: e}}, Who: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	srv := New(Config{Plane: c, Name: "lab", Users: &user.Users{Lookup: servertest.Lookup}})
	l, err := transport.ListenTCP("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = srv.Serve(ctx, l) })
	running.Go(func() { world.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
		_ = c.Close()
		e.Close()
	})
	s := &consoleSite{control: c, url: "http://" + l.Addr().String()}
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := int(next.Add(1)); i <= nodes+waiting; i = int(next.Add(1)) {
				if _, err := c.Submit(ctx, control.Submission{Spec: consoleJob(i, users), Script: []byte("#!/bin/sh\nsrun python train.py\n")}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	for c.Stats().Jobs["RUNNING"] < nodes && !b.Failed() {
		time.Sleep(100 * time.Millisecond)
	}
	for i := range users {
		made, err := token.New()
		if err != nil {
			b.Fatal(err)
		}
		who := []string{"anna", "ben"}[i%2]
		if err := c.PutToken(ctx, job.Actor{}, state.Token{ID: made.ID, Hash: made.Hash, Name: who, UID: uint32(2001 + i%2), Created: time.Now()}); err != nil {
			b.Fatal(err)
		}
		s.tokens = append(s.tokens, made.Secret)
	}
	return s
}

func consoleJob(i, users int) *job.Spec {
	return &job.Spec{
		Name: fmt.Sprintf("llama-70b-%d", i), Owner: job.Owner{User: fmt.Sprintf("u%d", i%users), UID: uint32(3000 + i%users)}, Account: fmt.Sprintf("team%d", i%12),
		TimeLimit: time.Duration(1+i%48) * time.Hour, Partitions: []string{"gpu"}, WorkDir: "/home/u/project", Env: job.Environment{Export: "ALL"},
		Groups:  []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 8}, CPUsPerTask: 8, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(8), Memory: 64 * resource.GiB}, Devices: []resource.DeviceRequest{{Count: 1}}}}},
		Program: job.Program{Kind: job.Batch, ScriptName: "train.sbatch"}, Output: job.Output{Stdout: "slurm-%j.out"},
		Source: job.Source{Form: "sbatch", File: "train.sbatch", Host: "login1", Submit: "/home/u/project", Given: map[string]string{"nodes": "1", "gpus-per-task": "1"}},
	}
}

// consolePages are the requests of the first page of each part of the console.
var consolePages = []struct{ name, path string }{
	{"queue", "/v1/jobs?columns=name,job_name,user,account,partition,qos,pool,state,flags,reason,reason_text,priority,submitted,started,ended,starts_by,time_limit,nodes_min,node_list,gpus,cpus&collapse=true&limit=200"},
	{"queue-sorted", "/v1/jobs?sort=-priority&columns=name,job_name,user,account,partition,qos,pool,state,flags,reason,reason_text,priority,submitted,started,ended,starts_by,time_limit,nodes_min,node_list,gpus,cpus&collapse=true&limit=200"},
	{"queue-match", "/v1/jobs?sort=id&match=70b-99&columns=name,job_name,user,account,partition,state,reason,priority,submitted,nodes_min,gpus&limit=200"},
	{"counts", "/v1/jobs/counts"},
	{"overview", "/v1/overview"},
	{"topology", "/v1/topology?by=account"},
	{"node-rows", "/v1/node-rows?sort=-used&limit=200"},
	{"plan", "/v1/plan?limit=200"},
}

// BenchmarkConsole is the time and size of the first page of each part of the console, with every node
// busy. COX_LARGE=1 has 10,000 nodes of 8 GPUs and 100,000 waiting jobs; else there is a hundredth.
func BenchmarkConsole(b *testing.B) {
	nodes, waiting := 100, 1000
	if os.Getenv("COX_LARGE") != "" {
		nodes, waiting = 10_000, 100_000
	}
	s := newConsoleSite(b, nodes, waiting, 40)
	for _, page := range consolePages {
		b.Run(page.name, func(b *testing.B) {
			var bytes int64
			for b.Loop() {
				bytes = s.fetch(b, page.path, s.tokens[0])
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
	b.Run("idle-browsers", func(b *testing.B) { s.idleBrowsers(b, 200, 20*time.Second) })
}

func (s *consoleSite) fetch(b *testing.B, path, secret string) int64 {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
	return n
}

// idleBrowsers opens the stream of so many browsers, each of one that follows no job but counts changes, and reports the
// share of one core that the server takes while nothing changes, beyond what it takes without them. The
// readers of the streams are in the same process and count too.
func (s *consoleSite) idleBrowsers(b *testing.B, browsers int, long time.Duration) {
	share := func() float64 {
		before, began := cpu(), time.Now()
		time.Sleep(long)
		return 100 * float64(cpu()-before) / float64(time.Since(began))
	}
	for b.Loop() {
		alone := share()
		ctx, stop := context.WithCancel(b.Context())
		var readers sync.WaitGroup
		for i := range browsers {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/watch?others=2", nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.tokens[i%len(s.tokens)])
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(resp, err)
			}
			readers.Go(func() {
				defer resp.Body.Close()
				_, _ = io.Copy(io.Discard, resp.Body)
			})
		}
		b.ReportMetric(share()-alone, "%core")
		b.ReportMetric(alone, "%core-without")
		stop()
		readers.Wait()
	}
}
