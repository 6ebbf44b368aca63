package pools_test

import (
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// withPools is a server with two pools.
func withPools(t *testing.T) *clitest.Server {
	f := newFake(t)
	f.Answer("GET /v1/pools", func(*http.Request) (any, error) {
		return api.Pools{Engines: []string{"slurm"}, Pools: []api.Pool{
			{Name: "local", Engine: "local", Version: "1", Gang: "strict", Default: true, State: api.PoolUp, Nodes: 2, Devices: 8, DevicesUsed: 4, Jobs: 1},
			{
				Name: "slurm-b", Engine: "slurm", Version: "24.11.1", Gang: "strict", Abilities: []string{"delegated", "suspend"}, State: api.PoolSilent,
				Why: "slurmctld is down", Heard: time.Date(2026, 11, 21, 9, 58, 0, 0, time.UTC), Nodes: 40, Devices: 320, Notes: []string{"no accounting"},
				Added: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), By: "root", Settings: []byte(`{"ssh":"login1"}`),
			},
		}}, nil
	})
	return f
}

func TestPoolList(t *testing.T) {
	f := withPools(t)
	f.Cox(t, "pool", "list").Check(t, 0, `POOL     ENGINE         STATE   NODES   GPUS  JOBS  GANGS   WHY
local*   local 1        up          2    4/8     1  strict  -
slurm-b  slurm 24.11.1  silent     40  0/320     0  strict  slurmctld is down
`, "")
	f.Cox(t, "pool", "list", "-o", "name").Check(t, 0, "local\nslurm-b\n", "")
	f.Cox(t, "pool", "list", "-o", "json").Check(t, 0, "~\"engines\": [\n    \"slurm\"", "")
	f.Cox(t, "pool", "list", "-o", "yaml").Check(t, 0, "~state: silent", "")
	f.Cox(t, "pool").Check(t, 2, "", "~cox pool needs a command: add, check, list, remove or show")
	coxAt(t, "unix:///nowhere/s", "", "pool", "list").Check(t, 75, "", "~/nowhere/s")
}

func TestPoolShow(t *testing.T) {
	f := withPools(t)
	f.Cox(t, "pool", "show", "slurm-b").Check(t, 0, "~slurm-b: engine slurm 24.11.1, silent\nwhy       slurmctld is down\n", "")
	f.Cox(t, "pool", "show", "slurm-b").Check(t, 0, "~nodes     40\ngpus      320, of which 0 are held\njobs      0\ngangs     strict\ncan       delegated, suspend\nnotes     no accounting\n", "")
	f.Cox(t, "pool", "show", "slurm-b").Check(t, 0, "~settings  {\"ssh\":\"login1\"}\n", "")
	f.Cox(t, "pool", "show", "local").Check(t, 0, "~default   jobs that name no pool go there\n", "")
	f.Cox(t, "pool", "show", "slurm-b", "-o", "yaml").Check(t, 0, "~ssh: login1", "")
	f.Cox(t, "pool", "show", "slurm-c").Check(t, 3, "", "cox: there is no pool slurm-c\n  pools here: local, slurm-b\n")
	f.Cox(t, "pool", "show").Check(t, 2, "", "cox pool show needs the name of a pool\n  cox pool show NAME   (cox pool list shows them)\n")
	f.Cox(t, "pool", "show", "a", "b").Check(t, 2, "", "~one pool at a time: a, b")
}

