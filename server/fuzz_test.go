package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// rig is a server on a real control plane that is asked without a network. It has
// jobs 1, an array from 2 on, and 5, which is held.
type rig struct {
	*Server
	ctl    *control.Control
	engine *fake.Engine
	secret string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	var nodes []fleet.Node
	for i := range 2 {
		nodes = append(nodes, fleet.Node{
			Name: fmt.Sprintf("v%d", i+1), Pool: "local", State: fleet.Up, Features: []string{"a"},
			Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB},
			Devices:  []fleet.Device{{Index: 0, Kind: "gpu", Type: "h100"}},
		})
	}
	w := &rig{engine: fake.NewWorld(fake.Config{Now: time.Now, Nodes: nodes}).Open()}
	var err error
	if w.ctl, err = control.Open(context.Background(), control.Config{Store: new(store.Memory), Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: w.engine}}, OpenPool: openSlurm, Project: -1}); err != nil {
		t.Fatal(err)
	}
	w.Server = New(Config{Plane: w.ctl, Name: "lab", Users: &user.Users{Lookup: servertest.Lookup}})
	m, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ctl.PutToken(t.Context(), job.Actor{}, state.Token{ID: m.ID, Hash: m.Hash, Name: "anna", UID: 2001, GID: 2001, Admin: true}); err != nil {
		t.Fatal(err)
	}
	w.secret = m.Secret
	for _, args := range [][]string{nil, {"--array=1-3%1"}, {"--hold"}} {
		body, err := json.Marshal(api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: servertest.Script, Dir: "/home/anna", Args: args})
		if err != nil {
			t.Fatal(err)
		}
		if status, b := w.ask(t, http.MethodPost, "/v1/jobs", body); status != http.StatusCreated {
			t.Fatal(string(b))
		}
	}
	return w
}

// openSlurm opens a pool whose engine has no nodes.
func openSlurm(_ context.Context, p state.PoolSpec) (pools.Pool, error) {
	if p.Engine != "slurm" {
		return pools.Pool{}, fault.New(fault.Invalid, "there is no kind of engine %.70q", p.Engine).Advise("pools can be added with slurm")
	}
	return pools.Pool{Pool: fleet.Pool{Name: p.Name, Engine: p.Engine}, Engine: fake.New(fake.Config{Now: time.Now})}, nil
}

func (w *rig) close() error {
	w.Close()
	return errors.Join(w.ctl.Check(context.Background()), w.ctl.Close(), w.engine.Close())
}

// ask sends a request; what lasts is cut after its first words.
func (w *rig) ask(t testing.TB, method, path string, body []byte) (int, []byte) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(string(body)))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	if u, err := url.PathUnescape(r.URL.Path); err == nil {
		r.URL.RawPath, r.URL.Path = r.URL.Path, u
	}
	r.Header.Set("Authorization", "Bearer "+w.secret)
	rec := &cutter{ResponseRecorder: httptest.NewRecorder(), cancel: cancel}
	for _, rt := range w.Routes {
		if rt.Lasts && strings.HasSuffix(path, rt.Path[strings.LastIndexByte(rt.Path, '/'):]) || strings.Contains(path, "/wait") || strings.Contains(path, "/logs") || strings.Contains(path, "/watch") {
			timer := time.AfterFunc(5*time.Millisecond, cancel) // nothing may ever come
			defer timer.Stop()
			break
		}
	}
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		w.ServeHTTP(rec, r)
	}()
	return rec.Code, rec.Body.Bytes()
}

// cutter is a client that goes after the first words of an answer that lasts.
type cutter struct {
	*httptest.ResponseRecorder
	cancel func()
}

func (c *cutter) Flush() { c.cancel() }

// judge says what is wrong with an answer: no request is the server's fault, and a
// refusal says what is wrong and what to do about it.
func (w *rig) judge(status int, body []byte) error {
	switch {
	case status == http.StatusNotImplemented || status == http.StatusServiceUnavailable: // the fake engine cannot; the client went
	case status >= 500:
		return fmt.Errorf("status %d: %s", status, body)
	}
	if status < 400 {
		return nil
	}
	var e api.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Detail == "" || e.Title == "" || e.Status != status {
		return fmt.Errorf("status %d is no problem: %.500s", status, body)
	}
	went := status == http.StatusServiceUnavailable && strings.Contains(e.Detail, context.Canceled.Error()) // nobody reads it
	if e.Remedy == "" && len(e.Errors) == 0 && !went {
		return fmt.Errorf("refused without a remedy: %.500s", body)
	}
	if len(body) > 64<<10 {
		return fmt.Errorf("a refusal of %d bytes: %.500s", len(body), body)
	}
	return nil
}

