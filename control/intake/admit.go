package intake

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// Admit lays the wish of the submission over a request, puts it into its pool and applies the
// site's rules. The error says why the site does not take it from this caller.
func (s *Site) Admit(ctx context.Context, id auth.Identity, r *Request, w Wish) error {
	r.Spec.Pool = cmp.Or(w.Pool, r.Spec.Pool)
	if err := setPods(r.Spec, w.Pods); err != nil {
		return err
	}
	delete(r.Spec.Source.Given, "wrap") // it is the script, which is not for everybody as options are
	r.Spec.Provenance = w.Provenance
	if err := s.attachUpload(r.Spec, &w); err != nil {
		return err
	}
	r.setUmask(w.Umask)
	s.filterEnvironment(r)
	if err := checkSize(r.Spec); err != nil {
		return err
	}
	rules, err := s.rulesInForce(ctx)
	if err != nil {
		return err
	}
	usual := ""
	if rules != nil {
		usual = rules.Propagate()
	}
	if err := r.setLimits(w.Limits, usual); err != nil {
		return err
	}
	if err := s.Choose(ctx, r, rules); err != nil {
		return err
	}
	if r.Spec.Rerun != job.RerunAnywhere && s.isDelegated(r.Spec.Pool) {
		return fault.New(fault.Unsupported, "%s: the scheduler of pool %s itself chooses the nodes, at each attempt anew", r.Spec.Rerun, r.Spec.Pool).
			Advise("leave it out, name nodes with --nodelist or --exclude, or choose another pool")
	}
	if err := r.CheckFields(s.engineOf(r.Spec.Pool)); err != nil {
		return err
	}
	if rules != nil {
		rules.FillBatch(r.Spec)
		if r.Spec.QOS != "" && rules.IgnoresQOS() && !s.goesToSlurm(r.Spec) {
			r.Warnings = append(r.Warnings, spec.Warning{Option: "--qos=" + r.Spec.QOS, Message: "has no effect here: the site's rules have no QOS (cox policy show)"})
			if r.strict {
				return r.refuseWarnings()
			}
		}
		if err := s.checkSpare(ctx, r, rules); err != nil {
			return err
		}
		if text := rules.Broken(r.Spec); text != "" {
			r.Warnings = append(r.Warnings, spec.Warning{Option: "--requeue", Message: text})
			if r.strict {
				return r.refuseWarnings()
			}
		}
	}
	if err := id.MayCharge(r.Spec.Account); err != nil {
		return err
	}
	if (r.Spec.Priority > 0 || r.Spec.Nice < 0) && !id.Admin {
		return fault.New(fault.Permission, "%s may not set a priority of its own or a negative nice value", id.Name).
			Advise("leave --priority out, give --nice a positive value, or ask an administrator")
	}
	return nil
}

// goesToSlurm reports whether a Slurm cluster, which has QOS of its own, runs the job.
func (s *Site) goesToSlurm(sp *job.Spec) bool {
	return slices.ContainsFunc(s.Plane.Pools(), func(p pools.View) bool {
		return p.Engine == "slurm" && (p.Name == sp.Pool || sp.Pool == "" && p.Default)
	})
}

// setPods gives a job a pod for each node or task, as its submission says; empty: it says nothing.
func setPods(s *job.Spec, of string) error {
	pod := job.Pod{}
	if s.Pod != nil {
		pod = *s.Pod
	}
	switch of {
	case "":
		return nil
	case "task", "node":
		pod.PerTask = of == "task"
		if s.Pod = &pod; reflect.DeepEqual(pod, job.Pod{}) {
			s.Pod = nil
		}
		return nil
	}
	return fault.New(fault.Invalid, "pods: %.70q is neither node nor task", of).Advise("write task for a pod of each task, or leave it out")
}

// TakesUploads returns an error where no pool's jobs could have a directory that comes along.
func (s *Site) TakesUploads() error {
	if s.Uploads == nil {
		return fault.New(fault.Unsupported, "this server takes no directories with jobs").Advise("leave --upload out")
	}
	if s.OwnUploads {
		return nil
	}
	for _, v := range s.Plane.Pools() {
		if v.Gone {
			continue
		}
		if r, ok := s.Plane.AddedEngine(v.Name).(engine.UploadReceiver); ok && r.Receives() {
			return nil
		}
	}
	return fault.New(fault.Unsupported, "no pool of this server takes working directories that come with jobs").
		Advise("leave --upload out; or have an administrator add a pool of Kubernetes with workdir=upload, or of Slurm with upload_dir")
}

// attachUpload notes the directory that comes with a job. Where the job is kept, its archive has
// to be here.
func (s *Site) attachUpload(sp *job.Spec, w *Wish) error {
	u := w.Upload
	if u == nil {
		return nil
	}
	if err := s.TakesUploads(); err != nil {
		return err
	}
	if !path.IsAbs(u.Dir) || path.Clean(u.Dir) != u.Dir || u.Size < 0 {
		return fault.New(fault.Invalid, "upload: %.100q is no directory from / on, in its shortest form, or %d no size", u.Dir, u.Size).Advise("send what cox submit --upload sends")
	}
	sp.Upload = &job.Upload{Digest: u.Digest, Size: u.Size, Dir: u.Dir}
	if w.TestOnly {
		return nil
	}
	n, err := s.Uploads.Touch(sp.Owner.UID, u.Digest)
	sp.Upload.Size = n
	return err
}

// setUmask puts the submitter's mask of file modes where sbatch puts it, and the engine looks
// for it.
func (r *Request) setUmask(mask *uint32) {
	const name = "SLURM_UMASK="
	if mask == nil {
		return
	}
	env := make([]string, 0, len(r.Env)+1)
	for _, kv := range r.Env {
		if !strings.HasPrefix(kv, name) {
			env = append(env, kv)
		}
	}
	r.Env = append(env, fmt.Sprintf(name+"%04o", *mask&0o777))
}

// filterEnvironment leaves out the variables that the site does not keep, and notes which.
func (s *Site) filterEnvironment(r *Request) {
	var dropped []string
	if r.Env, dropped = s.Environment.Apply(r.Env); len(dropped) == 0 {
		return
	}
	var v job.Provenance
	if r.Spec.Provenance != nil {
		v = *r.Spec.Provenance
	}
	v.Notes = append(slices.Clone(v.Notes), "variables that this site does not keep: "+strings.Join(dropped, ", "))
	r.Spec.Provenance = &v
}
