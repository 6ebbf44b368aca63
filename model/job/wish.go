package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// Wishes are what a group would rather have of the nodes it gets, and does without in
// the end. They are counted from when its job could first be considered.
type Wishes struct {
	Within   Wish `json:"within,omitzero"`   // a level of the topology, as TaskGroup.Within
	Switches Wish `json:"switches,omitzero"` // at most so many leaves, as TaskGroup.Switches
	// GPUs are the types that its GPUs may have, the preferred one first; all of them are
	// of one type. It has at least two types or none.
	GPUs    []string      `json:"gpus,omitempty"`
	GPUsFor time.Duration `json:"gpus_for,omitempty"` // so long each type is insisted on before the next one will do as well
}

// Avoid is a wish of a job for other nodes than some.
type Avoid struct {
	Nodes []string      `json:"nodes"`
	For   time.Duration `json:"for,omitempty"`
	Text  string        `json:"text,omitempty"` // "a1 (attempt 1 failed there)"

	Until int64 `json:"until,omitempty"` // in nanoseconds since 1970: what is added to it while it runs is kept off them so long
}

// Wish is a number that is wished for; N 0 is no wish. For is how long nothing else
// will do: 0 does not wait for it, SiteWait waits as long as the site has it.
type Wish struct {
	N   int           `json:"n,omitempty"`
	For time.Duration `json:"for,omitempty"`
}

// SiteWait stands for the longest wait for switches that the site allows.
const SiteWait time.Duration = -1

// DefaultSwitchWait is that wait where the site says nothing (Slurm's max_switch_wait).
const DefaultSwitchWait = 5 * time.Minute

// maxForms bounds the ways in which the wishes of one job can be given up.
const maxForms = 32

// Form is what a job asks for with some of its wishes granted and the others given up.
type Form struct {
	Spec  *Spec         // without wishes
	After time.Duration // since it could first be considered; before, this form is not to start
}

// Wishful reports whether a job wishes for anything.
func (s *Spec) Wishful() bool {
	if s.Wish != (Wish{}) || len(s.Avoid.Nodes) > 0 {
		return true
	}
	for i := range s.Groups {
		if s.Groups[i].Wishes.hasAny() {
			return true
		}
	}
	return false
}

func (w *Wishes) hasAny() bool {
	return w.Within != (Wish{}) || w.Switches != (Wish{}) || len(w.GPUs) > 0
}

// Forms lists the forms in which a job may start, the preferred one first: at any
// time the first of them that fits, among those whose time has come. Nodes to
// avoid count most. A wish of all groups together counts more than one of a group, that
// of an earlier group more than that of a later one, and in a group the type of GPU most,
// then the level, then the switches. No wait for switches lasts longer than longest.
func (s *Spec) Forms(longest time.Duration) []Form {
	wishes := s.softConstraints(longest)
	forms := []Form{{Spec: s.withoutWishes()}}
	for _, w := range wishes {
		next := make([]Form, 0, len(forms)*len(w))
		for _, f := range forms {
			for _, o := range w {
				x := Form{Spec: f.Spec.cloneSpec(), After: max(f.After, o.after)}
				o.apply(x.Spec)
				next = append(next, x)
			}
		}
		forms = next
	}
	return forms
}

// option is one way to take a wish: granted, or given up after a time.
type option struct {
	after time.Duration
	apply func(*Spec)
}

// wishPatience is for how long the first k of some wishes are insisted on.
func wishPatience(k int, each time.Duration) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	if k > 0 && each > longest/time.Duration(k) {
		return longest
	}
	return time.Duration(k) * each
}

func (s *Spec) softConstraints(longest time.Duration) (out [][]option) {
	nothing := func(*Spec) {}
	if len(s.Avoid.Nodes) > 0 {
		out = append(out, []option{{0, func(x *Spec) { x.excludeNodes(s.Avoid.Nodes) }}, {s.Avoid.For, nothing}})
	}
	if s.Wish.N != 0 {
		out = append(out, []option{{0, func(x *Spec) { x.Within = Deeper(x.Within, s.Wish.N) }}, {s.Wish.For, nothing}})
	}
	for i := range s.Groups {
		w := &s.Groups[i].Wishes
		var types []option
		for k, t := range w.GPUs {
			types = append(types, option{wishPatience(k, w.GPUsFor), func(x *Spec) { x.Groups[i].setGPUType(t) }})
		}
		if len(types) > 0 {
			out = append(out, types)
		}
		if w.Within.N != 0 {
			out = append(out, []option{{0, func(x *Spec) { x.Groups[i].Within = Deeper(x.Groups[i].Within, w.Within.N) }}, {w.Within.For, nothing}})
		}
		if w.Switches.N != 0 {
			wait := min(w.Switches.For, longest)
			if w.Switches.For == SiteWait {
				wait = longest
			}
			out = append(out, []option{{0, func(x *Spec) { x.Groups[i].Switches = smallerBound(x.Groups[i].Switches, w.Switches.N) }}, {wait, nothing}})
		}
	}
	return out
}

