package slurmcmd

import (
	"errors"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestAllocationError: Slurm's sentence comes first, and errors without one stay as they are.
func TestAllocationError(t *testing.T) {
	plain := errors.New("connection refused")
	for _, c := range []struct {
		err          error
		want, remedy string
	}{
		{plain, "connection refused", ""},
		{&api.Error{Status: 400, Detail: "--partition=x: there is no such partition", Remedy: "partitions here: a"}, "Unable to allocate resources: Invalid partition name specified: --partition=x: there is no such partition", "partitions here: a"},
		{&api.Error{Status: 400, Detail: "--qos=x: there is no such QOS"}, "Unable to allocate resources: Invalid qos specification: --qos=x: there is no such QOS", ""},
		{
			&api.Error{Status: 400, Detail: "x", Reasons: []reason.Reason{{Code: reason.NodeCount}}, Errors: []api.Located{{File: "command line", Message: "--nodes=9: needs 9 nodes", Remedy: "cox nodes"}}},
			"Unable to allocate resources: Node count specification invalid: command line: --nodes=9: needs 9 nodes", "cox nodes",
		},
		{&api.Error{Status: 403, Title: "permission", Detail: "--reservation=r: you may not use it"}, "Unable to allocate resources: Access denied to requested reservation: --reservation=r: you may not use it", ""},
		{
			&api.Error{Status: 400, Detail: "x", Reasons: []reason.Reason{{Code: reason.Limited("QOSGrpGRES")}}},
			"Unable to allocate resources: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits): x", "",
		},
	} {
		got := AllocationError(c.err)
		if got.Error() != c.want || fault.Remedy(got) != c.remedy {
			t.Errorf("%v; %s\nwant %s; %s", got, fault.Remedy(got), c.want, c.remedy)
		}
	}
	strange := &api.Error{Status: 503, Detail: "not ready"}
	if got := AllocationError(strange); got != error(strange) {
		t.Errorf("%v", got)
	}
}
