package mig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/sim/mig"
)

func TestFind(t *testing.T) {
	for _, x := range []struct {
		kind   string
		memory int
		want   string
	}{
		{"a100", 40, "1g.5gb"},
		{"A100-SXM4-80GB", 80, "1g.10gb"},
		{"a100", 0, "1g.5gb"},
		{"nvidia_h100_80gb_hbm3", 80, "1g.10gb"},
		{"h200", 141, "1g.18gb"},
		{"b200", 179, "1g.23gb"},
	} {
		if m := mig.Find(x.kind, x.memory); m == nil || m.Profiles[0].Name != x.want {
			t.Errorf("%s with %d GB: %+v", x.kind, x.memory, m)
		}
	}
	if mig.Find("v100", 32) != nil {
		t.Error("a V100 cannot be divided")
	}
}

// TestPlace: sets that the vendor's guide shows, and sets that are not legal though
// slices would be left.
func TestPlace(t *testing.T) {
	m := mig.Find("a100", 40)
	for set, want := range map[string]string{
		"7g.40gb":                                          "[0]",
		"4g.20gb 3g.20gb":                                  "[0 4]",
		"3g.20gb 3g.20gb":                                  "[0 4]",
		"4g.20gb 2g.10gb 1g.5gb":                           "[0 4 6]",
		"3g.20gb 2g.10gb 2g.10gb":                          "[4 0 2]",
		"2g.10gb 2g.10gb 2g.10gb 1g.5gb":                   "[0 2 4 6]",
		"1g.10gb 1g.10gb 1g.10gb 1g.10gb":                  "[0 2 4 6]",
		"1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb": "[0 1 2 3 4 5 6]",
		"1g.5gb+me 3g.20gb":                                "[4 0]",
		"4g.20gb 4g.20gb":                                  "take 8 of 7 compute slices",
		"7g.40gb 1g.5gb":                                   "take 8 of 7 compute",
		"3g.20gb 3g.20gb 1g.5gb":                           "take 9 of 8 memory slices",
		"4g.20gb 1g.10gb 1g.5gb 1g.5gb 1g.5gb":             "take 8 of 7",
		"1g.5gb+me 1g.5gb+me":                              "only one instance",
		"5g.20gb":                                          "a a100 with 40 GB has no profile 5g.20gb",
		"1g.20gb":                                          "it has 1g.5gb, 1g.5gb+me",
	} {
		at, err := m.Place(strings.Fields(set))
		if got := fmt.Sprint(at); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", set, at, err, want)
		}
	}
}

// TestLayoutsAreLegal compares every set of up to seven instances with a search over
// all starts that knows nothing of order, and Layouts with those that are full.
func TestLayoutsAreLegal(t *testing.T) {
	for i := range mig.Models {
		m := &mig.Models[i]
		legal := map[string]bool{}
		var fill func(set []string, used uint, compute, media int)
		fill = func(set []string, used uint, compute, media int) {
			key := slices.Sorted(slices.Values(set))
			legal[strings.Join(key, " ")] = true
			for _, p := range m.Profiles {
				for _, s := range p.Starts {
					mask := (uint(1)<<p.Memory - 1) << s
					more := media
					if p.Once {
						more++
					}
					// only upwards: every set is met in the order of its starts
					if used>>s == 0 && used&mask == 0 && compute+p.Compute <= 7 && more <= 1 {
						fill(append(slices.Clone(set), p.Name), used|mask, compute+p.Compute, more)
					}
				}
			}
		}
		fill(nil, 0, 0, 0)
		layouts := m.Layouts()
		for _, l := range layouts {
			if !legal[strings.Join(slices.Sorted(slices.Values(l)), " ")] {
				t.Errorf("%s: %v is not legal", m.Type, l)
			}
		}
		full := 0
		for set := range legal {
			more := false
			for _, p := range m.Profiles {
				more = more || legal[strings.Join(slices.Sorted(slices.Values(append(strings.Fields(set), p.Name))), " ")]
			}
			if !more {
				full++
			}
			if _, err := m.Place(strings.Fields(set)); err != nil {
				t.Errorf("%s: %s: %v", m.Type, set, err)
			}
		}
		if full != len(layouts) || full == 0 {
			t.Errorf("%s: %d layouts, the search has %d", m.Type, len(layouts), full)
		}
	}
}
