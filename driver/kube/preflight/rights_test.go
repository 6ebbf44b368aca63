package preflight

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// TestManifest: what is printed is what Rights says, in the types of the API.
func TestManifest(t *testing.T) {
	native, _ := gang.OfKind(render.Native)
	for name, terms := range map[string]settings.Terms{
		"delegated": {Pool: "k8s-a", Namespace: "cox"},
		"placed":    {Pool: "k8s-a", Namespace: "cox", Placed: true, Reserve: true, PriorityClass: "research", Paths: []settings.Path{{Prefix: "/home", Volume: settings.Volume{Kind: settings.Claim, Name: "home"}}}},
	} {
		var gang *gang.Gang
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

func scope(all bool) string {
	if all {
		return "cluster"
	}
	return "role"
}

// TestRightsOfAccounts: each namespace has its role; what is made in others' names is theirs to
// make, and the pool's account may be these and nobody else.
func TestRightsOfAccounts(t *testing.T) {
	terms := settings.Terms{
		Pool: "k8s-a", Namespace: "base", Placed: true, OnlyNamed: true, Namespaces: map[string]string{"nlp": "team-nlp", "law": "team-law"},
		Impersonate: map[string]settings.Subject{"nlp": {Kind: "ServiceAccount", Name: "runner"}, "user:ada": {Kind: "User", Name: "ada@site"}},
	}
	var got []string
	for _, r := range Rights(&terms, nil) {
		if slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "create" || v == "impersonate" }) || r.Resource.Name == "namespaces" {
			got = append(got, strings.TrimSpace(r.Namespace+" "+r.String()+" "+r.Name)+" "+strings.Join(r.Verbs, ","))
		}
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{
		"namespaces team-law get", "namespaces team-nlp get",
		"team-law configmaps create,get", "team-law pods create,delete,get,list,patch,watch", "team-law pods/binding create", "team-law pods/exec create,get", "team-law secrets create,delete,get,list", "team-law services create,get,patch",
		"team-nlp pods/binding create", "team-nlp pods/exec create,get", "team-nlp serviceaccounts runner impersonate",
		"users ada@site impersonate",
	}, got); d != "" {
		t.Error(d)
	}
	text := Manifest(&terms, nil, settings.Subject{Kind: "User", Name: "cox"})
	for _, want := range []string{"kind: Role\nmetadata:\n  name: \"coxswain-k8s-a-jobs\"\n  namespace: \"team-law\"\n", "subjects:\n  - kind: ServiceAccount\n    name: \"runner\"\n    namespace: \"team-nlp\"\n  - kind: User\n    name: \"ada@site\"\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "---\n"); n != 9 {
		t.Errorf("%d documents", n+1)
	}
}
