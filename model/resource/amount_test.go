package resource_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// amount draws small amounts, huge ones and the bounds.
func amount() *rapid.Generator[resource.Amount] {
	return rapid.Custom(func(t *rapid.T) resource.Amount {
		switch rapid.IntRange(0, 3).Draw(t, "size") {
		case 0:
			return resource.Amount(rapid.Int64Range(-10, 10).Draw(t, "small"))
		case 1:
			return rapid.SampledFrom([]resource.Amount{resource.Unlimited, -resource.Unlimited, math.MinInt64, 0, resource.TiB}).Draw(t, "bound")
		}
		return resource.Amount(rapid.Int64().Draw(t, "any"))
	})
}

// saturated is the exact result, cut to what an Amount may be.
func saturated(x *big.Int) resource.Amount {
	top := big.NewInt(int64(resource.Unlimited))
	if x.Cmp(top) > 0 {
		return resource.Unlimited
	}
	if x.Cmp(new(big.Int).Neg(top)) < 0 {
		return -resource.Unlimited
	}
	return resource.Amount(x.Int64())
}

func big64(a resource.Amount) *big.Int { return big.NewInt(int64(a)) }

// TestArithmeticSaturates compares with unbounded integers. Seen to fail with plain
// addition.
func TestArithmeticSaturates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := amount().Draw(t, "a"), amount().Draw(t, "b")
		if a < -resource.Unlimited || b < -resource.Unlimited {
			return // below the range: TestBelowTheRange
		}
		if got, want := a.Add(b), saturated(new(big.Int).Add(big64(a), big64(b))); got != want {
			t.Errorf("%d + %d = %d, want %d", a, b, got, want)
		}
		want := saturated(new(big.Int).Sub(big64(a), big64(b)))
		if a == resource.Unlimited && b != resource.Unlimited {
			want = resource.Unlimited // what is unlimited stays so
		}
		if got := a.Sub(b); got != want {
			t.Errorf("%d - %d = %d, want %d", a, b, got, want)
		}
		n := int(rapid.Int32().Draw(t, "n"))
		if got, want := a.Mul(n), saturated(new(big.Int).Mul(big64(a), big.NewInt(int64(n)))); got != want {
			t.Errorf("%d × %d = %d, want %d", a, n, got, want)
		}
		if d := resource.Amount(rapid.Int64Range(1, 1<<40).Draw(t, "d")); a < resource.Unlimited {
			q := a.DivUp(d)
			if new(big.Int).Mul(big64(q), big64(d)).Cmp(big64(a)) < 0 || new(big.Int).Mul(big64(q-1), big64(d)).Cmp(big64(a)) >= 0 {
				t.Errorf("%d / %d rounded up is %d", a, d, q)
			}
		}
	})
}

// TestBelowTheRange: an amount that no arithmetic makes, math.MinInt64, does no
// harm: it acts as the smallest one.
func TestBelowTheRange(t *testing.T) {
	const below = resource.Amount(math.MinInt64)
	for _, c := range []struct {
		what      string
		got, want resource.Amount
	}{
		{"0 - below", resource.Amount(0).Sub(below), resource.Unlimited},
		{"below + -1", below.Add(-1), -resource.Unlimited},
		{"below - 1", below.Sub(1), -resource.Unlimited},
		{"below × 2", below.Mul(2), -resource.Unlimited},
		{"below × -1", below.Mul(-1), resource.Unlimited},
		{"below × 1", below.Mul(1), -resource.Unlimited},
	} {
		if c.got != c.want {
			t.Errorf("%s = %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{resource.FormatCPU(resource.CPUs(8)), "8"},
		{resource.FormatCPU(500), "0.5"},
		{resource.FormatCPU(resource.MilliCPU), "0.001"},
		{resource.FormatBytes(0), "0 B"},
		{resource.FormatBytes(1023), "1023 B"},
		{resource.FormatBytes(512 * resource.MiB), "512 MiB"},
		{resource.FormatBytes(1536 * resource.MiB), "1.5 GiB"},
		{resource.FormatBytes(2 * resource.TiB), "2 TiB"},
		{resource.FormatBytes(resource.Unlimited), "unlimited"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
