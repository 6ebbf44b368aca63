package jobs

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func TestEveryColumnIsThereAndDocumented(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	p.Start(1, "v1")
	r := start(t, p, nil)
	names := column.Names(column.All())
	for _, c := range column.All() {
		if columns[c] == nil {
			t.Errorf("no column %s", c)
		}
	}
	body, err := r.As(t, "anna").JobsTSV(t.Context(), client.Query{}, names...)
	row := strings.Split(strings.TrimSuffix(servertest.ReadText(t, body, err), "\n"), "\t")
	got := map[string]string{}
	for i, n := range names {
		got[n] = row[i]
	}
	for n, want := range map[string]string{
		"id": "1", "name": "1", "user": "anna", "state": "RUNNING", "partition": "main", "time_limit": "3600", "nodes_min": "1",
		"cpus": "2", "gpus": "1", "tres": "cpu=2,mem=1G,node=1,billing=2,gres/gpu=1", "gres": "gres/gpu:1", "stdout": "/home/anna/out-1",
		"node_list": "v1", "batch_host": "v1", "work_dir": "/home/anna", "ended": "0", "memory": "1073741824", "het_size": "1", "requeue": "0",
	} {
		if got[n] != want {
			t.Errorf("%s is %q, not %q", n, got[n], want)
		}
	}
}

func TestValuesAreEscaped(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	s := servertest.Request()
	s.Args = []string{"--comment=a\tb\nc\\d"}
	if _, err := r.As(t, "anna").Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	body, err := r.As(t, "anna").JobsTSV(t.Context(), client.Query{}, "comment", "id")
	if got := servertest.ReadText(t, body, err); got != "a\\tb\\nc\\\\d\t1\n" || api.UnescapeTSV(strings.Split(got, "\t")[0]) != "a\tb\nc\\d" {
		t.Errorf("%q", got)
	}
}

func TestPendingTasksCollapse(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "ben", 2002, nil)
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: []uint32{0, 1, 2, 3, 4, 5, 6, 9}, MaxRunning: 2})
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: []uint32{7}})
	p.Start(2, "v1") // task 0
	p.Start(5, "v2") // task 3
	r := start(t, p, nil)
	c := r.As(t, "anna")
	if _, err := c.Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"2_6"}}, Verb: api.VerbHold}); err != nil {
		t.Fatal(err)
	}
	body, err := c.JobsTSV(t.Context(), client.Query{Collapse: true}, "name", "array_task", "state", "array_limit")
	want := "1\t\tPENDING\t0\n" +
		"2_0\t0\tRUNNING\t2\n2_3\t3\tRUNNING\t2\n2_[1-2,4-5,9%2]\t1-2,4-5,9%2\tPENDING\t2\n2_6\t6\tPENDING\t2\n" +
		"10_7\t7\tPENDING\t0\n"
	if got := servertest.ReadText(t, body, err); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// a page does not cut an array in two
	secret := r.Token(t, "anna", nil)
	resp, page := r.Ask(t, "GET", "/v1/jobs?columns=name&collapse=true&limit=3", secret, "")
	if page != "1\n2_0\n2_3\n2_[1-2,4-5,9%2]\n2_6\n" {
		t.Errorf("%q", page)
	}
	if _, page = r.Ask(t, "GET", "/v1/jobs?columns=name&collapse=true&limit=3&cursor="+resp.Header.Get(nextHeader), secret, ""); page != "10_7\n" {
		t.Errorf("after %q: %q", resp.Header.Get(nextHeader), page)
	}
}

// TestPagesAreStable lets jobs come and go between pages: who stays is seen once.
func TestPagesAreStable(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 40, "anna", 2001, nil)
	r := start(t, p, nil)
	c := r.As(t, "anna")
	var seen []job.ID
	q := client.Query{Limit: 7}
	for page := 0; ; page++ {
		got, err := c.JobsPage(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Jobs) > 7 {
			t.Fatalf("a page of %d", len(got.Jobs))
		}
		for _, j := range got.Jobs {
			seen = append(seen, j.ID)
		}
		p.Forget(seen[len(seen)-1])                        // the one at the boundary
		p.Finish(seen[0]+1, job.Completed, job.ExitCode{}) // one already seen
		if page < 3 {
			p.Fill(t, 5, "anna", 2001, nil)
		}
		if got.Next == "" {
			break
		}
		q.Cursor = got.Next
	}
	if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
		t.Errorf("not each once and in order: %v", seen)
	}
	if len(seen) != 55 {
		t.Errorf("%d jobs: %v", len(seen), seen)
	}
}

func TestLongListsComeInChunks(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 3*chunk+10, "anna", 2001, nil)
	r := start(t, p, nil)
	body, err := r.As(t, "anna").JobsTSV(t.Context(), client.Query{}, "id")
	got := strings.Fields(servertest.ReadText(t, body, err))
	if len(got) != 3*chunk+10 || got[0] != "1" || got[len(got)-1] != fmt.Sprint(3*chunk+10) {
		t.Errorf("%d rows, %s to %s", len(got), got[0], got[len(got)-1])
	}
	n := 0
	for _, err := range r.As(t, "anna").Jobs(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3*chunk+10 {
		t.Errorf("%d jobs by pages", n)
	}
}

