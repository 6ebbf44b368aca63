package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// notHere is a job that could not run here even if nothing else did, with the places of its
// text that ask for what there is not.
type notHere struct {
	*control.RefusedError
	places error // a *spec.Error
}

func (e *notHere) Unwrap() []error { return []error{e.RefusedError, e.places} }

// unfit is a job that the engine of its pool refuses, with the place of its text that is why.
type unfit struct {
	place *spec.Error
	kind  fault.Kind
}

func (e *unfit) Error() string         { return e.place.Error() }
func (e *unfit) Unwrap() error         { return e.place }
func (e *unfit) FaultKind() fault.Kind { return e.kind }

// placed finds what the text says that the control plane refuses.
func (s *Server) placed(req *submission, p *parsed, err error) error {
	var part *engine.FieldError
	if errors.As(err, &part) {
		return &unfit{where(req, err.Error(), fault.Remedy(err), part.Fields), fault.KindOf(err)}
	}
	var refused *control.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	var places []*spec.Error
	for _, r := range refused.Reasons {
		places = append(places, where(req, r.String(), s.remedy(p.spec, r), options(p.spec, r)))
	}
	return &notHere{refused, spec.Join(places)}
}

func where(req *submission, message, remedy string, options []string) *spec.Error {
	src := spec.Source{Name: req.File, Data: req.script}
	switch req.Form {
	case api.FormNative:
		return native.At(src, message, remedy, options...)
	case api.FormCommand:
		src.Data = []byte("#!/bin/sh\n")
	}
	return sbatch.At(src, sbatch.Options{Args: req.Args, Environ: req.Environ}, message, remedy, options...)
}

// options are those of sbatch that may ask for what a reason says is missing, the likeliest
// first.
func options(s *job.Spec, r reason.Reason) []string {
	switch r.Code {
	case reason.NodeCount:
		return []string{"nodes", "ntasks", "gpus", "ntasks-per-node", "gpus-per-node", "gres", "nodelist"}
	case reason.Constraint:
		return []string{"constraint"}
	case reason.NodeList, reason.NodeDown:
		return []string{"nodelist"}
	case reason.Partition:
		return []string{"partition"}
	case reason.TooLarge:
		return tooMuch(s, r.Resource)
	}
	return nil
}

// tooMuch are the options that say how much of a resource one node must have.
func tooMuch(s *job.Spec, resource string) []string {
	switch {
	case resource == "cpu":
		list := []string{"cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks"}
		if g := &s.Groups[0]; int64(g.TasksPerNode)*1000 > int64(g.PerTask.Vector.CPU) { // many of few
			slices.Reverse(list[:3])
		}
		return list
	case resource == "memory":
		return []string{"mem", "mem-per-cpu", "mem-per-gpu", "memory_per_task"}
	case resource == "disk":
		return []string{"tmp"}
	case strings.HasPrefix(resource, "gpu"):
		return []string{"gpus-per-node", "gres", "gpus-per-task", "gpus", "gpu_types"}
	}
	return []string{"gres"}
}

// remedy says what to do about it.
func (s *Server) remedy(spec *job.Spec, r reason.Reason) string {
	nodes, gpus := r.Code == reason.NodeCount, r.Code == reason.TooLarge && r.Resource == "gpu"
	if (nodes || gpus) && s.onLocal(spec) {
		d := asked(spec)
		if nodes {
			d.nodes = max(d.nodes, int(r.Need))
		}
		up := fmt.Sprintf("cox up -d --nodes %d", d.nodes)
		if n := perNode(spec); n > 0 {
			up += fmt.Sprintf(" --gpus-per-node %d", n)
		}
		return fmt.Sprintf("ask for less, or serve more virtual nodes: cox down, then %s", up)
	}
	return "ask for what is there: cox nodes, cox partitions"
}

// onLocal reports whether the pool of a job is one of virtual nodes.
func (s *Server) onLocal(spec *job.Spec) bool {
	return slices.ContainsFunc(s.cfg.Plane.Pools(), func(p control.PoolView) bool {
		return p.Engine == "local" && (p.Name == spec.Pool || spec.Pool == "" && p.Default)
	})
}

// perNode is how many GPUs each node needs at least, if all are alike.
func perNode(s *job.Spec) (most int) {
	for i := range s.Groups {
		d := asked(&job.Spec{Groups: s.Groups[i : i+1]})
		most = max(most, (d.gpus+d.nodes-1)/d.nodes)
	}
	return most
}
