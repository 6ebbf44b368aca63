package kube

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// This file is about what those who begin pods together make of claims of devices (DRA). Kubernetes'
// own scheduler gives claims devices before it binds their pods, and so does one that is built from
// it, as coscheduling's. Volcano does so if its configuration says it, which it tells nobody. Kueue
// lets no pod begin that names a claim.

// claimsOfGang is what becomes of claims by what begins the pods of a job together.
func (l *scan) claimsOfGang() {
	g, ok := gang.Choose(&l.terms, l.gangs)
	if !ok {
		return
	}
	switch g.Kind {
	case render.Kueue:
		l.addFinding(withAttributes, engine.Missing, "take device_class from the settings, so that GPUs are counted; or --placed; or another gang", "jobs that ask for devices are refused: Kueue, by which pods begin here, admits none that has a ResourceClaim")
	case render.Volcano:
		l.addFinding(withAttributes, engine.Warning, "kubectl get configmap --namespace volcano-system volcano-scheduler-configmap -o yaml, or where that is; cox verify "+l.terms.Pool+" with GPUs shows it", "Volcano gives claims devices only with %s; without it a pod has a node and no devices, and its job fails", gang.VolcanoClaimSetting)
	case render.KAI:
		l.addFinding(withAttributes, engine.Warning, "cox verify "+l.terms.Pool+" with GPUs shows it", "whether KAI gives claims devices was not tried")
	}
}

// missingClaimDevices says of a pod that has a node that its claim has no devices; empty: it has them, or
// nobody can say. Who gives devices does so before it binds, so that none come later.
func (e *Engine) missingClaimDevices(a *attempt, p *corev1.Pod) (string, error) {
	if e.cfg.Terms.Placed {
		return "", nil
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	var c resourcev1.ResourceClaim
	switch err := e.k.Get(ctx, dra.Claims, p.Namespace, p.Name, &c); {
	case fault.KindOf(err) == fault.NotFound && err != nil, fault.KindOf(err) == fault.Permission:
		return "", nil
	case err != nil:
		return "", err
	case c.Status.Allocation != nil:
		return "", nil
	}
	why := "its plugin DynamicResources has to be on"
	who := "the scheduler " + cmp.Or(e.cfg.Terms.Scheduler, "of the cluster")
	if a.order.gangKind() == render.Volcano {
		who, why = "Volcano", "it takes "+gang.VolcanoClaimSetting
	}
	return fmt.Sprintf("pod %s on %s: %s has given it a node, and its ResourceClaim no devices: %s", p.Name, p.Spec.NodeName, who, why), nil
}
