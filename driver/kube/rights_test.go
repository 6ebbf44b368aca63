package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// TestManifest: what is printed is what Rights says, in the types of the API.
func TestManifest(t *testing.T) {
	native, _ := KnownGang(Native)
	for name, terms := range map[string]settings.Terms{
		"delegated": {Pool: "k8s-a", Namespace: "cox"},
		"placed":    {Pool: "k8s-a", Namespace: "cox", Placed: true, Reserve: true, PriorityClass: "research", Paths: []settings.Path{{Prefix: "/home", Volume: settings.Volume{Kind: settings.Claim, Name: "home"}}}},
	} {
		var gang *Gang
		if !terms.Placed {
			gang = &native
		}
		docs := strings.Split(Manifest(&terms, gang, settings.Subject{Kind: "ServiceAccount", Namespace: "sys: tem", Name: "cox"}), "---\n")
		if len(docs) != 4 {
			t.Fatalf("%s: %d documents", name, len(docs))
		}
		var role rbacv1.Role
		var global rbacv1.ClusterRole
		var bind rbacv1.RoleBinding
		var globally rbacv1.ClusterRoleBinding
		for i, into := range []any{&role, &bind, &global, &globally} {
			b, err := yaml.YAMLToJSON([]byte(docs[i]))
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, docs[i])
			}
			d := json.NewDecoder(strings.NewReader(string(b)))
			d.DisallowUnknownFields()
			if err := d.Decode(into); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, docs[i])
			}
		}
		if role.Namespace != "cox" || bind.Namespace != "cox" || global.Namespace != "" || bind.RoleRef.Name != role.Name || globally.RoleRef.Name != global.Name || bind.RoleRef.Kind != "Role" || globally.RoleRef.Kind != "ClusterRole" {
			t.Errorf("%s: %+v %+v", name, bind, globally)
		}
		who := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "sys: tem", Name: "cox"}}
		if d := cmp.Diff(who, bind.Subjects) + cmp.Diff(who, globally.Subjects); d != "" {
			t.Error(d)
		}
		var want, got []string
		for _, r := range Rights(&terms, gang) {
			part := ""
			if r.Part != "" {
				part = "/" + r.Part
			}
			want = append(want, strings.Join([]string{scope(r.All), r.Resource.Group, r.Resource.Name + part, r.Name, strings.Join(r.Verbs, ",")}, " "))
		}
		for _, x := range []struct {
			all   bool
			rules []rbacv1.PolicyRule
		}{{false, role.Rules}, {true, global.Rules}} {
			for _, r := range x.rules {
				got = append(got, strings.Join([]string{scope(x.all), strings.Join(r.APIGroups, "+"), strings.Join(r.Resources, "+"), strings.Join(r.ResourceNames, "+"), strings.Join(r.Verbs, ",")}, " "))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		// What decides who may bind pods, and who may not.
		if has := slices.Contains(got, "role  pods/binding  create"); has != terms.Placed {
			t.Errorf("%s: binding %v", name, has)
		}
		if has := slices.Contains(got, "role scheduling.k8s.io podgroups  create,get"); has == terms.Placed {
			t.Errorf("%s: gangs %v", name, has)
		}
	}
}

// TestGangs: which are found, in which version, and which one is taken.
func TestGangs(t *testing.T) {
	kind := func(group, version, name string) cluster.Kind {
		return cluster.Kind{Resource: cluster.Resource{Group: group, Version: version, Name: name}}
	}
	served := cluster.Served{
		kind("kueue.x-k8s.io", "v1beta1", "workloads"), kind("kueue.x-k8s.io", "v1beta2", "workloads"),
		kind("scheduling.run.ai", "v3", "podgroups"), kind("scheduling.volcano.sh", "v1beta1", "podgroups"),
		kind("scheduling.k8s.io", "v1alpha2", "podgroups"), kind("scheduling.k8s.io", "v1beta1", "podgroups"), kind("scheduling.k8s.io", "v1", "priorityclasses"),
	}
	var got []string
	for _, g := range Gangs(served) {
		got = append(got, string(g.Kind)+" "+g.Resource.Version+" "+string(g.Ability()))
	}
	if d := cmp.Diff([]string{"native v1beta1 strict", "volcano v1beta1 strict", "kueue v1beta2 approximate"}, got); d != "" {
		t.Error(d)
	}
	if got := unknownGangs(served); !slices.Equal(got, []string{"podgroups.scheduling.run.ai v3"}) {
		t.Errorf("%q", got)
	}
	for _, x := range []struct {
		terms settings.Terms
		want  GangKind
	}{{settings.Terms{}, Native}, {settings.Terms{Gang: Volcano}, Volcano}, {settings.Terms{Gang: KAI}, ""}, {settings.Terms{Placed: true}, ""}} {
		if g, ok := Choose(&x.terms, Gangs(served)); g.Kind != x.want || ok != (x.want != "") {
			t.Errorf("%+v: %+v", x.terms, g)
		}
	}
}

func scope(all bool) string {
	if all {
		return "cluster"
	}
	return "role"
}
