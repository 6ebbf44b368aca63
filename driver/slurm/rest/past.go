package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// archivedJob is a job as slurmdbd's part of slurmrestd shows it.
type archivedJob struct {
	ID        number `json:"job_id"`
	User      text   `json:"user"`
	Account   text   `json:"account"`
	Partition text   `json:"partition"`
	QOS       text   `json:"qos"`
	Nodes     text   `json:"nodes"`
	Exit      exit   `json:"exit_code"`
	By        text   `json:"kill_request_user"`
	Restarts  number `json:"restart_cnt"`
	Comment   struct {
		Job text `json:"job"`
	} `json:"comment"`
	Owner struct {
		User text `json:"user"`
	} `json:"association"`
	State struct {
		Current words `json:"current"`
	} `json:"state"`
	Time struct {
		Eligible  number `json:"eligible"`
		Start     number `json:"start"`
		End       number `json:"end"`
		Submitted number `json:"submission"`
	} `json:"time"`
}

// siteJob makes site's form of it. exact says that the exit code can be relied on.
func (a *archivedJob) siteJob(exact bool) (site.Job, error) {
	j := site.Job{
		ID: a.ID.uint32(), User: string(a.User), Account: string(a.Account), Partition: string(a.Partition), QOS: string(a.QOS), Comment: string(a.Comment.Job),
		Restarts: int(a.Restarts.integerBelow(1 << 31)), CancelledBy: string(a.By),
		Submitted: a.Time.Submitted.asTime(), Eligible: a.Time.Eligible.asTime(), Started: a.Time.Start.asTime(), Ended: a.Time.End.asTime(), Exit: a.Exit.code,
	}
	if j.ID == 0 {
		return j, fault.New(fault.Unavailable, "slurmrestd shows a job of accounting without a number")
	}
	if j.User == "" {
		j.User = string(a.Owner.User)
	}
	if err := setState(&j, a.State.Current); err != nil {
		return j, err
	}
	if j.State != site.Cancelled {
		j.CancelledBy = ""
	}
	// dbv0.0.38 of Slurm 22.05 says SUCCESS and 0 of a script that ended with 3.
	if j.State == site.Failed && j.Exit.OK() && !exact {
		j.Exit = job.ExitCode{Status: 1}
	}
	return j, setNodes(&j, string(a.Nodes))
}

// Past is site.Site's.
func (s *Site) Past(ctx context.Context, ids []uint32) ([]site.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.FormatUint(uint64(id), 10)
	}
	if v == old {
		q.Set("step", strings.Join(text, ","))
	} else {
		q["step"] = text // one by one: the list of the description is not taken
	}
	all, err := s.pastJobs(ctx, q, v)
	return slices.DeleteFunc(all, func(j site.Job) bool { return !slices.Contains(ids, j.ID) }), err
}

// PastOf is site.Site's. v0.0.38 cannot ask for a user's jobs alone: all since then are read.
func (s *Site) PastOf(ctx context.Context, user string, since time.Time) ([]site.Job, error) {
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return nil, err
	}
	if user == "" {
		user = s.cfg.User
	}
	q := url.Values{}
	q.Set("start_time", "uts"+strconv.FormatInt(since.Unix(), 10))
	if v != old {
		q.Set("users", user)
	}
	all, err := s.pastJobs(ctx, q, v)
	return slices.DeleteFunc(all, func(j site.Job) bool { return j.User != user }), err
}

func (s *Site) pastJobs(ctx context.Context, q url.Values, v string) ([]site.Job, error) {
	q.Set("skip_steps", "true")
	var a struct {
		response
		Jobs []archivedJob `json:"jobs"`
	}
	err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurmdb", path: "/jobs", query: q}, &a)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]site.Job, 0, len(a.Jobs))
	for i := range a.Jobs {
		j, err := a.Jobs[i].siteJob(v != old)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}
