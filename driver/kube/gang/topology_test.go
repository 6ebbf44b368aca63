package gang

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestNear: what Kueue is told of where a job's pods are to be, and what it cannot be told stays
// in the job, which is refused for it. That Kueue goes by it, TestKueue shows.
//
// Seen to fail with: a wish told as a demand; a level counted from below.
func TestNear(t *testing.T) {
	labels := []string{"example.com/block", "example.com/rack"}
	group := func(change func(*job.TaskGroup)) func(*job.Spec) {
		return func(s *job.Spec) { change(&s.Groups[0]) }
	}
	for name, tt := range map[string]struct {
		change func(*job.Spec)
		want   render.Near
		stays  bool
		err    string
	}{
		"nothing: as the pool says": {func(*job.Spec) {}, render.Near{Label: "of/the-pool", Wished: true}, false, ""},
		"one leaf":                  {group(func(g *job.TaskGroup) { g.Switches = 1 }), render.Near{Label: "example.com/rack"}, false, ""},
		"one leaf, if it can be":    {group(func(g *job.TaskGroup) { g.Wishes.Switches.N = 1 }), render.Near{Label: "example.com/rack", Wished: true}, false, ""},
		"the outermost level":       {func(s *job.Spec) { s.Within = 1 }, render.Near{Label: "example.com/block"}, false, ""},
		"the second":                {group(func(g *job.TaskGroup) { g.Within = 2 }), render.Near{Label: "example.com/rack"}, false, ""},
		"by name":                   {func(s *job.Spec) { s.Within = s.NameLevel("block") }, render.Near{Label: "example.com/block"}, false, ""},
		"a demand before a wish":    {func(s *job.Spec) { s.Within, s.Wish.N = 1, 2 }, render.Near{Label: "example.com/block"}, false, ""},
		"two leaves":                {group(func(g *job.TaskGroup) { g.Switches = 2 }), render.Near{Label: "of/the-pool", Wished: true}, true, ""},
		"too deep":                  {func(s *job.Spec) { s.Within = 3 }, render.Near{}, false, "no level domain of level 3: those of the pool are example.com/block, example.com/rack"},
		"no such name":              {func(s *job.Spec) { s.Within = s.NameLevel("aisle") }, render.Near{}, false, "no level aisle"},
	} {
		s := &job.Spec{Groups: []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}}}}
		tt.change(s)
		before := s.Groups[0]
		terms := settings.Terms{Gang: render.Kueue, Within: render.Near{Label: "of/the-pool", Wished: true}}
		near, rest, err := Nearness(&terms, s, func() ([]string, error) { return labels, nil })
		if tt.err != "" {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || near != tt.want {
			t.Errorf("%s: %+v %v, want %+v", name, near, err, tt.want)
			continue
		}
		if s.Groups[0].Switches != before.Switches || s.Groups[0].Within != before.Within {
			t.Errorf("%s: the job itself was changed", name)
		}
		if _, _, err := render.Spread(rest, func() (string, error) { return "", nil }, nil); (err != nil) != tt.stays {
			t.Errorf("%s: what is left of it: %v", name, err)
		}
	}
	s := &job.Spec{Groups: []job.TaskGroup{{Switches: 1}}}
	if _, _, err := Nearness((&settings.Terms{Gang: render.Kueue}), s, func() ([]string, error) { return nil, nil }); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Remedy(err), "topology") {
		t.Errorf("without labels: %v", err)
	}
	if _, _, err := Nearness((&settings.Terms{Gang: render.Kueue}), s, func() ([]string, error) { return nil, errors.New("no answer") }); err == nil || fault.KindOf(err) == fault.Invalid {
		t.Errorf("without an answer: %v", err)
	}
	for _, other := range []settings.Terms{{Gang: render.Volcano}, {Placed: true, Gang: render.Kueue}} {
		if near, rest, err := Nearness(&other, s, nil); near != (render.Near{}) || rest != s || err != nil {
			t.Errorf("another pool: %+v %v", near, err)
		}
	}
}