// bounded runs f and says whether it took much more memory than what was sent.
func bounded(sent int, f func() error) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil && took > uint64(256<<20+5000*sent) {
		err = fmt.Errorf("%d bytes take %d bytes of memory", sent, took)
	}
	return err
}

// bodies are the routes with a body, and bodies with almost every field for each.
func requestBodies(t testing.TB, routes []*transport.Route) (out []*transport.Route, docs map[string][]any) {
	f, n, yes, s, mask := 60.0, int64(3), true, "x", uint32(0o22)
	when, few := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), uint32(2)
	list := []string{"v1"}
	sel := api.Select{IDs: []string{"1", "2_[1-2]"}, Users: []string{"anna"}, Names: []string{"train"}, States: []string{"pending"}}
	full := &api.Submit{
		Form: api.FormSbatch, File: "train.sbatch", Text: servertest.Script, Dir: "/home/anna", Host: "login", Environ: []string{"A=1", "B=2"},
		Args: []string{"--nice=5", "--comment=c"}, ScriptArgs: []string{"--lr", "1"}, Umask: &mask, Limits: []string{"NOFILE=1024"},
	}
	native := &api.Submit{Form: api.FormNative, File: "job.yaml", Text: "name: a\nnodes: 2\ntasks_per_node: 1\ngpus_per_node: 1\ntime: 10m\nrun: hostname\n", Dir: "/home/anna"}
	docs = map[string][]any{
		"POST /v1/jobs":   {full, native},
		"POST /v1/advise": {full},
		"POST /v1/jobs/change": {
			&api.Change{Select: sel, Verb: api.VerbCancel, Signal: "TERM", Grace: &f, Reason: "r"},
			&api.Change{Select: api.Select{IDs: []string{"5"}}, Verb: api.VerbUpdate, Update: &api.Update{
				Name: &s, Comment: &s, TimeLimit: &f, TimeMin: &f, Begin: &when, Deadline: &when, Depends: ptr("afterok:1"), Priority: &n, Nice: &n,
				Requeue: &yes, Nodes: &job.Range{Min: 1, Max: 2}, NodeList: &list, Exclude: &[]string{"v9"}, Features: ptr("a"),
			}},
			&api.Change{Select: api.Select{IDs: []string{"2"}}, Verb: api.VerbUpdate, Update: &api.Update{MaxRunning: &few}},
			&api.Change{Select: api.Select{All: true}, Verb: api.VerbHold, Firm: &yes},
			&api.Change{Select: sel, Verb: api.VerbRequeue, Hold: true},
			&api.Change{Select: sel, Verb: api.VerbSignal, Signal: "USR1", BatchOnly: true},
		},
	}
	for _, r := range routes {
		if r.Body == nil {
			continue
		}
		out = append(out, r)
		if docs[r.Pattern()] == nil {
			docs[r.Pattern()] = []any{r.Example}
		}
	}
	if len(out) < 6 {
		t.Fatalf("%d routes with bodies", len(out))
	}
	return out, docs
}

func ptr(s string) *string { return &s }

// TestSweepOfBodies changes one place of the body of one request at a time.
func TestSweepOfBodies(t *testing.T) {
	one := 1
	if testing.Short() { // under the race detector
		one = 20
	}
	routes, docs := requestBodies(t, rigRoutes(t))
	for _, r := range routes {
		for k, doc := range docs[r.Pattern()] {
			t.Run(fmt.Sprint(r.ID, k), func(t *testing.T) {
				t.Parallel()
				b, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				w, n, taken := newRig(t), 0, 0
				defer func() {
					if err := w.close(); err != nil {
						t.Error(err)
					}
				}()
				for c := range sweep.JSON(b) {
					if n++; n%one != 0 {
						continue
					}
					if err := bounded(len(c.Doc), func() error {
						status, answer := w.ask(t, r.Method, strings.ReplaceAll(r.Path, "{job}", "1"), c.Doc)
						if status < 300 {
							taken++
						}
						return w.judge(status, answer)
					}); err != nil {
						t.Errorf("%s: %v", c.What, err)
					}
					if n%50 == 0 {
						if err := w.ctl.Check(t.Context()); err != nil {
							t.Fatalf("%s: %v", c.What, err)
						}
					}
				}
				t.Logf("%d changes, %d taken", n, taken)
			})
		}
	}
}

