package slurmcmd

import (
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Wait stays until a job, or every task of an array, has ended, and returns it
// (api.Job). Of an array that is the task with the highest exit code.
func Wait(c *fastclient.Client, id string) (fastclient.Value, error) {
	for {
		v, err := c.JSON("GET", fastclient.Query("/v1/jobs/"+fastclient.Segment(id)+"/wait", "timeout", "600"), nil)
		if err != nil {
			return v, err
		}
		if v.Has("state") {
			return v, nil
		}
	}
}

// ExitCode is the exit code of a job (api.Job) as a shell has it. A job that ended
// otherwise than by its program has 1.
func ExitCode(v fastclient.Value) int {
	e := v.Get("exit")
	switch {
	case e.Get("signal").Int() > 0:
		return 128 + int(e.Get("signal").Int())
	case e.Get("status").Int() == 0 && v.Get("state").Text() != "COMPLETED":
		return 1
	}
	return int(e.Get("status").Int())
}

// ReasonText is a reason (reason.Reason) as one clause.
func ReasonText(v fastclient.Value) string {
	return reason.Reason{
		Code: reason.Code(v.Get("code").Text()), Resource: v.Get("resource").Text(), Need: v.Get("need").Int(), Free: v.Get("free").Int(),
		Most: v.Get("most").Int(), Nodes: int(v.Get("nodes").Int()), Ahead: int(v.Get("ahead").Int()), Job: uint64(v.Get("job").Int()),
		Want: v.Get("want").Text(), Until: v.Get("until").Int(), Since: v.Get("since").Int(),
	}.String()
}
