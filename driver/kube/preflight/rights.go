package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/nodefence"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// Right is what the pool's account has to be allowed.
type Right struct {
	Resource  cluster.Resource
	Part      string // of the resource, as "binding"; empty: the resource itself
	Verbs     []string
	Name      string // of the one object that it is about; empty: all
	All       bool   // in every namespace, or of what is in none
	Namespace string // if not All
	Why       string
}

// String is the resource as kubectl has it: "pods/binding", "podgroups.scheduling.k8s.io".
func (r *Right) String() string {
	if r.Part == "" {
		return r.Resource.String()
	}
	return strings.Replace(r.Resource.String(), r.Resource.Name, r.Resource.Name+"/"+r.Part, 1)
}

// Rights are the least that a pool with these terms needs. Gang is what begins its pods
// together; nil: nothing, or Coxswain binds them.
func Rights(t *settings.Terms, begins *gang.Gang) []Right {
	var out []Right
	for _, ns := range t.Spaces() {
		out = append(out, namespaceRights(t, ns, begins)...)
	}
	kueue := begins != nil && begins.Kind == render.Kueue && !t.Placed
	if kueue {
		for _, r := range []cluster.Resource{gang.ClusterQueues, gang.Flavors} {
			out = append(out, Right{Resource: r, Verbs: []string{"get"}, All: true, Why: "what the queue knows of where nodes lie"})
		}
	}
	if kueue || len(t.Topology) > 0 && strings.HasPrefix(t.Topology[0], settings.KueueTopology) {
		out = append(out, Right{Resource: gang.TopologyResource, Verbs: []string{"list"}, All: true, Why: "where nodes lie"})
	}
	if t.Reserve {
		out = append(out, reserveRights(t)...)
	}
	for _, ns := range t.Spaces() {
		who, _ := t.ObjectCreators(ns)
		for _, w := range who {
			if r := impersonationRight(w); !slices.ContainsFunc(out, func(o Right) bool { return o.Resource == r.Resource && o.Namespace == r.Namespace && o.Name == r.Name }) {
				out = append(out, r)
			}
		}
	}
	out = append(out,
		Right{Resource: cluster.Nodes, Verbs: []string{"list"}, All: true, Why: "what there is"},
		Right{Resource: cluster.Pods, Verbs: []string{"list"}, All: true, Why: "what others hold of the nodes"},
	)
	for _, ns := range t.RequiredNamespaces() {
		out = append(out, Right{Resource: cluster.Namespaces, Verbs: []string{"get"}, Name: ns, All: true, Why: "which pods the namespace takes"})
	}
	out = append(out, Right{Resource: dra.Slices, Verbs: []string{"list"}, All: true, Why: "devices with attributes"})
	out = append(out, deviceRights(t)...)
	out = append(out, volumeRights(t)...)
	if t.Handover {
		for _, r := range handoverRights() {
			if !slices.ContainsFunc(out, func(o Right) bool {
				return o.All && r.All && o.Resource == r.Resource && o.Part == "" && o.Name == "" && slices.Equal(o.Verbs, r.Verbs)
			}) {
				out = append(out, r)
			}
		}
	}
	if t.PriorityClass != "" {
		out = append(out, Right{Resource: cluster.PriorityClasses, Verbs: []string{"get"}, Name: t.PriorityClass, All: true, Why: "the priority class of the pool's pods"})
	}
	return out
}

// namespaceRights are those in a namespace of jobs. To create is needed where somebody's jobs are made
// as the pool's own account.
func namespaceRights(t *settings.Terms, ns string, begins *gang.Gang) []Right {
	_, own := t.ObjectCreators(ns)
	verbs := func(all ...string) []string {
		if own {
			return all
		}
		return slices.DeleteFunc(all, func(v string) bool { return v == "create" })
	}
	out := []Right{
		{Resource: cluster.Pods, Verbs: verbs("create", "delete", "get", "list", "patch", "watch"), Why: "jobs run in pods"},
		{Resource: cluster.Pods, Part: "log", Verbs: []string{"get"}, Why: "what jobs print"},
		{Resource: cluster.Pods, Part: "exec", Verbs: []string{"create", "get"}, Why: "signals, and commands beside a job"},
		{Resource: cluster.Secrets, Verbs: verbs("create", "delete", "get", "list"), Why: "each attempt's script and certificates"},
		{Resource: cluster.Services, Verbs: verbs("create", "get", "patch"), Why: "names by which an attempt's pods find each other, and clients find services"}, // the root's end is theirs
		{Resource: cluster.ConfigMaps, Verbs: verbs("create", "get"), Why: "ConfigMaps of manifests"},                                                            // the root's end is theirs
		{Resource: cluster.ResourceQuotas, Verbs: []string{"list", "watch"}, Why: "what the namespace may use"},
		{Resource: cluster.LimitRanges, Verbs: []string{"list", "watch"}, Why: "what each pod of the namespace may use"},
	}
	if t.Placed {
		out = append(out, Right{Resource: cluster.Pods, Part: "binding", Verbs: []string{"create"}, Why: "pods are given to the nodes that were chosen"})
	} else if begins != nil {
		r := gangRight(*begins)
		r.Verbs = verbs(r.Verbs...)
		out = append(out, r)
		if begins.Kind == render.Kueue {
			out = append(out, Right{Resource: gang.LocalQueues, Verbs: []string{"get"}, Name: t.Queue, Why: "which queue is behind that of the pool"})
		}
	}
	if t.NeedsProvisioning() {
		out = append(out, Right{Resource: cluster.PersistentVolumeClaims, Verbs: []string{"get", "patch"}, Why: "the volumes of paths, and for which node they are wanted"})
	} else if slices.ContainsFunc(t.Paths, func(p settings.Path) bool { return p.Volume.Kind == settings.Claim }) {
		out = append(out, Right{Resource: cluster.PersistentVolumeClaims, Verbs: []string{"get"}, Why: "the volumes of paths"})
	}
	for _, r := range claimRights(t) {
		r.Verbs = verbs(r.Verbs...)
		out = append(out, r)
	}
	for i := range out {
		out[i].Namespace = ns
	}
	return out
}

