package jobs_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestJobsByName: a job is named by its name, or last, wherever its number is taken; a name of
// several jobs is refused with their numbers.
func TestJobsByName(t *testing.T) {
	f := newFake(t)
	of := func(id job.ID, name, user, state string) api.Job {
		j := clitest.Job(id.String(), state, 0)
		j.ID, j.Spec.Name, j.Spec.Owner.User = id, name, user
		return j
	}
	all := []api.Job{
		of(9, "other", "ben", "RUNNING"), of(8, "train.sbatch", "anna", "RUNNING"), of(7, "twice", "anna", "PENDING"), of(6, "twice", "anna", "RUNNING"),
		of(5, "train.sbatch", "anna", "COMPLETED"), of(4, "old", "anna", "FAILED"), of(3, "twice", "ben", "RUNNING"),
	}
	f.Answer("GET /v1/history", func(r *http.Request) (any, error) {
		q := r.URL.Query()
		h := api.History{}
		for _, j := range all {
			if (q.Get("users") == "" || q.Get("users") == j.Spec.Owner.User) && (q.Get("names") == "" || q.Get("names") == j.Spec.Name) {
				h.Jobs = append(h.Jobs, j)
			}
		}
		if q.Get("limit") == "1" {
			h.Jobs = h.Jobs[:1]
		}
		return h, nil
	})
	f.Answer("GET /v1/jobs/{job}", func(r *http.Request) (any, error) {
		for _, j := range all {
			if j.Name == r.PathValue("job") {
				return j, nil
			}
		}
		return nil, clitest.JobNotFound(r.PathValue("job"))
	})
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) { return api.Changed{}, nil })
	f.Text("GET /v1/jobs/{job}/logs", "log\n")
	for words, want := range map[string]string{
		"show last": "8", "show train.sbatch": "8", "show old": "4", "show other": "9", "show 6": "6",
		"logs train.sbatch": "/v1/jobs/8/logs", "logs train.sbatch.3": "/v1/jobs/8/logs?rank=3", "logs last.0.3": "/v1/jobs/8/logs?rank=3&step=0",
	} {
		r := f.Cox(t, append(strings.Fields(words), map[bool][]string{true: {"-o", "name"}}[strings.HasPrefix(words, "show")]...)...)
		if strings.HasPrefix(words, "show") && r.Out != want+"\n" || strings.HasPrefix(words, "logs") && f.Last(t, nil) != "GET "+want || r.Code != 0 {
			t.Errorf("cox %s: %+v, asked %s; want %s", words, r, f.Last(t, nil), want)
		}
	}
	var ch api.Change
	f.Cox(t, "cancel", "old", "train.sbatch", "6")
	if f.Last(t, &ch); !slices.Equal(ch.Select.IDs, []string{"4", "8", "6"}) {
		t.Errorf("cox cancel: %q", ch.Select.IDs)
	}
	f.Cox(t, "cancel", "twice").Check(t, 2, "", "~twice: several jobs have this name: 7, 6")
	f.Cox(t, "show", "nothing").Check(t, 3, "", "~nothing: no job has this number or name")
	f.Cox(t, "why", "old.x").Check(t, 3, "", "~old.x: no job has this number or name")
}

