package podagent

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// MaxUsage is how long the answer to Question.Usage may be, in bytes.
const MaxUsage = 1 << 20

// askedAtOnce is how many supervisors are asked at a time, and usageWithin how long one may take to
// answer.
const (
	askedAtOnce = 16
	usageWithin = 2 * time.Second
)

// writeUsage asks the supervisors of all members, in member 0's pod, what they have used so far,
// and prints the record. A member that does not answer in time is not counted.
func writeUsage(at Place, out io.Writer) error {
	plan, err := at.readPlan()
	if err != nil {
		return err
	}
	if Started(at) != nil {
		return fault.New(fault.Conflict, "attempt %s has not started", plan.Ref)
	}
	parts := make([]*attempt.Usage, len(plan.Members))
	var asking sync.WaitGroup
	room := make(chan struct{}, askedAtOnce)
	for i := range parts {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			parts[i], _ = supervise.AskUsage(slotOf(at.rootDir(), i).ControlSocket(), plan.Ref, usageWithin)
		})
	}
	asking.Wait()
	if r := attempt.JoinUsage(parts); r != nil {
		return json.NewEncoder(out).Encode(fitUsage(r))
	}
	return nil
}

// fitUsage is a record without nodes, since members are not nodes, and with as many steps as
// MaxUsage has room for.
func fitUsage(r *rusage.Record) *rusage.Record {
	const perStep = 1 << 10 // with the names of four members, of 63 bytes at most each
	return boundedUsage(r, MaxUsage/perStep-1)
}
