package stepusage

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Ask gets what a job used, or has used so far, from a server.
func Ask(c *fastclient.Client, job string) (*api.Usage, error) {
	r, err := c.Get("/v1/jobs/"+fastclient.Segment(job)+"/usage", "application/json")
	if err != nil {
		return nil, err
	}
	b, err := r.All()
	if err != nil {
		return nil, err
	}
	u := new(api.Usage)
	if err := json.Unmarshal(b, u); err != nil {
		return nil, fault.New(fault.Internal, "what the server says of job %s cannot be read: %w", job, err)
	}
	return u, nil
}
