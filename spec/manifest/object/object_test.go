package object

import "testing"

// TestQuantities compares amounts with what Kubernetes makes of them: rounded up.
func TestQuantities(t *testing.T) {
	for _, x := range []struct {
		text         Quantity
		value, milli int64
		ok           bool
	}{
		{"2", 2, 2000, true},
		{"500m", 1, 500, true},
		{"0.5", 1, 500, true},
		{".5", 1, 500, true},
		{"1.5Gi", 1610612736, 1610612736000, true},
		{"64Gi", 64 << 30, 64 << 30 * 1000, true},
		{"1k", 1000, 1000000, true},
		{"1K", 0, 0, false},
		{"1e3", 1000, 1000000, true},
		{"1E", 1000000000000000000, 0, false},
		{"100n", 1, 1, true},
		{"-1", -1, -1000, true},
		{"", 0, 0, false},
		{"x", 0, 0, false},
		{"1 Gi", 0, 0, false},
		{"1e999", 0, 0, false},
		{"0x10", 0, 0, false},
		{"1Ki", 1024, 1024000, true},
		{"2u", 1, 1, true},
		{"9223372036854775808", 0, 0, false},
	} {
		n, ok := x.text.Value()
		m, ok2 := x.text.Milli()
		if x.text == "1E" {
			if !ok || ok2 || n != x.value {
				t.Errorf("%s is %d %v, %d %v", x.text, n, ok, m, ok2)
			}
			continue
		}
		if ok != x.ok || ok && n != x.value || ok2 != x.ok || ok2 && m != x.milli {
			t.Errorf("%q is %d (%v), in thousandths %d (%v); want %d and %d (%v)", x.text, n, ok, m, ok2, x.value, x.milli, x.ok)
		}
	}
	if !Quantity("1e10").Valid() || Quantity("1E+").Valid() {
		t.Error("exponents")
	}
}

func TestSelectors(t *testing.T) {
	s := Selector{
		MatchLabels:      map[string]string{"app": "web"},
		MatchExpressions: []SelectorRequirement{{Key: "tier", Operator: "NotIn", Values: []string{"test"}}, {Key: "app", Operator: "Exists"}, {Key: "x", Operator: "DoesNotExist"}},
	}
	for _, x := range []struct {
		labels map[string]string
		want   bool
	}{
		{map[string]string{"app": "web"}, true},
		{map[string]string{"app": "web", "tier": "test"}, false},
		{map[string]string{"app": "db"}, false},
		{map[string]string{"app": "web", "x": ""}, false},
		{nil, false},
	} {
		if got := s.Matches(x.labels); got != x.want {
			t.Errorf("%v matches: %v", x.labels, got)
		}
	}
}
