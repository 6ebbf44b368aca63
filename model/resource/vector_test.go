package resource_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// vector draws a vector with some of three named resources.
func vector(label string) *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		small := rapid.Int64Range(0, 20)
		v := resource.Vector{
			CPU:    resource.Amount(small.Draw(t, label+" cpu")),
			Memory: resource.Amount(small.Draw(t, label+" memory")),
			Disk:   resource.Amount(small.Draw(t, label+" disk")),
		}
		for _, name := range []string{"c", "a", "b"} {
			v = v.With(name, resource.Amount(rapid.Int64Range(0, 3).Draw(t, label+" "+name)))
		}
		return v
	})
}

// amounts is the vector as a map, the dumb form that the laws are checked against.
func amounts(v resource.Vector) map[string]resource.Amount {
	m := map[string]resource.Amount{"cpu": v.CPU, "memory": v.Memory, "disk": v.Disk}
	for _, x := range v.Named {
		m[x.Name] = x.Amount
	}
	for name, a := range m {
		if a == 0 {
			delete(m, name)
		}
	}
	return m
}

func combine(a, b map[string]resource.Amount, op func(a, b resource.Amount) resource.Amount) map[string]resource.Amount {
	out := map[string]resource.Amount{}
	for _, m := range []map[string]resource.Amount{a, b} {
		for name := range m {
			if x := op(a[name], b[name]); x != 0 {
				out[name] = x
			}
		}
	}
	return out
}

// TestVectorsAreMaps: every operation does to a vector what it does to a map of
// amounts, and leaves names sorted and its operands alone. Seen to fail with combine
// that does not subtract names of the second vector alone.
func TestVectorsAreMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := vector("v").Draw(t, "v"), vector("w").Draw(t, "w")
		n := rapid.IntRange(0, 5).Draw(t, "n")
		a, b := amounts(v), amounts(w)
		same(t, "sum", amounts(v.Add(w)), combine(a, b, resource.Amount.Add))
		same(t, "difference", amounts(v.Sub(w)), combine(a, b, resource.Amount.Sub))
		same(t, "multiple", amounts(v.Scale(n)), combine(a, a, func(x, _ resource.Amount) resource.Amount { return x.Mul(n) }))
		same(t, "v after all that", amounts(v), a)
		for _, x := range []resource.Vector{v.Add(w), v.Sub(w), v.Scale(n)} {
			if !slices.IsSortedFunc(x.Named, func(p, q resource.Named) int { return strings.Compare(p.Name, q.Name) }) {
				t.Errorf("names are not sorted: %v", x)
			}
		}
		if back := v.Add(w).Sub(w); !back.Covers(v) || !v.Covers(back) {
			t.Errorf("%v + %v - %v = %v", v, w, w, back)
		}
		if zero := v.Sub(v); !zero.IsZero() {
			t.Errorf("%v less itself is %v", v, zero)
		}
		covers(t, v, w, a, b)
	})
}

func covers(t *rapid.T, v, w resource.Vector, a, b map[string]resource.Amount) {
	short := map[string]resource.Amount{}
	for name, need := range b {
		if need > a[name] {
			short[name] = need - a[name]
		}
	}
	name, missing := v.Shortage(w)
	if v.Covers(w) != (len(short) == 0) || name != "" && missing != short[name] || (name == "") != (len(short) == 0) {
		t.Errorf("%v against %v: short of %d %s, want one of %v", v, w, missing, name, short)
	}
	limit := rapid.IntRange(0, 30).Draw(t, "limit")
	times := v.Times(w, limit)
	if times > limit || times < 0 || times > 0 && !v.Covers(w.Scale(times)) || times < limit && v.Covers(w.Scale(times+1)) {
		t.Errorf("%v holds %v %d times of at most %d", v, w, times, limit)
	}
}

func same(t *rapid.T, what string, got, want map[string]resource.Amount) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestShortageIsInFixedOrder(t *testing.T) {
	have := resource.Vector{}.With("a", 1)
	need := resource.Vector{CPU: 1, Memory: 2, Disk: 3}.With("b", 5).With("a", 4)
	for _, want := range []struct {
		name    string
		missing resource.Amount
	}{{"cpu", 1}, {"memory", 2}, {"disk", 3}, {"a", 3}, {"b", 5}, {"", 0}} {
		name, missing := have.Shortage(need)
		if name != want.name || missing != want.missing {
			t.Fatalf("short of %d %s, want %d %s", missing, name, want.missing, want.name)
		}
		switch name {
		case "cpu":
			have.CPU = 1
		case "memory":
			have.Memory = 2
		case "disk":
			have.Disk = 3
		default:
			have = have.With(name, need.Get(name))
		}
	}
}

func TestWithKeepsTheOriginal(t *testing.T) {
	v := resource.Vector{}.With("a", 1).With("b", 2)
	v.With("a", 9).With("b", 0).With("c", 1)
	if v.Get("a") != 1 || v.Get("b") != 2 || v.Get("c") != 0 || len(v.Named) != 2 {
		t.Errorf("a copy was changed and the original with it: %v", v)
	}
	if got := v.With("b", 0); len(got.Named) != 1 || got.Get("b") != 0 {
		t.Errorf("an amount of nothing stays in the vector: %v", got)
	}
	if got := v.With("d", 0); len(got.Named) != 2 {
		t.Errorf("an amount of nothing was put into the vector: %v", got)
	}
}

func TestDeviceRequests(t *testing.T) {
	for _, c := range []struct {
		request resource.DeviceRequest
		whole   bool
		kind    string
	}{
		{resource.DeviceRequest{Count: 1}, true, "gpu"},
		{resource.DeviceRequest{Count: 1, Share: resource.WholeDevice, Kind: "fpga"}, true, "fpga"},
		{resource.DeviceRequest{Count: 1, Share: 500}, false, "gpu"},
		{resource.DeviceRequest{Count: 1, Profile: "1g.10gb"}, false, "gpu"},
	} {
		if c.request.Whole() != c.whole || c.request.KindOf() != c.kind {
			t.Errorf("%+v: whole %v, kind %s", c.request, c.request.Whole(), c.request.KindOf())
		}
	}
	r := resource.Requirements{Devices: []resource.DeviceRequest{{Count: 2}, {Count: 3, Type: "h100"}}}
	if r.DeviceCount() != 5 || r.IsZero() || !(resource.Requirements{}).IsZero() {
		t.Errorf("%+v counts %d devices, zero %v", r, r.DeviceCount(), r.IsZero())
	}
}