func TestSelections(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)                                                // 1, 2
	p.Fill(t, 2, "ben", 2002, nil)                                                 // 3, 4
	p.Fill(t, 1, "ben", 2002, &job.ArraySpec{Indices: []uint32{0, 1, 2, 3, 4, 5}}) // 5 … 10
	p.Start(2, "v2")
	p.Start(3, "v3")
	p.Finish(3, job.Failed, job.ExitCode{Status: 1})
	r := start(t, p, nil)
	c := r.As(t, "anna")
	for _, x := range []struct {
		name string
		sel  api.Select
		want string
	}{
		{"live ones", api.Select{}, "1 2 4 5 6 7 8 9 10"},
		{"all", api.Select{States: []string{"all"}}, "1 2 3 4 5 6 7 8 9 10"},
		{"short state", api.Select{States: []string{"R", "f"}}, "2 3"},
		{"a user", api.Select{Users: []string{"anna"}}, "1 2"},
		{"a user by number", api.Select{Users: []string{"2002"}}, "4 5 6 7 8 9 10"},
		{"a node", api.Select{Nodes: []string{"v[2-3]"}}, "2"},
		{"a name", api.Select{Names: []string{"job1"}}, "2 4"},
		{"ids", api.Select{IDs: []string{"4", "2", "2"}}, "2 4"},
		{"an array", api.Select{IDs: []string{"5"}}, "5 6 7 8 9 10"},
		{"tasks", api.Select{IDs: []string{"5_[1-2,5]", "1"}}, "1 6 7 10"},
		{"another partition", api.Select{Partitions: []string{"other"}}, ""},
		{"a state that none has", api.Select{States: []string{"STOPPED"}}, ""},
	} {
		body, err := c.JobsTSV(t.Context(), client.Query{Select: x.sel}, "id")
		if got := strings.Join(strings.Fields(servertest.ReadText(t, body, err)), " "); got != x.want {
			t.Errorf("%s: %q, not %q", x.name, got, x.want)
		}
	}
	for _, x := range []struct {
		name string
		sel  api.Select
		kind fault.Kind
	}{
		{"no such job", api.Select{IDs: []string{"99"}}, fault.NotFound},
		{"no such task", api.Select{IDs: []string{"5_77"}}, fault.NotFound},
		{"no number", api.Select{IDs: []string{"x"}}, fault.Invalid},
		{"millions of tasks", api.Select{IDs: []string{"5_[0-600000]", "6_[0-600000]"}}, fault.Invalid},
		{"no state", api.Select{States: []string{"SLEEPY"}}, fault.Invalid},
		{"no host list", api.Select{Nodes: []string{"v[1-"}}, fault.Invalid},
	} {
		if _, err := c.JobsPage(t.Context(), client.Query{Select: x.sel}); fault.KindOf(err) != x.kind {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if _, err := c.JobsTSV(t.Context(), client.Query{}, "id", "shoe_size"); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("an unknown column: %v", err)
	}
}

func TestHistoryPagesAndForms(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 5, "anna", 2001, nil)
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: []uint32{3, 4}})
	r := start(t, p, nil)
	c := r.As(t, "anna")
	var seen []job.ID
	for j, err := range c.History(t.Context(), client.HistoryQuery{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, j.ID)
	}
	if !slices.Equal(seen, []job.ID{7, 6, 5, 4, 3, 2, 1}) {
		t.Errorf("%v", seen)
	}
	p.Mu.Lock()
	p.Late = 3 // the store does not have the newest jobs yet, and some are no longer in memory
	p.Mu.Unlock()
	for limit := range 9 {
		var seen []job.ID
		for j, err := range c.History(t.Context(), client.HistoryQuery{Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, j.ID)
		}
		if !slices.Equal(seen, []job.ID{7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("pages of %d: %v", limit, seen)
		}
	}
	for want, q := range map[string]client.HistoryQuery{
		"7 6":   {Select: api.Select{IDs: []string{"6"}}},
		"7":     {Select: api.Select{IDs: []string{"6_4"}}},
		"7 6 2": {Select: api.Select{IDs: []string{"2", "6"}}},
		"":      {Select: api.Select{IDs: []string{"66"}}},
	} {
		q.From, q.To = time.Unix(1, 0), time.Now().Add(time.Hour)
		body, err := c.HistoryTSV(t.Context(), q, "id")
		if got := strings.Join(strings.Fields(servertest.ReadText(t, body, err)), " "); got != want {
			t.Errorf("%v: %q, not %q", q.IDs, got, want)
		}
	}
	anna := r.Token(t, "anna", nil)
	resp, body := r.Ask(t, "GET", "/v1/history?from=yesterday", anna, "")
	servertest.CheckRefusal(t, "from", resp, body, 400, fault.Invalid, "yesterday")
	for query, want := range map[string]int{"sort=-id&match=NNA": 7, "match=nobody": 0, "match=anna&ids=6": 2, "match=nobody&ids=6": 0} {
		if resp, body := r.Ask(t, "GET", "/v1/history?columns=id&"+query, anna, ""); resp.StatusCode != 200 || strings.Count(body, "\n") != want {
			t.Errorf("%s: %d %q, want %d jobs", query, resp.StatusCode, body, want)
		}
	}
	resp, body = r.Ask(t, "GET", "/v1/history?sort=ended", anna, "")
	servertest.CheckRefusal(t, "sort", resp, body, 400, fault.Invalid, "ended")
}

