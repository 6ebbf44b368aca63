package class

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/sched/index"
)

// Bound restricts a gang to some nodes: those with all of the features, and, if a
// type is named, with its devices of that type.
type Bound struct {
	Features []string
	Type     string
}

// Restricted returns a shape within bounds, or nil if it asks for devices of another
// type. What no bound restricts is the shape itself. What else would do is restricted
// in the same way.
func (in *Interner) Restricted(s *Shape, bounds []Bound) *Shape {
	features, kind, ok := joinBounds(bounds)
	switch {
	case !ok:
		return nil
	case len(features) == 0:
		return s
	case s.Else == nil:
		if r := in.shapes[restrictedKey(s, features)]; r != nil {
			return r
		}
		r := s.restrictShape(features, kind)
		if r != nil {
			in.next++
			r.ID = in.next
			in.shapes[r.Key] = r
		}
		return r
	}
	var within []*Shape
	for x := s; x != nil; x = x.Else {
		if r := x.restrictShape(features, kind); r != nil {
			within = append(within, r)
		}
	}
	if len(within) == 0 {
		return nil
	}
	return in.linkShapes(within)
}

// joinBounds is what bounds ask for together; false if they name two types of device.
func joinBounds(bounds []Bound) (features []string, kind string, ok bool) {
	for _, b := range bounds {
		features = append(features, b.Features...)
		if b.Type != "" {
			if kind != "" && kind != b.Type {
				return nil, "", false
			}
			kind = b.Type
			features = append(features, index.DeviceFeature(b.Type))
		}
	}
	return sortedNames(features), kind, true
}

func restrictedKey(s *Shape, features []string) string {
	return s.Key + "\x00" + strings.Join(features, "\x00")
}

func (s *Shape) restrictShape(features []string, kind string) *Shape {
	r := &Shape{Partitions: s.Partitions, Pools: s.Pools, Groups: slices.Clone(s.Groups), Within: s.Within, Key: restrictedKey(s, features)}
	for i := range r.Groups {
		if !r.Groups[i].restrictGroup(features, kind) {
			return nil
		}
	}
	return r
}

// Tasks is how many tasks of each group are wanted with so many left out of all, in
// the proportion in which the groups allow it; as many as can be are left in.
func (s *Shape) Tasks(cut int) []int {
	spare := 0
	for i := range s.Groups {
		spare += s.Groups[i].Want - s.Groups[i].Least
	}
	out := make([]int, len(s.Groups))
	for i := range s.Groups {
		g := &s.Groups[i]
		if out[i] = g.Want; cut > 0 && spare > 0 {
			out[i] -= (g.Want - g.Least) * cut / spare
		}
	}
	return out
}

// Cut returns a shape that wants so many tasks less.
func (in *Interner) Cut(s *Shape, cut int) *Shape {
	if cut == 0 {
		return s
	}
	if s.Else != nil {
		var forms []*Shape
		for x := s; x != nil; x = x.Else {
			form := *x
			form.Else = nil
			forms = append(forms, in.Cut(&form, cut))
		}
		return in.linkShapes(forms)
	}
	key := s.Key + "\x00\x00" + strconv.Itoa(cut)
	if r := in.shapes[key]; r != nil {
		return r
	}
	r := &Shape{Partitions: s.Partitions, Pools: s.Pools, Groups: slices.Clone(s.Groups), Within: s.Within, Key: key}
	for i, n := range s.Tasks(cut) {
		r.Groups[i].Want = n
	}
	in.next++
	r.ID = in.next
	in.shapes[key] = r
	return r
}

func (g *Group) restrictGroup(features []string, kind string) bool {
	for _, list := range g.needLists() {
		*list = slices.Clone(*list)
		for i := range *list {
			n := &(*list)[i]
			switch {
			case kind == "" || n.Kind != "gpu":
			case n.Type == "":
				n.Type = kind
			case n.Type != kind:
				return false
			}
		}
	}
	text := strings.Join(features, "&")
	if g.Text != "" {
		text = g.Text + "&" + text
	}
	g.Text = text
	if len(g.Alternatives) == 0 {
		g.Alternatives = [][]string{features}
		return true
	}
	g.Alternatives = slices.Clone(g.Alternatives)
	for i, a := range g.Alternatives {
		g.Alternatives[i] = append(slices.Clone(a), features...)
	}
	return true
}
