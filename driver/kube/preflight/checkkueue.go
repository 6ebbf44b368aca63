package preflight

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// kueueQueues looks at the pool's queue in each namespace of jobs.
func (l *scan) kueueQueues(ctx context.Context) {
	all := l.terms.Spaces()
	for _, ns := range all {
		queue := l.terms.Queue
		if len(all) > 1 {
			queue = ns + "/" + queue
		}
		l.kueueQueue(ctx, ns, queue)
	}
}

// kueueQueue is what the queue in a namespace knows of where nodes lie. By a flavor that has a
// Topology Kueue chooses the nodes too, so that a job begins where there is room for all of it.
func (l *scan) kueueQueue(ctx context.Context, ns, queue string) {
	const what = "queue"
	has, without, err := gang.QueueTopology(ctx, l.cluster, l.served, ns, l.terms.Queue)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		l.addFinding(what, engine.Missing, "kubectl apply a LocalQueue "+l.terms.Queue+" in namespace "+ns+", of a ClusterQueue that is there", "nothing begins by %s: %v", queue, err)
		return
	}
	if err != nil {
		l.addFailure(what, err)
		return
	}
	mend := "give its ResourceFlavor a topologyName and nodeLabels: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling"
	within := l.terms.Within.Label
	for _, f := range slices.Sorted(maps.Keys(has)) {
		switch k := has[f]; {
		case k == nil:
			l.addFinding(what, engine.Missing, "make the Topology, or change topologyName of the flavor", "flavor %s of %s goes by a Topology that is not there: nothing begins", f, queue)
		case within != "" && !slices.Contains(k.LevelLabels(), within):
			l.addFinding(what, engine.Missing, "set within to one of them", "flavor %s of %s goes by Topology %s, of which %s is no level: those are %s", f, queue, k.Name, within, strings.Join(k.LevelLabels(), ", "))
		default:
			l.addFinding(what, engine.Found, "", "flavor %s of %s goes by Topology %s: %s", f, queue, k.Name, strings.Join(k.LevelLabels(), ", "))
		}
	}
	slices.Sort(without)
	for _, f := range without {
		if within != "" && len(has) == 0 {
			l.addFinding(what, engine.Missing, mend, "flavor %s of %s has no Topology, and the setting within wants one: no job of several nodes begins", f, queue)
			continue
		}
		l.addFinding(what, engine.Warning, mend, "flavor %s of %s has no Topology: where nodes lie, and whether one has room, Kueue does not go by", f, queue)
	}
}
