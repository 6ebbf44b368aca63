package intake

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// locatedRefusal is a job that could not run here even if nothing else did, with the places of its
// text that ask for what there is not.
type locatedRefusal struct {
	*control.RefusedError
	places error // a *spec.Error
}

func (e *locatedRefusal) Unwrap() []error { return []error{e.RefusedError, e.places} }

// engineRefusal is a job that the engine of its pool refuses, with the place of its text that is why.
type engineRefusal struct {
	place *spec.Error
	kind  fault.Kind
}

func (e *engineRefusal) Error() string         { return e.place.Error() }
func (e *engineRefusal) Unwrap() error         { return e.place }
func (e *engineRefusal) FaultKind() fault.Kind { return e.kind }

// Locate adds to an error of the control plane the places of the text that ask for what is
// refused. Other errors stay as they are.
func (s *Site) Locate(r *Request, err error) error {
	var part *engine.FieldError
	if errors.As(err, &part) {
		return &engineRefusal{r.errorAt(err.Error(), fault.Remedy(err), part.Fields), fault.KindOf(err)}
	}
	var refused *control.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	var places []*spec.Error
	for _, why := range refused.Reasons {
		places = append(places, r.errorAt(why.String(), s.remedyFor(r.Spec, why), optionsFor(r.Spec, why)))
	}
	return &locatedRefusal{refused, spec.Join(places)}
}

// errorAt is an error at the place of the text that gives one of some options.
func (r *Request) errorAt(message, remedy string, options []string) *spec.Error {
	src := spec.Source{Name: r.Text.Name, Data: r.Text.Data}
	switch r.Text.Form {
	case api.FormNative:
		if d, ok := sbatch.FindOption(r.args, options...); ok {
			return d.Blame(message, remedy)
		}
		return native.At(src, message, remedy, options...)
	case api.FormManifest:
		return r.work.Blame(message, remedy, r.args, options)
	case api.FormCommand, api.FormAllocation:
		src.Data = emptyScript
	}
	return sbatch.At(src, sbatch.Options{Args: r.args, Environ: r.environ}, message, remedy, options...)
}

// optionsFor are those of sbatch that may ask for what a reason says is missing, the likeliest
// first.
func optionsFor(s *job.Spec, r reason.Reason) []string {
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
		return optionsOfResource(s, r.Resource)
	}
	return nil
}

// optionsOfResource are the options that say how much of a resource one node must have.
func optionsOfResource(s *job.Spec, resource string) []string {
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

// remedyFor says what to do about a reason: only an administrator can give the server more nodes.
func (s *Site) remedyFor(spec *job.Spec, r reason.Reason) string {
	nodes, gpus := r.Code == reason.NodeCount, r.Code == reason.TooLarge && r.Resource == "gpu"
	if uid := int(spec.Owner.UID); !(nodes || gpus) || !s.isVirtual(spec) || uid != 0 && uid != os.Getuid() {
		return "ask for what is there: cox nodes, cox partitions"
	}
	d := spec.Demand()
	if nodes {
		d.Nodes = max(d.Nodes, int(r.Need))
	}
	more := fmt.Sprintf("room.nodes: %d", d.Nodes)
	if n := gpusPerNode(spec); n > 0 {
		more += fmt.Sprintf(" and room.gpus_per_node: %d", n)
	}
	return "ask for less (cox nodes shows what is there), or give the server more virtual nodes: " + more + " in cox.yaml, then restart it"
}

// isVirtual reports whether the pool of a job is one of virtual nodes.
func (s *Site) isVirtual(spec *job.Spec) bool {
	return slices.ContainsFunc(s.Plane.Pools(), func(p pools.View) bool {
		return p.Engine == "local" && (p.Name == spec.Pool || spec.Pool == "" && p.Default)
	})
}

// gpusPerNode is how many GPUs each node needs at least, if all are alike.
func gpusPerNode(s *job.Spec) (most int) {
	for i := range s.Groups {
		d := (&job.Spec{Groups: s.Groups[i : i+1]}).Demand()
		most = max(most, (d.GPUs+d.Nodes-1)/d.Nodes)
	}
	return most
}
