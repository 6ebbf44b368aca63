package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// variedJobs fills a plane with jobs that differ in all that lists are sorted and narrowed by.
func variedJobs(t *testing.T, p *servertest.Plane) {
	t.Helper()
	for i := range 60 {
		owner := []string{"anna", "ben"}[i%2]
		v := p.Get(p.Fill(t, 1, owner, uint32(2001+i%2), nil))
		spec := *v.Job.Spec
		spec.Name, spec.Account, spec.TimeLimit = fmt.Sprintf("Train-%d", i%7), fmt.Sprintf("acc%d", i%3), time.Duration(i%5)*time.Minute
		spec.Pool = []string{"", "slurm-b"}[i%2]
		v.Job.Spec, v.Priority, v.Job.Submitted = &spec, int64(i*37%11), time.Unix(int64(1e9+i*53%17), 0)
		if i%4 == 0 {
			v.Why = reason.Reason{Code: reason.Priority}
		}
		if i%6 == 5 {
			v.Job.State, v.Job.Ended = job.Completed, time.Unix(2e9, 0)
		}
	}
	array := &job.ArraySpec{}
	for i := range uint32(40) {
		array.Indices = append(array.Indices, i)
	}
	p.Fill(t, 1, "anna", 2001, array)
}

// TestSortedLists compares each order with one that the test makes of the whole list, and puts the list
// together of pages, by cursor and by offset.
//
// Seen to fail without: "down" in compare, the -1 of equal rows behind a cursor, offset.
func TestSortedLists(t *testing.T) {
	p := servertest.NewPlane()
	variedJobs(t, p)
	r := start(t, p, nil)
	secret := r.Token(t, "anna", nil)
	rows := func(query string) (list [][]string, next string, total int) {
		t.Helper()
		resp, text := r.Ask(t, "GET", "/v1/jobs?states=all&columns=id,user,account,job_name,priority,submitted,time_limit,state&"+query, secret, "")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", query, resp.Status, text)
		}
		for line := range strings.Lines(text) {
			list = append(list, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
		total, _ = strconv.Atoi(resp.Header.Get(api.TotalHeader))
		return list, resp.Header.Get(nextHeader), total
	}
	all, _, _ := rows("")
	for column, key := range []string{"id", "user", "account", "name", "priority", "submitted", "time_limit", "state"} {
		for _, down := range []bool{false, true} {
			want := slices.Clone(all)
			slices.SortFunc(want, func(a, b []string) int {
				number := func(s string) int { n, _ := strconv.Atoi(s); return n }
				c := cmp.Or(cmp.Compare(number(a[column]), number(b[column])), strings.Compare(a[column], b[column]), cmp.Compare(number(a[0]), number(b[0])))
				if down {
					return -c
				}
				return c
			})
			word := key
			if down {
				word = "-" + key
			}
			var paged, offset [][]string
			for next := "first"; next != ""; {
				at := ""
				if next != "first" {
					at = "&cursor=" + url.QueryEscape(next)
				}
				var page [][]string
				var total int
				if page, next, total = rows("sort=" + word + "&limit=17" + at); total != len(all) {
					t.Fatalf("%s: total %d of %d", word, total, len(all))
				}
				paged = append(paged, page...)
			}
			for from := 0; from < len(all); from += 33 {
				page, _, _ := rows(fmt.Sprintf("sort=%s&limit=33&offset=%d", word, from))
				offset = append(offset, page...)
			}
			if fmt.Sprint(paged) != fmt.Sprint(want) || fmt.Sprint(offset) != fmt.Sprint(want) {
				t.Errorf("sort=%s:\nby cursor %v\nby offset %v\nwant      %v", word, paged, offset, want)
			}
		}
	}
	if list, _, total := rows("sort=id&collapse=true"); total != 61 || len(list) != 61 {
		t.Errorf("collapsed: %d rows, total %d", len(list), total)
	}
	_, text := r.Ask(t, "GET", "/v1/jobs?sort=-priority&limit=2", secret, "")
	var page api.Jobs
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Jobs) != 2 || page.Next == "" || page.Total == 0 || page.Jobs[0].Priority < page.Jobs[1].Priority {
		t.Errorf("%v: %s", err, text)
	}
	for _, bad := range []string{"sort=color", "sort=id&cursor=x", "offset=3", "sort=user&cursor=" + page.Next} {
		resp, text := r.Ask(t, "GET", "/v1/jobs?"+bad, secret, "")
		servertest.CheckRefusal(t, bad, resp, text, 400, fault.Invalid, strings.Split(bad, "=")[0][:4])
	}
}

// TestNarrowedLists: what narrows a list narrows its counts too, and counts of states are of all states.
// Where jobs are private, nobody counts those of others.
//
// Seen to fail without: each part of narrow.matchesView; MaySee in eachSelected.
func TestNarrowedLists(t *testing.T) {
	p := servertest.NewPlane()
	variedJobs(t, p)
	r := start(t, p, nil)
	private := start(t, p, func(c *Config) { c.Policy.Private = true })
	for _, c := range []struct {
		query string
		want  func(j *api.Job) bool
	}{
		{"match=TRAIN-3", func(j *api.Job) bool { return j.Spec.Name == "Train-3" }},
		{"match=ben", func(j *api.Job) bool { return j.Spec.Owner.User == "ben" }},
		{"match=acc1", func(j *api.Job) bool { return j.Spec.Account == "acc1" }},
		{"match=59", func(j *api.Job) bool { return j.Name == "59" }},
		{"reasons=priority", func(j *api.Job) bool { return j.Why != nil && j.Why.Code == reason.Priority }},
		{"pools=slurm-b", func(j *api.Job) bool { return j.Spec.Pool == "slurm-b" }},
		{"pools=local,other&users=anna", func(j *api.Job) bool { return j.Spec.Pool == "" && j.Spec.Owner.User == "anna" }},
		{"states=completed", func(j *api.Job) bool { return j.State == "COMPLETED" }},
	} {
		_, text := r.Ask(t, "GET", "/v1/jobs?states=all", r.Token(t, "anna", nil), "")
		var whole api.Jobs
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatal(err)
		}
		all := whole.Jobs
		want, states := 0, map[string]int{}
		for i := range all {
			live := all[i].State != "COMPLETED"
			if c.want(&all[i]) && (live || strings.Contains(c.query, "states")) {
				want++
			}
			if strings.Contains(c.query, "states") || c.want(&all[i]) {
				states[all[i].State]++
			}
		}
		_, text = r.Ask(t, "GET", "/v1/jobs?limit=1000&"+c.query, r.Token(t, "anna", nil), "")
		var page api.Jobs
		if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Jobs) != want || want == 0 {
			t.Errorf("%s: %d jobs, and %d match", c.query, len(page.Jobs), want)
		}
		_, text = r.Ask(t, "GET", "/v1/jobs/counts?"+c.query, r.Token(t, "anna", nil), "")
		var n api.JobCounts
		if err := json.Unmarshal([]byte(text), &n); err != nil || n.Total != want || fmt.Sprint(n.States) != fmt.Sprint(states) {
			t.Errorf("%s: %s, want %d in all and %v", c.query, text, want, states)
		}
	}
	_, text := private.Ask(t, "GET", "/v1/jobs/counts", private.Token(t, "ben", nil), "")
	if strings.Contains(text, "anna") || !strings.Contains(text, "ben") {
		t.Errorf("ben counts %s", text)
	}
}
