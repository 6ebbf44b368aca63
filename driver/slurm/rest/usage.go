package rest

import (
	"context"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var (
	_ site.Accountant = (*Site)(nil)
	_ site.Sampler    = (*Site)(nil)
)

// Used is site.Accountant's, by commands.
func (s *Site) Used(ctx context.Context, ids []uint32) ([]site.JobUse, error) {
	by, ok := s.cfg.Commands.(site.Accountant)
	if !ok {
		return nil, fault.New(fault.Unsupported, "what jobs used is asked of sacct").Advise("give the pool Slurm's commands too: --local or --ssh beside --rest")
	}
	return by.Used(ctx, ids)
}

// UsedNow is site.Sampler's, by commands.
func (s *Site) UsedNow(ctx context.Context, ids []uint32) ([]site.JobUse, error) {
	by, ok := s.cfg.Commands.(site.Sampler)
	if !ok {
		return nil, fault.New(fault.Unsupported, "what running jobs use is asked of sstat").Advise("give the pool Slurm's commands too: --local or --ssh beside --rest")
	}
	return by.UsedNow(ctx, ids)
}