// makerRights are what those need in a namespace as whom objects of jobs are made there.
func makerRights(ns string, gang *gang.Gang, t *settings.Terms) []Right {
	out := []Right{{Resource: cluster.Pods}, {Resource: cluster.Secrets}, {Resource: cluster.Services}, {Resource: cluster.ConfigMaps}}
	if gang != nil && !t.Placed && gang.Kind != render.Kueue { // which makes its own
		out = append(out, Right{Resource: gang.Resource})
	}
	if len(claimRights(t)) > 0 {
		out = append(out, Right{Resource: dra.Claims})
	}
	for i := range out {
		out[i].Verbs, out[i].Namespace, out[i].Why = []string{"create"}, ns, "jobs are made in this name"
	}
	return out
}

// Manifest is the roles and their bindings for kubectl apply -f -: a Role for each namespace in
// which who has rights, a ClusterRole, and a Role for those in whose names jobs are made.
func Manifest(t *settings.Terms, gang *gang.Gang, who settings.Subject) string {
	name := "coxswain-" + t.Pool
	all := Rights(t, gang)
	in := map[string][]Right{} // by namespace; empty: in none
	for _, r := range all {
		in[r.Namespace] = append(in[r.Namespace], r)
	}
	var docs []string
	for _, ns := range slices.Sorted(maps.Keys(in)) {
		if ns != "" {
			docs = append(docs, roleManifest(name, ns, in[ns], who))
		}
	}
	docs = append(docs, roleManifest(name, "", in[""], who))
	for _, ns := range t.Spaces() {
		if makers, _ := t.ObjectCreators(ns); len(makers) > 0 {
			docs = append(docs, roleManifest(name+"-jobs", ns, makerRights(ns, gang, t), makers...))
		}
	}
	return strings.Join(docs, "---\n")
}

// roleManifest is a role and its binding; of no namespace: for the whole cluster.
func roleManifest(name, ns string, rights []Right, who ...settings.Subject) string {
	var b strings.Builder
	kind, meta := "ClusterRole", "  name: "+yamlQuote(name)
	if ns != "" {
		kind, meta = "Role", meta+"\n  namespace: "+yamlQuote(ns)
	}
	fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n%s\nrules:\n", kind, meta)
	for i := range rights {
		writeRule(&b, &rights[i])
	}
	fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata:\n%s\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\nsubjects:\n", kind, meta, kind, yamlQuote(name))
	for _, w := range who {
		fmt.Fprintf(&b, "  - kind: %s\n    name: %s\n", w.Kind, yamlQuote(w.Name))
		if w.Kind == "ServiceAccount" {
			fmt.Fprintf(&b, "    namespace: %s\n", yamlQuote(w.Namespace))
		} else {
			b.WriteString("    apiGroup: rbac.authorization.k8s.io\n")
		}
	}
	return b.String()
}

func writeRule(b *strings.Builder, r *Right) {
	resource := r.Resource.Name
	if r.Part != "" {
		resource += "/" + r.Part
	}
	fmt.Fprintf(b, "  - apiGroups: [%s] # %s\n    resources: [%s]\n", yamlQuote(r.Resource.Group), r.Why, yamlQuote(resource))
	if r.Name != "" {
		fmt.Fprintf(b, "    resourceNames: [%s]\n", yamlQuote(r.Name))
	}
	var verbs []string
	for _, v := range r.Verbs {
		verbs = append(verbs, yamlQuote(v))
	}
	fmt.Fprintf(b, "    verbs: [%s]\n", strings.Join(verbs, ", "))
}

// yamlQuote is a text of YAML whatever is in it.
func yamlQuote(s string) string { return fmt.Sprintf("%q", s) }

