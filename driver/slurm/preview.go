package slurm

import (
	"bytes"
	"fmt"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Preview is engine.Previewer's: the submission of an attempt, to the byte, but for numbers
// that there are not yet.
func (e *Engine) Preview(d *engine.JobDraft) (*engine.Preview, error) {
	d = e.placeDraft(d)
	if err := e.checkSubmittable(d.Spec, d.Script, d.Env); err != nil {
		return nil, e.atDoor(err)
	}
	o := draftOrder(d)
	w, err := e.cfg.avoiding(o.Avoid).Build(o.Job, engine.Ref{}, o.Claims, o.Script)
	if err != nil {
		return nil, e.atDoor(err)
	}
	sub, err := e.draftSubmission(d)
	if err != nil {
		return nil, e.atDoor(err)
	}
	out := &engine.Preview{Script: sub.Script, Args: sub.Args, Options: append([][]string{sub.Options}, sub.Components...), Notes: w.Notes}
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	if added := bytes.Count(sub.Script, []byte("\n")) - bytes.Count(w.Script, []byte("\n")); added > 0 {
		note("%d lines are added that take the lock of the attempt, so that it begins once", added)
	}
	note("not known yet: the job's number and the attempt's stand as 0 and 0.0, and %s in the lock's name for a word that is drawn for each attempt", noToken)
	if a := d.Spec.Array; a != nil && len(a.Indices) > 0 {
		note("this is task %d of %d: each is a job of its own to Slurm", a.Indices[0], len(a.Indices))
	}
	switch {
	case e.cfg.Placed && d.Claims == nil:
		note("on which nodes it runs, and what is held there, is said when Coxswain has chosen them")
	case e.cfg.Placed:
		note("the nodes are those that it would get by what is known now")
	}
	if d.Spec.Program.Kind == job.Batch && d.Spec.Source.Form == sbatchargs.Form {
		note("options outrank the script: they say what the job has by then (cox update), and what was given beside it")
	}
	return out, nil
}

// draftOrder is a job that is not taken yet as an attempt has it.
func draftOrder(d *engine.JobDraft) *order {
	o := &order{Job: &job.Job{Spec: d.Spec}, Claims: d.Claims, Avoid: d.Avoid, Script: d.Script, Env: d.Env, Token: noToken}
	if a := d.Spec.Array; a != nil && len(a.Indices) > 0 {
		o.Job.Array = &job.ArrayTask{Index: a.Indices[0]}
	}
	return o
}
