package slurm

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Alterer = (*Engine)(nil)

// Alter is engine.Alterer's. It is asked for as the job's owner, so that Slurm checks the
// owner's rights. A driver that begins anew knows the change no more: a job that Slurm puts
// back after that loses its place in Slurm's queue.
func (e *Engine) Alter(ctx context.Context, ref engine.Ref, c engine.Alteration) error {
	a, err := e.alterableAttempt(ref)
	if err != nil {
		return err
	}
	e.mu.Lock()
	id, spec := a.id, *a.order.Job.Spec
	e.mu.Unlock()
	spec.Partitions = c.Partitions
	if err := e.byRule(ctx, &spec); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	switch j, err := e.controller.currentJob(ctx, a); {
	case err != nil:
		return err
	case j == nil || j.State != site.Pending:
		return fault.New(fault.Conflict, "job %d does not wait in Slurm any more", id).Advise("cox show says what it does now")
	}
	if err := e.setPartitions(ctx, a, id, c.Partitions); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.order != nil { // so that the next attempt is seen to ask for the same
		o, j := *a.order, *a.order.Job
		j.Spec, o.Job = &spec, &j
		a.order = &o
	}
	e.poller.soon(a)
	return nil
}

// setPartitions puts a job that waits into partitions. Slurm 22.05 complains of what cannot run there now
// (error 2015) and does it all the same: what came of it is looked at. 24.11 does not do it while
// it is busy with the job: it is asked again for a moment.
func (e *Engine) setPartitions(ctx context.Context, a *attempt, id uint32, into []string) error {
	for pause := firstPause; ; pause *= 2 {
		err := e.owners.siteAs(a.user).Update(ctx, id, site.Change{Partition: strings.Join(into, ",")})
		if err == nil {
			return nil
		}
		j, unknown := e.controller.currentJob(ctx, a)
		switch {
		case unknown != nil:
			return unknown
		case j != nil && slices.Equal(slices.Sorted(strings.SplitSeq(j.Partition, ",")), slices.Sorted(slices.Values(into))):
			return nil
		case fault.KindOf(err) != fault.Unavailable || pause > 4*time.Second:
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// alterableAttempt is an attempt whose job may stand in Slurm's queue.
func (e *Engine) alterableAttempt(ref engine.Ref) (*attempt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case a == nil:
		return nil, kit.UnknownAttempt(engineName, ref)
	case a.ended || a.stop != nil || a.report.Phase > engine.Accepted:
		return nil, fault.New(fault.Conflict, "it does not wait in Slurm any more").Advise("cox show says what it does now")
	case e.cfg.sbatchSettings().HasOption("partition"):
		return nil, fault.New(fault.Conflict, "the settings of pool %s name the partition of all its jobs", e.cfg.Pool).Advise("submit it to a pool that does not: cox pool list")
	case len(a.order.Job.Spec.Groups) > 1:
		return nil, fault.New(fault.Unsupported, "it is a heterogeneous job, whose components have each a partition")
	case a.id == 0:
		return nil, fault.New(fault.Conflict, "it is being handed over to Slurm").Advise("try again; cox why says what keeps it")
	}
	return a, nil
}