// TestListsAsAsked: lists are sorted, bounded and printed as paths and columns say.
func TestListsAsAsked(t *testing.T) {
	f := newFake(t)
	a, b := clitest.Job("9", "RUNNING", 0), clitest.Job("10", "COMPLETED", 0)
	a.Priority, b.Priority = 10, 9
	f.Answer("GET /v1/jobs", func(*http.Request) (any, error) { return api.Jobs{Jobs: []api.Job{a, b}}, nil })
	f.Answer("GET /v1/history", func(*http.Request) (any, error) { return api.History{Jobs: []api.Job{b, a}}, nil })
	f.Cox(t, "queue", "-o", "jsonpath={.jobs[*].name}").Check(t, 0, "9 10\n", "")
	f.Cox(t, "ls", "-o", "jsonpath={range .jobs[*]}{.name}{'='}{.state}{'\\n'}{end}").Check(t, 0, "9=RUNNING\n10=COMPLETED\n", "")
	f.Cox(t, "ps", "-o", "custom-columns=JOB:.name,WHO:spec.owner.user,NO:.none", "--sort-by", ".priority").Check(t, 0, "JOB  WHO   NO\n10   anna  <none>\n9    anna  <none>\n", "")
	f.Cox(t, "get", "jobs", "-o", "custom-columns=JOB:.name", "--no-headers", "--limit", "1").Check(t, 0, "9\n", "")
	f.Cox(t, "history", "--sort-by", "job", "--no-headers").Check(t, 0, "~9", "")
	if r := f.Cox(t, "history", "--sort-by", "job", "--no-headers"); !strings.HasPrefix(r.Out, "9 ") || strings.Contains(r.Out, "JOB") {
		t.Errorf("sorted: %s", r.Out)
	}
	f.Cox(t, "queue", "-o", "json", "--sort-by", ".nothing").Check(t, 2, "", "~--sort-by .nothing: no row has such a field")
	f.Cox(t, "history", "--sort-by", "nothing").Check(t, 2, "", "~columns: job, name, user")
	f.Cox(t, "queue", "-o", "jsonpath={.jobs[").Check(t, 2, "", "~-o jsonpath")
	f.Cox(t, "queue", "-o", "custom-columns=JOB").Check(t, 2, "", "~is not TITLE:.path")
	f.Cox(t, "queue", "--limit", "-1", "-o", "json").Check(t, 2, "", "~rows are counted from 0")
}

// TestListsAreNeverNull: what the server leaves out of a list is an empty list.
func TestListsAreNeverNull(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs", func(*http.Request) (any, error) { return api.Jobs{}, nil })
	f.Answer("GET /v1/jobs/{job}/why", func(*http.Request) (any, error) { return api.Why{Name: "7", State: "RUNNING"}, nil })
	for _, words := range []string{"queue -o json", "why 7 -o json", "queue -o yaml"} {
		if r := f.Cox(t, strings.Fields(words)...); r.Code != 0 || strings.Contains(r.Out, "null") || !strings.Contains(r.Out, "[]") {
			t.Errorf("cox %s: %+v", words, r)
		}
	}
}

// TestWaitingIsAnnounced: who waits for a job that waits is told why, that it has started, and what
// matters of its output when it has failed.
func TestWaitingIsAnnounced(t *testing.T) {
	f := newFake(t)
	looks := make(chan int, 3)
	looks <- 1
	ended := make(chan bool)
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) { return api.Submitted{ID: 7, Name: "train"}, nil })
	f.Answer("GET /v1/jobs/{job}", func(*http.Request) (any, error) {
		select {
		case <-looks:
			return clitest.Job("7", "PENDING", 0), nil
		default:
		}
		j := clitest.Job("7", "RUNNING", 0)
		j.Files, j.Claims = []string{"/home/anna/slurm-7.out"}, []api.Claim{{Node: "v1"}}
		close(ended)
		return j, nil
	})
	f.Answer("GET /v1/jobs/{job}/wait", func(*http.Request) (any, error) {
		<-ended
		j := clitest.Job("7", "FAILED", 1)
		j.Tasks = []api.Task{{Step: 0, Rank: 1, Exit: job.ExitCode{Status: 1}, Log: true}}
		return j, nil
	})
	f.Text("GET /v1/jobs/{job}/logs", "epoch 1\nRuntimeError: CUDA error\n\nslurmstepd: error: *** JOB 7 ON v1 CANCELLED AT 2026-11-28T12:00:00 ***\n")
	r := f.Cox(t, "submit", "--wait", "--", "true")
	r.Check(t, 1, "7 train submitted\n", "~job 7 train waits: ")
	for _, want := range []string{"job 7 FAILED", "first  rank 1: RuntimeError: CUDA error"} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("%q does not say %q", r.Err, want)
		}
	}
	if !slices.Contains(f.Requests(), "GET /v1/jobs/7/logs?rank=1&step=0&tail=20") {
		t.Errorf("asked: %q", f.Requests())
	}
}