// missingRights asks for each verb whether the pool's account may do it, and returns those that it
// may not, by the right.
func missingRights(has func(verb string, r *Right) (bool, error), all []Right) (map[int][]string, error) {
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

// impersonationRight is what each of these is to the rights: a resource of which one object is named.
func impersonationRight(s settings.Subject) Right {
	r := Right{Resource: cluster.Users, Verbs: []string{"impersonate"}, Name: s.Name, All: true, Why: "jobs are made as this user"}
	if s.Kind == "ServiceAccount" {
		r.Resource, r.Namespace, r.All, r.Why = cluster.ServiceAccounts, s.Namespace, false, "jobs are made as this service account"
	}
	return r
}

// gangRight is what a pool has to be allowed that uses the gang.
func gangRight(g gang.Gang) Right {
	r := Right{Resource: g.Resource, Verbs: []string{"create", "get"}, Why: "pods that begin together"}
	switch g.Kind {
	case render.Volcano, render.KAI:
		r.Verbs = []string{"create", "get", "list", "watch"} // they say why a gang waits
	case render.Kueue: // which makes them itself
		r.Verbs = []string{"delete", "get", "list", "watch"}
	}
	return r
}

// deviceRights are what the classes of the settings take in the whole cluster.
func deviceRights(t *settings.Terms) (out []Right) {
	for _, c := range t.Classes {
		out = append(out, Right{Resource: dra.Classes, Verbs: []string{"get"}, Name: c, All: true, Why: "which devices are the pool's GPUs"})
	}
	if len(t.Classes) > 0 {
		out = append(out, Right{Resource: dra.Claims, Verbs: []string{"list"}, All: true, Why: "which devices others have"})
	}
	if len(t.Classes) > 0 && t.Placed {
		out = append(out, Right{Resource: dra.Claims, Part: "binding", Verbs: []string{"patch"}, All: true, Why: "claims are given the devices that were chosen, from Kubernetes 1.36 on"})
	}
	return out
}

// claimRights are what they take in a namespace of jobs.
func claimRights(t *settings.Terms) []Right {
	if len(t.Classes) == 0 {
		return nil
	}
	out := []Right{
		{Resource: dra.Claims, Verbs: []string{"create", "get"}, Why: "pods claim their devices"},
		{Resource: cluster.Events, Verbs: []string{"list"}, Why: "why a kubelet cannot prepare devices"},
	}
	if t.Placed {
		out = append(out, Right{Resource: dra.Claims, Part: "status", Verbs: []string{"patch"}, Why: "claims are given the devices that were chosen"})
	}
	return out
}

// reserveRights are what keeping nodes needs. The policy is an administrator's: who may write
// policies can refuse whatever anybody asks of the cluster.
func reserveRights(t *settings.Terms) []Right {
	return []Right{
		{Resource: cluster.ConfigMaps, Verbs: []string{"create"}, Namespace: t.Namespace, Why: "the list of the nodes that are kept for the pool"},
		{Resource: cluster.ConfigMaps, Verbs: []string{"get", "patch", "delete"}, Name: t.ReserveName(), Namespace: t.Namespace, Why: "the list of the nodes that are kept for the pool"},
		{Resource: cluster.Nodes, Verbs: []string{"patch"}, All: true, Why: "the taint by which nodes are kept for the pool"},
		{Resource: cluster.AdmissionPolicies, Verbs: []string{"get"}, Name: t.ReserveName(), All: true, Why: "whether others are kept off these nodes"},
		{Resource: cluster.AdmissionPolicyBindings, Verbs: []string{"get"}, Name: t.ReserveName(), All: true, Why: "whether others are kept off these nodes"},
	}
}

// handoverRights are what closing nodes and looking at them needs, beside the lists that every pool makes.
func handoverRights() []Right {
	return []Right{
		{Resource: cluster.Nodes, Verbs: []string{"patch"}, All: true, Why: "the taints that close nodes whose machines change pools"},
		{Resource: cluster.Pods, Verbs: []string{"patch"}, All: true, Why: "the toleration with which pods that run go on there"},
		{Resource: nodefence.Leases, Verbs: []string{"get"}, Namespace: nodefence.LeaseNamespace, Why: "whether the kubelets of such nodes answer"},
		{Resource: dra.Claims, Verbs: []string{"list"}, All: true, Why: "whether devices of such nodes are claimed"},
	}
}

// volumeRights are what has to be read for them. Without, jobs are placed as if every node could have
// every volume.
func volumeRights(t *settings.Terms) (out []Right) {
	of := func(k settings.VolumeKind) bool {
		return t.Placed && slices.ContainsFunc(t.Paths, func(p settings.Path) bool { return p.Volume.Kind == k })
	}
	if of(settings.Claim) {
		out = append(out, Right{Resource: cluster.PersistentVolumes, Verbs: []string{"get"}, All: true, Why: "which nodes can have the volumes of paths; without, jobs may be placed where they cannot be had"})
	}
	if of(settings.Claim) || of(settings.Fresh) {
		out = append(out, Right{Resource: cluster.StorageClasses, Verbs: []string{"list"}, All: true, Why: "which nodes can have the volumes that classes make; without, jobs may be placed where they cannot be had"})
	}
	return out
}
