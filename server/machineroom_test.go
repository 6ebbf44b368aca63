package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// fillRoom gives a plane nodes in racks: rack r1 with n1 to n4, r2 with n5 to n10, of 2 GPUs each. Job 1
// of anna has the GPUs of n1, job 2 of ben one of n2; n5 is down, of n6 a GPU is fenced, one is used by
// programs of others.
func fillRoom(t *testing.T, p *servertest.Plane) {
	t.Helper()
	p.Fill(t, 1, "anna", 2001, nil)
	p.Fill(t, 1, "ben", 2002, nil)
	p.Start(1, "n1")
	p.Start(2, "n2")
	p.Nodes = nil
	for i := 1; i <= 10; i++ {
		rack := "r1"
		if i > 4 {
			rack = "r2"
		}
		n := fleet.Node{
			Name: fmt.Sprintf("n%d", i), Pool: "local", State: fleet.Up, Path: []string{"spine", rack},
			Capacity: resource.Vector{CPU: resource.CPUs(16), Memory: 64 * resource.GiB},
			Devices:  []fleet.Device{{Index: 0, Kind: "gpu", Type: "h100"}, {Index: 1, Kind: "gpu", Type: "h100"}},
		}
		p.Nodes = append(p.Nodes, query.NodeView{Node: n})
	}
	p.Nodes[2].Owner = &fleet.MachineOwner{
		Machine: "n3", Pool: "local", Next: "slurm", Step: fleet.StepDrain, Back: true,
		Waits: "job 2 of ben on n3", Evidence: "the deadline has passed while it waited for job 2 of ben on n3", Reason: "anna needs it",
	}
	p.Nodes[0].Jobs, p.Nodes[0].Held = []job.ID{1}, map[int][]job.ID{0: {1}, 1: {1}}
	p.Nodes[1].Jobs, p.Nodes[1].Held = []job.ID{2}, map[int][]job.ID{1: {2}}
	p.Nodes[4].Node.State, p.Nodes[4].Node.Why = fleet.Down, "no power"
	p.Nodes[5].Node.Devices[0].Fenced, p.Nodes[5].Node.Devices[1].Foreign = "ECC", 5
}

func answered[T any](t *testing.T, r *servertest.Running, secret, path string) *T {
	t.Helper()
	resp, text := r.Ask(t, "GET", path, secret, "")
	out := new(T)
	if resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(text), out) != nil {
		t.Fatalf("%s: %s %s", path, resp.Status, text)
	}
	return out
}

