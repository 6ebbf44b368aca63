package preflight

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// checkReservation is whether the nodes are kept for the pool: the taint, and the policy that keeps off
// what goes round it.
func (l *scan) checkReservation(ctx context.Context) error {
	t := &l.terms
	if !t.Placed {
		return nil
	}
	nodes := l.inventory.ReservedNodes()
	var with, without []string
	for _, n := range nodes {
		switch {
		case n.InPool && n.HasPoolTaint(t):
			with = append(with, n.Name)
		case n.InPool:
			without = append(without, n.Name)
		}
	}
	switch {
	case !t.Reserve && len(with) > 0:
		l.addFinding("kept nodes", engine.Warning, "--set reserve=true, and the policy that --print-policy prints", "%s have the pool's taint, and nothing refuses pods that bear it or name the node", hostlist.Compress(with))
		return nil
	case !t.Reserve:
		l.addFinding("kept nodes", engine.Warning, "--set reserve=true: the nodes get a taint, and a policy keeps others off", "pods of others may take a node between our look and our binding: the kubelet refuses our pods then, and the job waits again")
		return nil
	case len(nodes) > 0 && len(without) > 0:
		l.addFinding("kept nodes", engine.Found, "", "%d of %d have the pool's taint; %s get it as soon as the pool is there and they are looked at", len(with), len(with)+len(without), hostlist.Compress(without))
	case len(nodes) > 0:
		l.addFinding("kept nodes", engine.Found, "", "all %d have the pool's taint", len(with))
	}
	l.checkEarlierPods()
	return l.checkAdmissionPolicy(ctx)
}

// checkEarlierPods are pods of others on nodes that are kept.
func (l *scan) checkEarlierPods() {
	known := l.inventory.KnownNodes()
	pods, on := 0, []string{}
	for i := range known {
		if n := known[i].Others; n.Pods > n.Daemons {
			pods += n.Pods - n.Daemons
			on = append(on, known[i].Node.Name)
		}
	}
	if pods > 0 {
		l.addFinding("kept nodes", engine.Warning, "kubectl get pods --all-namespaces --field-selector spec.nodeName="+on[0],
			"%d pods of others that are no DaemonSet's are on %s: they stay, and what they hold is counted", pods, hostlist.Compress(on))
	}
}

// checkAdmissionPolicy is whether others are kept off.
func (l *scan) checkAdmissionPolicy(ctx context.Context) error {
	t := &l.terms
	if _, ok := l.served.Find(cluster.AdmissionPolicies.Group, cluster.AdmissionPolicies.Name, cluster.AdmissionPolicies.Version); !ok {
		l.addFinding("policy", engine.Missing, "upgrade the cluster to 1.30 or later, or leave reserve", "the cluster has no admission policies, by which others are kept off nodes")
		return nil
	}
	mend := l.printPolicy()
	var p admission.ValidatingAdmissionPolicy
	var b admission.ValidatingAdmissionPolicyBinding
	err := l.cluster.Get(ctx, cluster.AdmissionPolicies, "", t.ReserveName(), &p)
	if err == nil {
		err = l.cluster.Get(ctx, cluster.AdmissionPolicyBindings, "", t.ReserveName(), &b)
	}
	switch {
	case fault.KindOf(err) == fault.NotFound:
		l.addFinding("policy", engine.Missing, mend, "there is no admission policy %s with its binding: pods that name a node, are bound by others or bear the taint get onto nodes that are kept", t.ReserveName())
		return nil
	case err != nil:
		l.addFailure("policy", err)
		return nil
	}
	if !l.policyAdmitsUs(&p, &b) {
		l.addFinding("policy", engine.Warning, mend, "%s is not the one for these settings and %s: it may refuse the pool's own pods, or let others pass", t.ReserveName(), cmp.Or(l.who, "this account"))
		return nil
	}
	l.addFinding("policy", engine.Found, "", "%s keeps others off, but for DaemonSets, kube-system, and namespaces with the label %s=true", t.ReserveName(), LabelEverywhere)
	return nil
}

// policyAdmitsUs reports whether a policy and its binding are ours, and let us pass: by name, or by one of
// our groups.
func (l *scan) policyAdmitsUs(p *admission.ValidatingAdmissionPolicy, b *admission.ValidatingAdmissionPolicyBinding) bool {
	all := []settings.Subject{}
	if who, err := settings.ParseSubject(l.who); err == nil {
		all = append(all, who)
	}
	for _, g := range l.groups {
		all = append(all, settings.Subject{Kind: "Group", Name: g})
	}
	return slices.ContainsFunc(all, func(who settings.Subject) bool {
		wantP, wantB := Policy(&l.terms, who)
		return reflect.DeepEqual(p.Spec, wantP.Spec) && reflect.DeepEqual(b.Spec, wantB.Spec)
	})
}

// printPolicy is the command of an administrator that keeps others off.
func (l *scan) printPolicy() string {
	return strings.Join([]string{"cox pool add", l.terms.Pool, "--engine kube --namespace", l.terms.Namespace, "--set reserve=true --print-policy=" + l.quotedUser(), "| kubectl apply -f -"}, " ")
}
