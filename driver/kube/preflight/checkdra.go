package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// deviceChooser says who picks the devices of a pod, of which so many are claimed and so many counted.
func deviceChooser(t *settings.Terms, claimed, counted int) string {
	who := "Coxswain"
	if !t.Placed {
		who = "the cluster's scheduler"
	}
	switch {
	case claimed == 0:
		return "which ones a pod has, its kubelet picks"
	case counted == 0:
		return "which ones a pod has, " + who + " picks (DRA)"
	}
	return fmt.Sprintf("which ones a pod has, %s picks of %d of them (DRA), and its kubelet of %d", who, claimed, counted)
}

// checkDRADevices is what drivers of DRA have, and why not all of it is offered.
func (l *scan) checkDRADevices(ctx context.Context, all []inventory.Machine) {
	if len(l.terms.Classes) == 0 {
		l.checkUnusedDRA(ctx)
		return
	}
	l.checkGangClaims()
	wrong, not := l.inventory.Unoffered()
	for _, err := range wrong {
		l.addFinding(withAttributes, engine.Missing, fault.Remedy(err), "%v", err)
	}
	if not == nil {
		not = map[string]int{}
	}
	by, double := map[string]int{}, map[string]int{}
	for i := range all {
		for _, p := range all[i].Pieces {
			by[p.Driver+" (DeviceClass "+p.Class+")"]++
		}
		if d := all[i].Double; d != "" {
			double[d]++
		}
		for why, n := range all[i].Withheld {
			not[why] += n
		}
	}
	for _, d := range slices.Sorted(maps.Keys(by)) {
		l.addFinding(withAttributes, engine.Found, "", "%d of %s", by[d], d)
	}
	for _, why := range slices.Sorted(maps.Keys(not)) {
		l.addFinding(withAttributes, engine.Warning, "kubectl get resourceslices -o yaml", "%d devices are not offered: %s", not[why], why)
	}
	for _, what := range slices.Sorted(maps.Keys(double)) {
		l.addFinding(withAttributes, engine.Warning, "let one of them have these nodes: the vendor's DRA driver or its device plugin", "on %d nodes %s", double[what], what)
	}
	if len(by)+len(not)+len(wrong) == 0 {
		l.addFinding(withAttributes, engine.Warning, "kubectl get resourceslices shows what drivers have published; install the vendor's DRA driver, or leave device_class", "the classes of device_class have none on a node of the pool")
	}
}

const withAttributes = "devices with attributes"

// checkUnusedDRA are devices of DRA where the settings name no class of them.
func (l *scan) checkUnusedDRA(ctx context.Context) {
	k, ok := l.served.Find(dra.Slices.Group, dra.Slices.Name, "v1")
	if !ok {
		return
	}
	drivers := map[string]int{}
	if _, err := cluster.List(ctx, l.cluster, k.Resource, cluster.Selection{}, func(s *resourcev1.ResourceSlice) error {
		drivers[s.Spec.Driver] += len(s.Spec.Devices)
		return nil
	}); err != nil {
		l.addFailure(withAttributes, err)
		return
	}
	for _, d := range slices.Sorted(maps.Keys(drivers)) {
		l.addFinding(withAttributes, engine.Warning, `kubectl get deviceclasses, and --set 'device_class=["CLASS"]' with the one of the driver's GPUs`, "%d of %s (DRA): they are seen, and not used, as device_class names no class of them", drivers[d], d)
	}
}

// checkGangClaims says what becomes of claims of devices (DRA) where a gang begins the pods together.
// Kubernetes' own scheduler gives claims devices before it binds their pods, and so does one that is
// built from it, as coscheduling's. Volcano does so only if its configuration says it, which it tells
// nobody. Kueue admits no pod that names a claim.
func (l *scan) checkGangClaims() {
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
