package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.SecretTaker = (*Engine)(nil)

// TakesSecrets is engine.SecretTaker's.
func (e *Engine) TakesSecrets() bool { return true }

// handSecrets makes the Secret with the values of the job's secrets, where it has any; of a manifest, those of its
// file.
func (e *Engine) handSecrets(a *attempt, way *cluster.Cluster, r *render.Attempt, root types.UID) error {
	if len(r.Launch.Job.Spec.Secrets) == 0 {
		return nil
	}
	values, err := e.secrets.Values(a.ref)
	if fault.KindOf(err) == fault.NotFound {
		return &never{engine.Unready, err}
	}
	if err != nil {
		return err
	}
	if w := a.order.work; w != nil {
		for _, s := range w.Secrets(r, root, values) {
			if err := createObject(e.calls, way, cluster.Secrets, s, func(there *corev1.Secret) bool { return isOwner(root, there) }); err != nil {
				return err
			}
		}
		return nil
	}
	return createObject(e.calls, way, cluster.Secrets, r.Secrets(root, values), func(there *corev1.Secret) bool { return isOwner(root, there) })
}

// dropSecrets forgets the values of an attempt: the cluster has them, or the attempt has ended.
func (e *Engine) dropSecrets(ref engine.Ref) {
	if err := e.secrets.Drop(ref); err != nil {
		e.cfg.Log.Warn("the secrets of an attempt are not removed, trying again at the next start", "attempt", ref.String(), "error", err)
	}
}

// needSecrets are the attempts whose values the cluster does not have yet.
func (e *Engine) needSecrets() (out []engine.Ref) {
	for ref, a := range e.attempts {
		if !a.ended && a.made == nil {
			out = append(out, ref)
		}
	}
	return out
}