// TestMachineRoom: nodes in short, narrowed, sorted and paged; all of them by place; what is used; what
// runs. Where jobs are private, nothing of ben's job is told to anna, not even his name.
//
// Seen to fail without: MaySee in holders and in planner; NodeFilter's path; the offset; WithoutWork.
func TestMachineRoom(t *testing.T) {
	p := servertest.NewPlane()
	fillRoom(t, p)
	r := start(t, p, nil)
	private := start(t, p, func(c *Config) { c.Policy.Private = true })
	anna := r.Token(t, "anna", nil)
	for query, want := range map[string]string{
		"":                                "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10",
		"sort=-name&limit=2":              "n10 n9",
		"path=spine/r1":                   "n1 n2 n3 n4",
		"path=spine/r":                    "",
		"match=POWER":                     "n5",
		"states=down":                     "n5",
		"types=a100":                      "",
		"pools=local&limit=3&offset=8":    "n9 n10",
		"sort=-used&limit=2":              "n1 n2",
		"sort=free&limit=3":               "n5 n1 n6",
		"partitions=any&match=n1&limit=1": "n1",
	} {
		rows := answered[api.NodeRows](t, r, anna, "/v1/node-rows?"+query)
		var got []string
		for i := range rows.Rows {
			got = append(got, rows.Rows[i].Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	rows := answered[api.NodeRows](t, r, anna, "/v1/node-rows?limit=6")
	if fmt.Sprint(rows.Devices) != "map[down:2 fenced:1 foreign:1 free:13 used:3]" || rows.Total != 10 || rows.States["up"] != 9 {
		t.Errorf("%+v", rows)
	}
	if n := rows.Rows[1]; n.Devices != ".u" || len(n.Jobs) != 1 || n.Jobs[0].User != "ben" || fmt.Sprint(n.Jobs[0].Devices) != "[1]" || rows.Rows[5].Devices != "xf" {
		t.Errorf("%+v\n%+v", n, rows.Rows[5])
	}
	room := answered[api.Topology](t, r, anna, "/v1/topology?by=user")
	if len(room.Groups) != 2 || room.Groups[0].Nodes != "n[1-4]" || fmt.Sprint(room.Groups[0].Used) != "[2 1 0 0]" || fmt.Sprint(room.Groups[0].Label) != "[0 1 -1 -1]" ||
		fmt.Sprint(room.Labels) != "[anna ben]" || room.Groups[1].Shut != 4 {
		t.Errorf("%+v", room)
	}
	for _, g := range room.Groups {
		names, err := hostlist.Expand(g.Nodes)
		if err != nil || len(names) != len(g.Used) || len(names) != len(g.Devices) || len(names) != len(g.Label) || !slices.IsSortedFunc(names, hostlist.Compare) {
			t.Errorf("%+v", g)
		}
	}
	use := answered[api.Overview](t, r, anna, "/v1/overview")
	if len(use.Use) != 1 || use.Use[0].Up != 9 || fmt.Sprint(use.Use[0].Devices) != "[{gpu h100 20 3 1 1 2}]" || len(use.Recent) == 0 || use.Recent[0].Seq < use.Recent[len(use.Recent)-1].Seq {
		t.Errorf("%+v", use)
	}
	plan := answered[api.Plan](t, r, anna, "/v1/plan")
	if len(plan.Running) != 2 || plan.Running[0].End.Sub(plan.Running[0].Start).Hours() != 1 || plan.Running[0].NodeList != "n1" {
		t.Errorf("%+v", plan)
	}
	hers := private.Token(t, "anna", nil)
	for _, path := range []string{"/v1/node-rows", "/v1/topology?by=user", "/v1/topology?by=account", "/v1/overview?recent=200", "/v1/plan", "/v1/jobs?sort=id", "/v1/jobs?sort=id&columns=name,user", "/v1/jobs/counts", "/v1/machines"} {
		_, text := private.Ask(t, "GET", path, hers, "")
		if strings.Contains(text, "ben") || !strings.HasPrefix(path, "/v1/topology?by=account") && !strings.Contains(text, "anna") {
			t.Errorf("%s tells anna: %s", path, text)
		}
	}
	if rows := answered[api.NodeRows](t, private, hers, "/v1/node-rows"); rows.Rows[1].Hidden != 1 || rows.Rows[1].Devices != ".u" {
		t.Errorf("%+v", rows.Rows[1])
	}
	if plan := answered[api.Plan](t, private, hers, "/v1/plan"); plan.MoreRunning != 1 {
		t.Errorf("%+v", plan)
	}
}

// TestWatchOfAPage: a watch of some jobs tells of others that they changed, without saying which, and not
// of those that the watcher may not see; a user's browsers have few watches.
//
// Seen to fail without: maySeeItem in addItems, o.told, maxBrowsers.
func TestWatchOfAPage(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Fill(t, 1, "ben", 2002, nil)
	r := start(t, p, func(c *Config) { c.Policy.Private = true })
	l, err := r.As(t, "anna").NewWebLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{r: r}
	b.open(t, l.Path)
	watch := func() (*http.Response, *bufio.Reader) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.URL+"/v1/watch?after=0&jobs=1&others=0.01", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", b.cookie)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp, bufio.NewReader(resp.Body)
	}
	_, text := watch()
	var names []string
	for len(names) < 2 {
		line, err := text.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			data, err := text.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimSpace(name)+" "+strings.TrimSpace(strings.TrimPrefix(data, "data: ")))
		}
	}
	if !strings.HasPrefix(names[0], `change {"seq":1,`) || names[1] != `others {"seq":2,"count":1}` {
		t.Errorf("%q", names)
	}
	p.Mu.Lock()
	p.Emit(state.Event{Kind: state.EventEnded, Job: 3, Name: "3", User: "ben"})
	p.Emit(state.Event{Kind: state.EventEnded, Job: 2, Name: "2", User: "anna"})
	p.Mu.Unlock()
	for line := ""; !strings.HasPrefix(line, "data: "); {
		if line, err = text.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") && line != "data: {\"seq\":5,\"count\":1}\n" {
			t.Errorf("%q", line)
		}
	}
	for range 7 {
		watch()
	}
	resp, answer := b.ask(t, "GET", "/v1/watch", "", "Sec-Fetch-Site", "same-origin")
	servertest.CheckRefusal(t, "a ninth browser", resp, answer, http.StatusServiceUnavailable, fault.Unavailable, "8 browsers")
}
