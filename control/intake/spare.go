package intake

import (
	"context"
	"strings"

	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

// checkSpare asks whether the replicas of a service above its least number may run in the QOS that its
// file names for them. A service whose QOS is refused later would stand still when it grows.
func (s *Site) checkSpare(ctx context.Context, r *Request, rules *admission.Rules) error {
	if r.Service == nil || r.Service.SpareQOS == "" || s.Plane != nil && s.goesToSlurm(r.Spec) {
		return nil
	}
	if rules.IgnoresQOS() {
		r.Warnings = append(r.Warnings, spec.Warning{Option: "spare_qos: " + r.Service.SpareQOS, Message: "has no effect here: the site's rules have no QOS (cox policy show)"})
		if r.strict {
			return r.refuseWarnings()
		}
		return nil
	}
	err := s.applyRules(ctx, rules, r.Spare().Spec)
	if err == nil {
		return nil
	}
	message := strings.TrimPrefix(err.Error(), "--qos=")
	return &engineRefusal{r.errorAt(message, fault.Remedy(err), []string{"spare_qos"}), fault.KindOf(err)}
}

// Spare is a request with the job of a replica above the least number of a service; nil: it has none, or
// they are as the others.
func (r *Request) Spare() *Request {
	if r.Service == nil || r.Service.SpareQOS == "" {
		return nil
	}
	spare, of := *r, *r.Spec
	of.QOS = r.Service.SpareQOS
	spare.Spec = &of
	return &spare
}