// excludeNodes keeps all groups off nodes. The groups have to be the specification's own.
func (s *Spec) excludeNodes(nodes []string) {
	for i := range s.Groups {
		s.Groups[i].Exclude = slices.Concat(s.Groups[i].Exclude, nodes)
	}
}

// Excluding is the job with nodes that no group of it may have.
func (s *Spec) Excluding(nodes []string) *Spec {
	out := s.cloneSpec()
	out.excludeNodes(nodes)
	return out
}

// Deeper is the closer of two levels; 0 is none.
func Deeper(a, b int) int {
	if a == InLeaf || b == InLeaf {
		return InLeaf
	}
	return max(a, b)
}

// smallerBound is the smaller of two bounds; 0 is none.
func smallerBound(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// setGPUType makes all GPUs whose type is open of one type.
func (g *TaskGroup) setGPUType(kind string) {
	for _, r := range []*resource.Requirements{&g.PerNode, &g.PerTask, &g.Total} {
		r.Devices = slices.Clone(r.Devices)
		for i := range r.Devices {
			if d := &r.Devices[i]; d.KindOf() == "gpu" && d.Type == "" && d.Profile == "" {
				d.Type = kind
			}
		}
	}
}

func (s *Spec) cloneSpec() *Spec {
	out := *s
	out.Groups = slices.Clone(s.Groups)
	return &out
}

// withoutWishes is the job without its wishes.
func (s *Spec) withoutWishes() *Spec {
	out := s.cloneSpec()
	out.Wish, out.Avoid = Wish{}, Avoid{}
	for i := range out.Groups {
		out.Groups[i].Wishes = Wishes{}
	}
	return out
}

// checkWishes reports what cannot be wished for.
func (s *Spec) checkWishes() error {
	if err := s.checkLevel("within", s.Within); err != nil {
		return err
	}
	if err := s.checkWish("wish", s.Wish); err != nil {
		return err
	}
	if s.Avoid.For < 0 || s.Avoid.For > maxLimit || len(s.Avoid.Nodes) == 0 && s.Avoid.For != 0 {
		return fmt.Errorf("avoid: cannot wait for %s", s.Avoid.For)
	}
	forms := 1
	if s.Wish.N != 0 {
		forms = 2
	}
	for i := range s.Groups {
		n, err := s.checkGroup(i)
		if err != nil {
			return fmt.Errorf("groups[%d].%w", i, err)
		}
		if forms *= n; forms > maxForms {
			return fmt.Errorf("the wishes can be granted in more than %d ways: wish for fewer things", maxForms)
		}
	}
	return nil
}

// checkGroup reports what a group cannot wish for, and in how many ways its wishes
// can be granted or not.
func (s *Spec) checkGroup(i int) (ways int, err error) {
	g := &s.Groups[i]
	if err := s.checkLevel("within", g.Within); err != nil {
		return 0, err
	}
	if err := s.checkWish("wishes.within", g.Wishes.Within); err != nil {
		return 0, err
	}
	ways = max(1, min(len(g.Wishes.GPUs), maxForms+1))
	for _, w := range []Wish{g.Wishes.Within, g.Wishes.Switches} {
		if w.N != 0 {
			ways *= 2
		}
	}
	w := g.Wishes.Switches
	switch {
	case w.N < 0 || w.N > maxCount || w.N == 0 && w.For != 0:
		return 0, fmt.Errorf("wishes.switches: %d is no number of leaves", w.N)
	case w.For < SiteWait || w.For > maxLimit:
		return 0, fmt.Errorf("wishes.switches: cannot wait for %s", w.For)
	case g.Wishes.GPUsFor < 0 || g.Wishes.GPUsFor > maxLimit || len(g.Wishes.GPUs) == 0 && g.Wishes.GPUsFor != 0:
		return 0, fmt.Errorf("wishes.gpus_for: cannot wait for %s", g.Wishes.GPUsFor)
	case len(g.Wishes.GPUs) == 1:
		return 0, fmt.Errorf("wishes.gpus: a preference is between two types at least")
	}
	for k, t := range g.Wishes.GPUs {
		if t == "" || slices.Contains(g.Wishes.GPUs[:k], t) {
			return 0, fmt.Errorf("wishes.gpus: type %q is empty or stands there twice", t)
		}
	}
	return ways, nil
}

func (s *Spec) checkWish(name string, w Wish) error {
	if w.N == 0 && w.For != 0 || w.For < 0 || w.For > maxLimit {
		return fmt.Errorf("%s: cannot wait for %s", name, w.For)
	}
	return s.checkLevel(name, w.N)
}

// checkLevel reports whether a number is a level of a topology, or stands for a name.
func (s *Spec) checkLevel(name string, n int) error {
	if n >= InLeaf && n <= 16 || n < InLeaf && InLeaf-1-n < len(s.Levels) {
		return nil
	}
	return fmt.Errorf("%s: %d is no level of a topology", name, n)
}

// NameLevel returns the number that stands for the level of a name in this
// specification, until Resolve knows which one that is.
func (s *Spec) NameLevel(name string) int {
	i := slices.Index(s.Levels, name)
	if i < 0 {
		i = len(s.Levels)
		s.Levels = append(slices.Clip(s.Levels), name)
	}
	return InLeaf - 1 - i
}

// LevelName is what a number that NameLevel made stands for; "" for all others.
func (s *Spec) LevelName(n int) string {
	if i := InLeaf - 1 - n; n < InLeaf && i < len(s.Levels) {
		return s.Levels[i]
	}
	return ""
}

// ResolveLevels puts numbers in the place of names of levels: of says which. It
// returns the first name that of does not know.
func (s *Spec) ResolveLevels(of func(name string) (int, bool)) (unknown string) {
	resolve := func(n *int) {
		if name := s.LevelName(*n); name != "" {
			level, known := of(name)
			if !known && unknown == "" {
				unknown = name
			}
			*n = level
		}
	}
	s.Groups = slices.Clone(s.Groups)
	resolve(&s.Within)
	resolve(&s.Wish.N)
	for i := range s.Groups {
		resolve(&s.Groups[i].Within)
		resolve(&s.Groups[i].Wishes.Within.N)
	}
	s.Levels = nil
	return unknown
}

// Insists says in words what a job waits for at a stage of its wishes: what the forms
// of the later ones do without.
func (s *Spec) Insists(stage int, longest time.Duration) string {
	forms := s.Forms(longest)
	var after []time.Duration
	for _, f := range forms {
		after = append(after, f.After)
	}
	slices.Sort(after)
	after = slices.Compact(after)
	if stage+1 >= len(after) {
		return ""
	}
	var out []string
	say := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	next := after[stage+1]
	if a := &s.Avoid; len(a.Nodes) > 0 && a.For >= next {
		say("other nodes than " + a.Text)
	}
	if s.Wish.N != 0 && s.Wish.For >= next {
		say("one " + LevelText(s.Wish.N))
	}
	for i := range s.Groups {
		w := &s.Groups[i].Wishes
		wait := min(w.Switches.For, longest)
		if w.Switches.For == SiteWait {
			wait = longest
		}
		if k := int(after[stage] / max(w.GPUsFor, 1)); len(w.GPUs) > 0 && w.GPUsFor > 0 && k+1 < len(w.GPUs) {
			say("GPUs of type " + strings.Join(w.GPUs[:k+1], " or "))
		}
		if w.Within.N != 0 && w.Within.For >= next {
			say("one " + LevelText(w.Within.N))
		}
		if w.Switches.N == 1 && wait >= next {
			say("one leaf")
		} else if w.Switches.N > 1 && wait >= next {
			say(fmt.Sprintf("at most %d leaves", w.Switches.N))
		}
	}
	return strings.Join(out, ", ")
}

// LevelText is a level of the topology in words.
func LevelText(n int) string {
	if n == InLeaf {
		return "leaf"
	}
	return fmt.Sprintf("domain of level %d", n)
}