func TestPoolAdd(t *testing.T) {
	f := withPools(t)
	lacking := []api.Finding{
		{What: "engine", State: "found", Text: "slurm 24.11.1, gangs strict"},
		{What: "accounting", State: "warning", Text: "slurmdbd does not answer", Mend: "systemctl start slurmdbd"},
		{What: "rights", State: "missing", Text: "cox is no operator", Mend: "sacctmgr modify user cox set adminlevel=operator"},
	}
	f.Answer("POST /v1/pools", func(*http.Request) (any, error) {
		return api.PoolDone{Name: "slurm-b", Engine: "slurm", Findings: lacking, Missing: 1}, nil
	})
	f.Cox(t, "pool", "add", "slurm-b", "--engine", "slurm", "--set", "ssh=login1", "--set", "window=1.5", "--dry-run").Check(t, 4, `found    engine      slurm 24.11.1, gangs strict
warning  accounting  slurmdbd does not answer
                     systemctl start slurmdbd
missing  rights      cox is no operator
                     sacctmgr modify user cox set adminlevel=operator
pool slurm-b: 1 thing missing
`, "")
	var got api.NewPool
	if f.Last(t, &got); got.Name != "slurm-b" || got.Engine != "slurm" || string(got.Settings) != `{"ssh":"login1","window":1.5}` || !got.Check || got.Force {
		t.Errorf("%+v, settings %s", got, got.Settings)
	}
	coxAt(t, f.URL, "ssh: login1\nparts: [a, b]\n", "pool", "add", "slurm-b", "--engine", "slurm", "--settings", "-", "--set", "ssh=login2", "-o", "json").
		Check(t, 4, "~\"missing\": 1", "")
	got = api.NewPool{}
	if f.Last(t, &got); string(got.Settings) != `{"parts":["a","b"],"ssh":"login2"}` || got.Check {
		t.Errorf("%+v, settings %s", got, got.Settings)
	}
	coxAt(t, f.URL, "null", "pool", "add", "slurm-b", "--engine", "slurm", "--settings", "-").Check(t, 4, "~1 thing missing", "")
	coxAt(t, f.URL, "rest: http://old\n", "pool", "add", "slurm-b", "--engine", "slurm", "--settings", "-", "--rest", "http://ctl:6820", "--local", "--shared", "/s", "--placed", "--partition", "gpu", "--reservation", "r").
		Check(t, 4, "~1 thing missing", "")
	got = api.NewPool{}
	if f.Last(t, &got); string(got.Settings) != `{"local":true,"partition":"gpu","placed":true,"reservation":"r","rest":"http://ctl:6820","shared":"/s"}` {
		t.Errorf("settings %s", got.Settings)
	}
	asked := len(f.Asked)
	f.Cox(t, "pool", "add", "slurm-b", "--engine", "slurm", "--local", "--ssh", "login1").Check(t, 2, "", "~cox: --local and --ssh login1: Slurm's commands run on the server's machine or on a login node\n  leave one of them; --rest goes with either\n")
	f.Cox(t, "pool", "add", "slurm-b", "--engine", "slurm", "--ssh", "login1", "--set", "ssh=login2").Check(t, 2, "", "~cox: --ssh and --set ssh=login2\n  leave one of them: they are the same setting\n")
	f.Cox(t, "pool", "add", "slurm-b", "--engine", "slurm", "--set", "login1").Check(t, 2, "",
		"cox: --set login1: this is not NAME=VALUE\n  --set partition=gpu\nnot added                                                    exit 2 (invalid request)\n")
	f.Cox(t, "pool", "add", "slurm-b", "--engine", "slurm", "--settings", "/nowhere.yaml").Check(t, 2, "", "~/nowhere.yaml: no such file")
	coxAt(t, f.URL, "- a\n", "pool", "add", "slurm-b", "--engine", "slurm", "--settings", "-").Check(t, 2, "", "~-: these are no settings")
	if len(f.Asked) != asked {
		t.Errorf("the server was asked: %q", f.Asked[asked:])
	}
	f.Cox(t, "pool", "add", "slurm-b").Check(t, 2, "", "~pool slurm-b needs a kind of engine\n  --engine slurm\n")
	coxAt(t, "unix:///nowhere/s", "", "pool", "add", "b", "--engine", "slurm").Check(t, 75, "", "~not added                                                    exit 75 (unavailable)")
}

func TestPoolCheckAndRemove(t *testing.T) {
	f := withPools(t)
	f.Answer("POST /v1/pools/{name}/check", func(r *http.Request) (any, error) {
		return api.PoolDone{Name: r.PathValue("name"), Engine: "slurm", Findings: []api.Finding{{What: "engine", State: "found", Text: "slurm 24.11.1"}}}, nil
	})
	f.Cox(t, "pool", "check", "slurm-b").Check(t, 0, "found    engine  slurm 24.11.1\npool slurm-b: nothing is missing\n", "")
	f.Answer("DELETE /v1/pools/{name}", func(r *http.Request) (any, error) {
		if r.PathValue("name") == "slurm-b" && r.URL.Query().Get("force") != "true" {
			return nil, fault.New(fault.Conflict, "pool slurm-b has 1 job that has not ended: 7").Advise("let them end, or cox cancel 7; cox node drain keeps others from starting")
		}
		return nil, nil
	})
	f.Cox(t, "pool", "remove", "slurm-b").Check(t, 4, "", `cox: pool slurm-b has 1 job that has not ended: 7
  let them end, or cox cancel 7; cox node drain keeps others from starting
not removed                                                  exit 4 (conflict)
`)
	f.Cox(t, "pool", "remove", "slurm-b", "--force").Check(t, 0, "pool slurm-b is gone; what others run there was not touched\n", "")
	f.Cox(t, "pool", "remove", "c").Check(t, 0, "pool c is gone; what others run there was not touched\n", "")
}

