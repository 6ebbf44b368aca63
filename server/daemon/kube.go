package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// openKube opens the engine of a Kubernetes cluster. The cluster need not answer; the
// kubeconfig has to be there and to be one.
func openKube(_ context.Context, name string, raw json.RawMessage, at Place) (engine.Engine, error) {
	var set kubeSettings
	if err := ReadSettings(raw, &set); err != nil {
		return nil, err
	}
	terms, err := set.readTerms(name)
	if err != nil {
		return nil, err
	}
	if set.Kubeconfig == "" && !set.Inside {
		return nil, errNoCluster()
	}
	c, err := cluster.Open(cluster.Config{Kubeconfig: set.Kubeconfig, Context: set.Context, Namespace: set.Namespace})
	if err != nil {
		return nil, err
	}
	var uploads kube.Uploads
	if at.Uploads != nil {
		uploads = at.Uploads
	}
	return kube.New(kube.Config{Root: at.Dir, Cluster: c, Terms: terms, Uploads: uploads, Log: at.Log, Trial: at.Trial})
}

func errNoCluster() error {
	return fault.New(fault.Invalid, "say which cluster: --kubeconfig FILE").
		Advise("a file that the server can read, with --context NAME if it has several; or --set inside=true if the server runs in a pod of the cluster")
}

// KubeRights is the manifest of the roles that a pool of the engine kube needs, for kubectl
// apply -f -. Who has them is said as settings.ParseSubject reads it; empty: the service account
// coxswain of the pool's namespace. Nobody is asked; of the settings those that the roles
// depend on are needed: namespace, namespaces, only_named, impersonate, placed, gang, reserve,
// priority_class, paths.
func KubeRights(pool string, raw json.RawMessage, who string) (string, error) {
	terms, subject, err := kubeFor(pool, raw, who, "the roles")
	if err != nil {
		return "", err
	}
	var begins *gang.Gang
	if g, ok := gang.OfKind(terms.Gang); ok && !terms.Placed {
		begins = &g
	}
	return preflight.Manifest(&terms, begins, subject), nil
}

// KubePolicy is the manifest of the admission policy that keeps others off the nodes of a pool
// of the engine kube, for kubectl apply -f -. Who is no other is said as in KubeRights.
func KubePolicy(pool string, raw json.RawMessage, who string) (string, error) {
	terms, subject, err := kubeFor(pool, raw, who, "the pods of the pool")
	if err != nil {
		return "", err
	}
	if !terms.Placed {
		return "", fault.New(fault.Invalid, "settings: placed: nodes are kept for pools whose nodes Coxswain chooses").Advise("leave placed")
	}
	return preflight.PolicyManifest(&terms, subject)
}

// kubeFor reads the settings of a pool, and who is meant.
func kubeFor(pool string, raw json.RawMessage, who, what string) (settings.Terms, settings.Subject, error) {
	var set kubeSettings
	if err := ReadSettings(raw, &set); err != nil {
		return settings.Terms{}, settings.Subject{}, err
	}
	terms, err := set.readTerms(pool)
	if err != nil {
		return terms, settings.Subject{}, err
	}
	if terms.Namespace == "" {
		return terms, settings.Subject{}, fault.New(fault.Invalid, "in which namespace are %s?", what).Advise("--namespace NAME")
	}
	if who == "" {
		who = "serviceaccount:" + terms.Namespace + ":coxswain"
	}
	subject, err := settings.ParseSubject(who)
	return terms, subject, err
}

// sameSite is control.Config.SameSite: settings of the engine kube say where things are, and
// how the next pods are made. Those of other kinds may all say where.
func sameSite(before, now state.PoolSpec) bool {
	var a, b kubeSettings
	if now.Engine != "kube" || ReadSettings(before.Settings, &a) != nil || ReadSettings(now.Settings, &b) != nil {
		return false
	}
	where := func(s *kubeSettings) kubeSettings {
		return kubeSettings{Kubeconfig: s.Kubeconfig, Context: s.Context, Inside: s.Inside, Namespace: s.Namespace, Gang: s.Gang}
	}
	return reflect.DeepEqual(where(&a), where(&b)) && a.isPlaced() == b.isPlaced() && maps.Equal(a.Namespaces, b.Namespaces)
}
