package jobs

import (
	"context"
	"testing"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/store"
)

// rotten is a plane with a job whose stored row is damaged.
type rotten struct{ *servertest.Plane }

func (r rotten) Job(ctx context.Context, id job.ID) (state.View, error) {
	if id == 7 {
		return state.View{}, store.DamagedJob(7)
	}
	return r.Plane.Job(ctx, id)
}

// TestADamagedJobIsNamed to whoever sees the jobs of others; to nobody else, for whose it is
// cannot be known.
func TestADamagedJobIsNamed(t *testing.T) {
	for private, want := range map[bool]string{false: "the stored row of job 7 is damaged", true: "there is no job 7"} {
		r := start(t, servertest.NewPlane(), func(c *Config) {
			c.Policy, c.Plane = auth.Policy{Private: private}, rotten{c.Plane.(*servertest.Plane)}
		})
		resp, body := r.Ask(t, "GET", "/v1/jobs/7", r.Token(t, "anna", nil), "")
		servertest.CheckRefusal(t, "a damaged job", resp, body, 404, fault.NotFound, want)
	}
}
