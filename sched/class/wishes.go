package class

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// A job with wishes has several forms (job.Forms), of which each has its time. Between
// two of these times it is at one stage: what it asks for then is a chain of shapes,
// linked by Else, of all forms whose time has come, the preferred one first.

// wishes is what is known of a specification with wishes.
type wishes struct {
	forms []job.Form
	after []time.Duration // at which each stage begins; the first is 0
}

// SetLongest says how long switches are waited for at most. What was handed out before
// stays as it is.
func (in *Interner) SetLongest(wait time.Duration) {
	if in.wait != wait {
		in.wait = wait
		clear(in.wishes)
	}
}

// Stages lists when each stage of a specification begins, counted from when its job
// could first be considered: the first at 0. nil: it wishes for nothing.
func (in *Interner) Stages(spec *job.Spec) []time.Duration {
	if !spec.Wishful() {
		return nil
	}
	return in.wishesOf(spec).after
}

// Staged returns the shape of a specification with wishes at a stage.
func (in *Interner) Staged(spec *job.Spec, stage int) *Shape {
	return in.chainForms(in.wishesOf(spec), stage)
}

func (in *Interner) wishesOf(spec *job.Spec) *wishes {
	if w := in.wishes[spec]; w != nil {
		return w
	}
	w := &wishes{forms: spec.Forms(in.wait)}
	for _, f := range w.forms {
		w.after = append(w.after, f.After)
	}
	slices.Sort(w.after)
	w.after = slices.Compact(w.after)
	if len(in.wishes) >= maxRecent {
		clear(in.wishes)
	}
	in.wishes[spec] = w
	return w
}

// chainForms links the shapes of the forms whose time has come.
func (in *Interner) chainForms(w *wishes, stage int) *Shape {
	var shapes []*Shape
	for _, f := range w.forms {
		if f.After <= w.after[stage] {
			shapes = append(shapes, compileOne(f.Spec))
			shapes[len(shapes)-1].Key = Key(f.Spec)
		}
	}
	return in.linkShapes(shapes)
}

// linkShapes returns the one chain of these shapes, which it may write to if it is new.
func (in *Interner) linkShapes(shapes []*Shape) *Shape {
	var b strings.Builder
	b.WriteString("chain")
	for _, s := range shapes {
		b.WriteString("\x01")
		b.WriteString(s.Key)
	}
	key := b.String()
	if s := in.shapes[key]; s != nil {
		return s
	}
	var next *Shape
	for i := len(shapes) - 1; i >= 0; i-- {
		x := *shapes[i]
		x.Else, x.plain = next, nil
		next = &x
	}
	next.Key = key
	in.next++
	next.ID = in.next
	in.shapes[key] = next
	return next
}

// Common is a shape for reckoning what a job takes at least, whatever form it starts
// in: forms differ in where they go and in the types of their GPUs.
func (s *Shape) Common() *Shape {
	if s.Else == nil {
		return s
	}
	out := *s
	out.Else, out.Groups = nil, slices.Clone(s.Groups)
	for i := range out.Groups {
		g := &out.Groups[i]
		for k, list := range g.needLists() {
			if s.sameInAllForms(i, k) {
				continue
			}
			var open []Need
			for _, n := range *list {
				if n.Kind == "gpu" {
					n.Type = ""
				}
				open = Merge(open, n, 1)
			}
			*list = open
		}
	}
	return &out
}

func (g *Group) needLists() [3]*[]Need {
	return [3]*[]Need{&g.BaseDevices, &g.StepDevices, &g.TotalDevices}
}

// sameInAllForms reports whether all forms have the same needs in a list of a group.
func (s *Shape) sameInAllForms(group, list int) bool {
	for x := s.Else; x != nil; x = x.Else {
		if !slices.Equal(*s.Groups[group].needLists()[list], *x.Groups[group].needLists()[list]) {
			return false
		}
	}
	return true
}
