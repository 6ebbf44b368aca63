package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
)

func TestDiff(t *testing.T) {
	parse := func(text string) *account.Policy {
		t.Helper()
		p, err := Parse("q", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := parse(`
compat: slurm
priority: {age: 100}
flavors: [a, b]
accounts:
  - {name: lab, limits: {group: {gpu: 8, cpu: 4}, wall: 2d}, users: [anna, {name: ben, shares: 2}]}
  - name: old
  - name: q
    quota: {flavors: [{flavor: a, resources: [{name: gpu, nominal: 1}]}, {flavor: b, resources: [{name: gpu, nominal: 2}]}]}
qos: [{name: high, priority: 5}]
`)
	after := parse(`
placement: learned
flavors: [a, b]
accounts:
  - {name: lab, limits: {group: {gpu: 16, memory: 1TiB}, wall: 2d}, users: [anna, {name: ben, shares: none}, carla]}
  - {name: new, parent: lab, users: [dora]}
  - name: q
    quota: {flavors: [{flavor: b, resources: [{name: gpu, nominal: 2}]}, {flavor: a, resources: [{name: gpu, nominal: 1, lend: 0}]}]}
qos: [{name: high, priority: 5}]
backfill: {reservations: 4}
`)
	var got strings.Builder
	for _, c := range Diff(before, after) {
		got.WriteString(c.String() + "\n  " + strings.Join(c.Lines, "\n  ") + "\n")
	}
	const want = `priority is removed
  - age: 100
backfill is added
  + reservations: 4
account lab is changed
  + limits.group.memory: 1TiB
  - limits.group.gpu: 8
  + limits.group.gpu: 16
  - users ben.shares: 2
  + users ben.shares: none
  + users carla
  - limits.group.cpu: 4
account new is added
  + parent: lab
  + users dora
account q is changed
  + quota.flavors a.resources gpu.lend: 0
  - quota.flavors in order: a, b
  + quota.flavors in order: b, a
account old is removed
  
compat is removed
  - compat: slurm
placement is added
  + placement: learned
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Error(d)
	}
	if s := Summary(Diff(before, after)); s != "3 added, 2 changed, 3 removed" {
		t.Error(s)
	}
	if d := Diff(before, before); len(d) != 0 || Summary(d) != "nothing changes" {
		t.Error(d)
	}
	swapped := *before
	swapped.Accounts = []account.Account{before.Accounts[1], before.Accounts[0], before.Accounts[2]}
	if d := Diff(before, &swapped); len(d) != 1 || d[0].String() != "the order of entries is changed" {
		t.Error(d)
	}
}

// TestDiffMissesNothing: equal policies have no differences, unlike ones have some.
func TestDiffMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPolicy().Draw(t, "a"), anyPolicy().Draw(t, "b")
		unlike(reflect.ValueOf(a).Elem())
		unlike(reflect.ValueOf(b).Elem())
		same := string(Write(a)) == string(Write(b))
		if got := len(Diff(a, b)) == 0; got != same {
			t.Fatalf("%v\n%s\n%s", Diff(a, b), Write(a), Write(b))
		}
		if d := Diff(a, a); len(d) > 0 {
			t.Fatal(d)
		}
	})
}

// unlike gives the entries of every list names of their own, as a policy that is in
// force has them.
func unlike(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			unlike(v.Elem())
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			unlike(v.Field(f.index))
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Struct {
				v.Index(i).Field(0).SetString(fmt.Sprint("n", i))
				unlike(v.Index(i))
			}
		}
	}
}
