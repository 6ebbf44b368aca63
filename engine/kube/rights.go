package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/fault"
)

// Right is what the pool's account has to be allowed.
type Right struct {
	Resource cluster.Resource
	Part     string // of the resource, as "binding"; empty: the resource itself
	Verbs    []string
	Name     string // of the one object that it is about; empty: all
	All      bool   // in every namespace, or of what is in none; else in the pool's
	Why      string
}

// String is the resource as kubectl has it: "pods/binding", "podgroups.scheduling.k8s.io".
func (r *Right) String() string {
	if r.Part == "" {
		return r.Resource.String()
	}
	return strings.Replace(r.Resource.String(), r.Resource.Name, r.Resource.Name+"/"+r.Part, 1)
}

// Resources that are looked at.
var (
	quotas     = cluster.Resource{Version: "v1", Name: "resourcequotas"}
	ranges     = cluster.Resource{Version: "v1", Name: "limitranges"}
	claims     = cluster.Resource{Version: "v1", Name: "persistentvolumeclaims"}
	priorities = cluster.Resource{Group: "scheduling.k8s.io", Version: "v1", Name: "priorityclasses", Global: true}
	slicesDRA  = cluster.Resource{Group: "resource.k8s.io", Version: "v1", Name: "resourceslices", Global: true}
)

// Rights are the least that a pool with these terms needs. Gang is what begins its pods
// together; nil: nothing, or Coxswain binds them.
func Rights(t *Terms, gang *Gang) []Right {
	out := []Right{
		{Resource: cluster.Pods, Verbs: []string{"create", "delete", "get", "list", "patch", "watch"}, Why: "jobs run in pods"},
		{Resource: cluster.Pods, Part: "log", Verbs: []string{"get"}, Why: "what jobs print"},
		{Resource: cluster.Pods, Part: "exec", Verbs: []string{"create", "get"}, Why: "signals, and commands beside a job"},
		{Resource: cluster.Secrets, Verbs: []string{"create", "delete", "get", "list"}, Why: "each attempt's script and certificates"},
		{Resource: cluster.Services, Verbs: []string{"create", "get"}, Why: "names by which an attempt's pods find each other"}, // the root's end is theirs
		{Resource: quotas, Verbs: []string{"list", "watch"}, Why: "what the namespace may use"},
		{Resource: ranges, Verbs: []string{"list", "watch"}, Why: "what each pod of the namespace may use"},
	}
	if t.Placed {
		out = append(out, Right{Resource: cluster.Pods, Part: "binding", Verbs: []string{"create"}, Why: "pods are given to the nodes that were chosen"})
	} else if gang != nil {
		out = append(out, gang.right())
	}
	if slices.ContainsFunc(t.Paths, func(p Path) bool { return p.Volume.Kind == Claim }) {
		out = append(out, Right{Resource: claims, Verbs: []string{"get"}, Why: "the volumes of paths"})
	}
	out = append(out,
		Right{Resource: cluster.Nodes, Verbs: []string{"list"}, All: true, Why: "what there is"},
		Right{Resource: cluster.Pods, Verbs: []string{"list"}, All: true, Why: "what others hold of the nodes"},
		Right{Resource: cluster.Namespaces, Verbs: []string{"get"}, Name: t.Namespace, All: true, Why: "which pods the namespace takes"},
		Right{Resource: slicesDRA, Verbs: []string{"list"}, All: true, Why: "devices with attributes"},
	)
	if t.Reserve {
		out = append(out, t.reserveRights()...)
	}
	if t.PriorityClass != "" {
		out = append(out, Right{Resource: priorities, Verbs: []string{"get"}, Name: t.PriorityClass, All: true, Why: "the priority class of the pool's pods"})
	}
	return out
}

// Subject is who has rights.
type Subject struct{ Kind, Namespace, Name string }

// ParseSubject reads "user:NAME", "group:NAME", "serviceaccount:NAMESPACE:NAME".
func ParseSubject(text string) (Subject, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case name == "":
	case kind == "user":
		if ns, account, ok := strings.Cut(strings.TrimPrefix(name, "system:serviceaccount:"), ":"); ok && strings.HasPrefix(name, "system:serviceaccount:") {
			return Subject{"ServiceAccount", ns, account}, nil
		}
		return Subject{Kind: "User", Name: name}, nil
	case kind == "group":
		return Subject{Kind: "Group", Name: name}, nil
	case kind == "serviceaccount":
		if ns, account, ok := strings.Cut(name, ":"); ok && ns != "" && account != "" {
			return Subject{"ServiceAccount", ns, account}, nil
		}
	}
	return Subject{}, fault.New(fault.Invalid, "%.70q names nobody who could have rights", text).Advise("write user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME")
}

// Manifest is the roles and their bindings for kubectl apply -f -.
func Manifest(t *Terms, gang *Gang, who Subject) string {
	name := "coxswain-" + t.Pool
	var b strings.Builder
	all := Rights(t, gang)
	for _, x := range []struct {
		kind, where string
		global      bool
	}{{"Role", t.Namespace, false}, {"ClusterRole", "", true}} {
		meta := "  name: " + quote(name)
		if x.where != "" {
			meta += "\n  namespace: " + quote(x.where)
		}
		fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n%s\nrules:\n", x.kind, meta)
		for i := range all {
			if all[i].All == x.global {
				rule(&b, &all[i])
			}
		}
		fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata:\n%s\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\nsubjects:\n  - kind: %s\n    name: %s\n", x.kind, meta, x.kind, quote(name), who.Kind, quote(who.Name))
		if who.Kind == "ServiceAccount" {
			fmt.Fprintf(&b, "    namespace: %s\n", quote(who.Namespace))
		} else {
			b.WriteString("    apiGroup: rbac.authorization.k8s.io\n")
		}
		if !x.global {
			b.WriteString("---\n")
		}
	}
	return b.String()
}

func rule(b *strings.Builder, r *Right) {
	resource := r.Resource.Name
	if r.Part != "" {
		resource += "/" + r.Part
	}
	fmt.Fprintf(b, "  - apiGroups: [%s] # %s\n    resources: [%s]\n", quote(r.Resource.Group), r.Why, quote(resource))
	if r.Name != "" {
		fmt.Fprintf(b, "    resourceNames: [%s]\n", quote(r.Name))
	}
	var verbs []string
	for _, v := range r.Verbs {
		verbs = append(verbs, quote(v))
	}
	fmt.Fprintf(b, "    verbs: [%s]\n", strings.Join(verbs, ", "))
}

// quote is a text of YAML whatever is in it.
func quote(s string) string { return fmt.Sprintf("%q", s) }

// lacking asks for each verb whether the pool's account may do it, and returns those that it
// may not, by the right.
func lacking(has func(verb string, r *Right) (bool, error), all []Right) (map[int][]string, error) {
	out := map[int][]string{}
	for i := range all {
		for _, v := range all[i].Verbs {
			ok, err := has(v, &all[i])
			if err != nil {
				return nil, err
			}
			if !ok {
				out[i] = append(out[i], v)
			}
		}
	}
	return out, nil
}

func sortedKeys(m map[int][]string) []int { return slices.Sorted(maps.Keys(m)) }