// TestHistoryByNode: stored jobs and those in memory are found by the nodes of their last attempts.
//
// Seen to fail with nodes that are read and not looked at.
func TestHistoryByNode(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 5, "anna", 2001, nil)
	for id, node := range map[job.ID]string{1: "v1", 2: "v2", 3: "v1", 5: "v2"} {
		p.Start(id, node)
	}
	p.Finish(1, job.Completed, job.ExitCode{})
	p.Late = 2 // the store has 1 to 3, and memory 3 to 5
	r := start(t, p, nil)
	c := r.As(t, "anna")
	for _, x := range []struct {
		sel   api.Select
		limit int
		want  []job.ID
	}{
		{api.Select{Nodes: []string{"v1"}}, 0, []job.ID{3, 1}},
		{api.Select{Nodes: []string{"v[1-2]"}}, 1, []job.ID{5, 3, 2, 1}},
		{api.Select{Nodes: []string{"v1", "v2"}}, 3, []job.ID{5, 3, 2, 1}},
		{api.Select{Nodes: []string{"v2"}, IDs: []string{"3", "4", "5"}}, 0, []job.ID{5}},
		{api.Select{Nodes: []string{"v9"}}, 0, nil},
	} {
		var seen []job.ID
		for j, err := range c.History(t.Context(), client.HistoryQuery{Select: x.sel, Limit: x.limit}) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, j.ID)
		}
		if !slices.Equal(seen, x.want) {
			t.Errorf("%+v, pages of %d: %v, want %v", x.sel, x.limit, seen, x.want)
		}
	}
	if _, err := c.HistoryPage(t.Context(), client.HistoryQuery{Select: api.Select{Nodes: []string{"v[1-"}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no host list: %v", err)
	}
}

// BenchmarkList is 10,000 rows of 12 columns, as squeue asks for them.
func BenchmarkList(b *testing.B) {
	p := servertest.NewPlane()
	p.Fill(b, 10000, "anna", 2001, nil)
	s := register(p, &servertest.Log{}, nil)
	defer s.Close()
	sel, _ := selectJobs(api.Select{}, nil)
	cols, names, _, err := columnsOf([]string{"name", "partition", "job_name", "user", "state", "started", "time_limit", "nodes_min", "node_list", "reason", "priority", "flags"}, "")
	if err != nil {
		b.Fatal(err)
	}
	c := &call{s.NewCall(nil, httptest.NewRequest("GET", "/", nil)), s}
	c.ID = auth.Identity{Admin: true}
	for b.Loop() {
		t := &table{cols: cols, names: names, collapse: true}
		c.eachSelected(sel, 0, false, func(v *state.View) bool { t.add(v); return true })
		if t.rows != 10000 {
			b.Fatal(t.rows)
		}
	}
}

// BenchmarkListJSON is 10,000 jobs as JSON, in pages.
func BenchmarkListJSON(b *testing.B) {
	p := servertest.NewPlane()
	p.Fill(b, 10000, "anna", 2001, nil)
	s := register(p, &servertest.Log{}, nil)
	defer s.Close()
	sel, _ := selectJobs(api.Select{}, nil)
	c := &call{s.NewCall(nil, httptest.NewRequest("GET", "/", nil)), s}
	c.ID = auth.Identity{Admin: true}
	for b.Loop() {
		rec := httptest.NewRecorder()
		c.W = &transport.Writer{ResponseWriter: rec}
		if err := s.listJSON(c, sel, &listInput{Limit: 10000}, 0); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(rec.Body.Len()))
	}
}

// TestListsHaveTheIndicesOfAnArrayOnce on a page.
// Seen to fail with: listed leaving every task its indices.
func TestListsHaveTheIndicesOfAnArrayOnce(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: []uint32{0, 1, 2}})
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: []uint32{0, 1}})
	r := start(t, p, nil)
	for _, path := range []string{"/v1/jobs", "/v1/history"} {
		_, body := r.Ask(t, "GET", path, r.Token(t, "anna", nil), "")
		if strings.Count(body, `"indices":[0,1,2]`) != 1 || strings.Count(body, `"indices":[0,1]`) != 1 || strings.Count(body, `"indices":[]`) != 3 {
			t.Errorf("%s: %s", path, body)
		}
	}
	if _, body := r.Ask(t, "GET", "/v1/jobs/1_2", r.Token(t, "anna", nil), ""); !strings.Contains(body, `"indices":[0,1,2]`) {
		t.Error(body)
	}
}
