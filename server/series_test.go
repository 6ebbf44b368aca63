package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/server/series"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// noSeries has the series of no job.
type noSeries struct{}

func (noSeries) Read(job.ID) (*series.Series, error) {
	return nil, fault.New(fault.NotFound, "no series")
}

// unmeasured is an engine that says why it measures nothing.
type unmeasured struct{ engine.Engine }

func (unmeasured) Usage(context.Context, engine.Ref) (*rusage.Record, error) {
	return nil, fault.New(fault.Unsupported, "Slurm measures nothing while a job runs").Advise("set JobAcctGatherType")
}

// TestWhyThereIsNoSeries: a job without a series says why, by its state and by what its pool's engine can. What it
// used is then not known, which is no error.
//
// Seen to fail without the engine's words, and with its error as that of the question for what the job used.
func TestWhyThereIsNoSeries(t *testing.T) {
	p := servertest.NewPlane()
	p.Engines = map[string]engine.Engine{"slurm-a": unmeasured{}, "other": struct{ engine.Engine }{}}
	r := start(t, p, func(c *Config) { c.Series = noSeries{} })
	token := r.Token(t, "anna", nil)
	note := func(id job.ID) string {
		return answered[api.Series](t, r, token, "/v1/jobs/"+id.String()+"/series").Note
	}
	waits := p.Fill(t, 1, "anna", 2001, nil)
	said := map[string]string{"waiting": note(waits)}
	for _, pool := range []string{"slurm-a", "other"} {
		id := p.Fill(t, 1, "anna", 2001, nil)
		p.Start(id, "v1")
		p.Get(id).Pool = pool
		said[pool] = note(id)
		if resp, text := r.Ask(t, "GET", "/v1/jobs/"+id.String()+"/usage", token, ""); resp.StatusCode != http.StatusOK {
			t.Errorf("pool %s: what the job used: %d %s", pool, resp.StatusCode, text)
		}
	}
	for what, want := range map[string]string{
		"waiting": "the job has not started",
		"slurm-a": "pool slurm-a gives no series: Slurm measures nothing while a job runs; set JobAcctGatherType",
		"other":   "pool other gives no series: its engine does not say",
	} {
		if !strings.HasPrefix(said[what], want) {
			t.Errorf("%s: %q, want %q", what, said[what], want)
		}
	}
}