func TestNodesOfPools(t *testing.T) {
	f := withPools(t)
	f.Answer("GET /v1/nodes", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{
			{Name: "v1", Pool: "local", State: "up", CPUs: 4, Memory: 1 << 30}, {Name: "gpu1", Pool: "slurm-b", State: "up", CPUs: 8, Memory: 1 << 30},
		}}, nil
	})
	f.Cox(t, "nodes").Check(t, 0, `NODE  STATE  CPUS     MEMORY  GPUS  TYPE  PARTITIONS  POOL     JOBS OR WHY
v1    up      0/4  0 B/1 GiB     -  -     -           local    -
gpu1  up      0/8  0 B/1 GiB     -  -     -           slurm-b  -
`, "")
	f.Cox(t, "nodes", "--pool", "slurm-b").Check(t, 0, `NODE  STATE  CPUS     MEMORY  GPUS  TYPE  PARTITIONS  JOBS OR WHY
gpu1  up      0/8  0 B/1 GiB     -  -     -           -
`, "")
	f.Cox(t, "nodes", "--pool", "slurm-c").Check(t, 3, "", "cox: there is no pool slurm-c\n  pools here: local, slurm-b\n")
	if got := f.Cox(t, "__complete", "pool", "show", "").Out; !cmp.Equal(got, "local\tlocal up\nslurm-b\tslurm silent\n:4\n") {
		t.Errorf("completed: %q", got)
	}
	if got := f.Cox(t, "__complete", "pool", "add", "c", "--engine", "").Out; got != "slurm\n:4\n" {
		t.Errorf("completed: %q", got)
	}
	if got := f.Cox(t, "__complete", "submit", "--pool", "").Out; got != "local\tlocal up\nslurm-b\tslurm silent\n:4\n" {
		t.Errorf("completed: %q", got)
	}
}

// TestInterruptedVerify: a signal ends cox verify, which says how far its job is and cancels it.
//
// Seen to fail with: every end of the waiting taken for that of --timeout.
func TestInterruptedVerify(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/pools", func(*http.Request) (any, error) {
		return api.Pools{Pools: []api.Pool{{Name: "local", Engine: "local", State: api.PoolUp}}}, nil
	})
	f.Answer("GET /v1/nodes", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", Pool: "local", State: "up"}, {Name: "v2", Pool: "local", State: "up"}}}, nil
	})
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) { return api.Submitted{ID: 7}, nil })
	f.Answer("GET /v1/jobs/{job}", func(r *http.Request) (any, error) { return clitest.Job(r.PathValue("job"), "PENDING", 0), nil })
	f.Mux.HandleFunc("GET /v1/jobs/{job}/wait", func(_ http.ResponseWriter, r *http.Request) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // to the command, which waits
		<-r.Context().Done()
	})
	denied := true
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		if denied {
			return nil, fault.New(fault.Permission, "it is bob's")
		}
		return api.Changed{}, nil
	})
	f.Cox(t, "verify", "local").Check(t, 130, "", "~; job 7 is PENDING\n  it could not be cancelled (it is bob's): cox cancel 7\n")
	denied = false
	f.Cox(t, "verify", "local").Check(t, 130, "", "~; job 7 is PENDING\n  it is cancelled\n")
	f.Cox(t, "verify", "local", "-o", "json").Check(t, 130, "", "~cox: interrupted after ")
	var change api.Change
	if f.Last(t, &change); change.Verb != "cancel" || len(change.Select.IDs) != 1 || change.Select.IDs[0] != "7" {
		t.Errorf("%+v", change)
	}
}