func rigRoutes(t testing.TB) []*transport.Route {
	s := New(Config{Plane: servertest.NewPlane()})
	t.Cleanup(s.Close)
	return s.Routes
}

// Whatever a body says, it is carried out or refused with a reason and a remedy, and
// the control plane stays sound.
func FuzzBodies(f *testing.F) {
	routes, docs := requestBodies(f, rigRoutes(f))
	for i, r := range routes {
		for _, doc := range docs[r.Pattern()] {
			b, err := json.Marshal(doc)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		if len(body) > 64<<10 {
			return
		}
		r := routes[int(which)%len(routes)]
		w := newRig(t)
		if err := bounded(len(body), func() error {
			return w.judge(w.ask(t, r.Method, strings.ReplaceAll(r.Path, "{job}", "1"), body))
		}); err != nil {
			t.Errorf("%s: %v", r.Pattern(), err)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

// gets are the routes to read, but for profiles, which last.
func gets(t testing.TB) (out []*transport.Route) {
	for _, r := range rigRoutes(t) {
		if r.Method == http.MethodGet && !strings.Contains(r.Path, "pprof") {
			out = append(out, r)
		}
	}
	return out
}

// queries are parameters with values at the edges, names from the document.
func (w *rig) parameters(r *transport.Route) (out []string) {
	for _, p := range w.API.OpenAPI().Paths[r.Path].Get.Parameters {
		if p.In == "query" {
			out = append(out, p.Name)
		}
	}
	return out
}

var edges = []string{
	"", "0", "-1", "1", "x", "all", "none", "true", "1e9", "4294967296", "9223372036854775807", "18446744073709551616", "1_1", "2_[1-3]",
	"[", "v[1-2]", "v[1-99999999]", "1-4294967295", "7_[0-4294967295]", ",", ",,,", "%00", "%ff", "%e2%80%ae", "a%0ab", "..%2f..", "now-1day", "2030-01-02T03:04:05Z",
	"99999-01-01", "anna", "pending", "collapse", "text/tab-separated-values", strings.Repeat("a,", 500), strings.Repeat("9", 400),
}

// TestSweepOfQueries gives every parameter of every route to read every value, and paths
// strange parts.
func TestSweepOfQueries(t *testing.T) {
	w := newRig(t)
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	n := 0
	for _, r := range gets(t) {
		paths := []string{strings.NewReplacer("{job}", "1", "{node}", "v1", "{name}", "x").Replace(r.Path)}
		if strings.Contains(r.Path, "{") {
			for _, e := range edges {
				paths = append(paths, strings.NewReplacer("{job}", e, "{node}", e, "{name}", e).Replace(r.Path))
			}
		}
		for _, name := range w.parameters(r) {
			for _, e := range edges {
				paths = append(paths, paths[0]+"?"+name+"="+e)
				if name == "limit" {
					paths = append(paths, paths[0]+"?limit=2&limit="+e)
				}
			}
		}
		for _, p := range paths {
			n++
			if testing.Short() && n%10 != 0 {
				continue
			}
			if err := bounded(len(p), func() error { return w.judge(w.ask(t, http.MethodGet, p, nil)) }); err != nil {
				t.Errorf("GET %.200s: %v", p, err)
			}
		}
	}
	t.Logf("%d requests", n)
}

// Whatever a query says, it is answered or refused with a reason and a remedy.
func FuzzQueries(f *testing.F) {
	routes := gets(f)
	w := newRig(f)
	f.Cleanup(func() {
		if err := w.close(); err != nil && os.Getenv("GO_TEST_FUZZ") == "" {
			f.Error(err)
		}
	})
	for i, r := range routes {
		for k, name := range w.parameters(r) {
			f.Add(byte(i), "1", name+"="+edges[(i*7+k)%len(edges)])
		}
		f.Add(byte(i), "2_1", "")
	}
	f.Fuzz(func(t *testing.T, which byte, part, query string) {
		if len(part)+len(query) > 16<<10 {
			return
		}
		r := routes[int(which)%len(routes)]
		part = url.PathEscape(part)
		path := strings.NewReplacer("{job}", part, "{node}", part, "{name}", part).Replace(r.Path)
		if err := bounded(len(query), func() error { return w.judge(w.ask(t, http.MethodGet, path+"?"+query, nil)) }); err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
	})
}
