package submission

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
	coxprovenance "github.com/coxswain-sched/coxswain/spec/provenance"
)

// collectProvenance records where the work comes from, before it is submitted. What cannot
// be had in time becomes a note and stops nothing.
func collectProvenance(ctx context.Context, req *api.Submit) *job.Provenance {
	r := coxprovenance.Request{Dir: req.Dir, Words: slices.Concat(req.ScriptArgs, req.Command), Environ: req.Environ}
	if req.File != "" && req.File != "-" {
		r.Files = []string{req.File}
	}
	return coxprovenance.Collect(ctx, r)
}
