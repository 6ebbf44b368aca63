package class

import (
	"slices"
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
// type. What no bound restricts is the shape itself.
func (in *Interner) Restricted(s *Shape, bounds []Bound) *Shape {
	var features []string
	kind := ""
	for _, b := range bounds {
		features = append(features, b.Features...)
		if b.Type != "" {
			if kind != "" && kind != b.Type {
				return nil
			}
			kind = b.Type
			features = append(features, index.DeviceFeature(b.Type))
		}
	}
	features = sorted(features)
	if len(features) == 0 {
		return s
	}
	key := s.Key + "\x00" + strings.Join(features, "\x00")
	if r := in.shapes[key]; r != nil {
		return r
	}
	r := &Shape{Partitions: s.Partitions, Groups: slices.Clone(s.Groups), Key: key}
	for i := range r.Groups {
		if !r.Groups[i].restrict(features, kind) {
			return nil
		}
	}
	in.next++
	r.ID = in.next
	in.shapes[key] = r
	return r
}

func (g *Group) restrict(features []string, kind string) bool {
	for _, list := range []*[]Need{&g.BaseDevices, &g.StepDevices, &g.TotalDevices} {
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
