// Package mig knows into which instances a GPU can be divided by NVIDIA's
// Multi-Instance GPU, and which of them can stand beside each other.
//
// A GPU has 7 compute slices and 8 memory slices. An instance takes some of each, and
// its memory slices begin only at certain ones: so three slices that are free are not
// always room for an instance of two. The tables are those of NVIDIA's MIG User
// Guide (supported profiles, and the placements that nvidia-smi mig -lgipp lists).
//
// It is pure and decides nothing: instances are made by the site's administrator, and
// the core places jobs on those that a node reports.
package mig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Profile is a kind of instance.
type Profile struct {
	Name    string
	Compute int   // slices of 7
	Memory  int   // slices of 8
	Starts  []int // at which its memory slices may begin
	Once    bool  // at most one on a GPU: it has the media engines
}

// Model is a GPU that can be divided.
type Model struct {
	Type     string // as nodes report it
	Gigabyte int    // of memory
	Profiles []Profile
}

// model makes a table out of the names of the six sizes, smallest first, which all
// have the same slices on every model so far.
func model(kind string, memory int, small, wide, two, three, four, seven string) Model {
	any := []int{0, 1, 2, 3, 4, 5, 6}
	return Model{kind, memory, []Profile{
		{Name: small, Compute: 1, Memory: 1, Starts: any},
		{Name: small + "+me", Compute: 1, Memory: 1, Starts: any, Once: true},
		{Name: wide, Compute: 1, Memory: 2, Starts: []int{0, 2, 4, 6}},
		{Name: two, Compute: 2, Memory: 2, Starts: []int{0, 2, 4}},
		{Name: three, Compute: 3, Memory: 4, Starts: []int{0, 4}},
		{Name: four, Compute: 4, Memory: 4, Starts: []int{0}},
		{Name: seven, Compute: 7, Memory: 8, Starts: []int{0}},
	}}
}

// Models are the GPUs that are known.
var Models = []Model{
	model("a100", 40, "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
	model("a100", 80, "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
	model("h100", 80, "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
	model("h200", 141, "1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
	model("b200", 180, "1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),
}

// Find returns the table of a type ("a100", "nvidia_h100_80gb_hbm3") with so many
// gigabytes; 0 gigabytes: the smallest of that type. nil: it cannot be divided, or is
// not known.
func Find(kind string, gigabyte int) *Model {
	kind = strings.ToLower(kind)
	var best *Model
	for i := range Models {
		m := &Models[i]
		if !strings.Contains(kind, m.Type) || best != nil && off(m, gigabyte) >= off(best, gigabyte) {
			continue
		}
		best = m
	}
	return best
}

// off is how far a model's memory is from what is looked for.
func off(m *Model, gigabyte int) int { return max(m.Gigabyte-gigabyte, gigabyte-m.Gigabyte) }

// Profile returns a profile by its name, nil if the model has none of that name.
func (m *Model) Profile(name string) *Profile {
	i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Profiles[i]
}

// Names lists the profiles, smallest first.
func (m *Model) Names() []string {
	var out []string
	for _, p := range m.Profiles {
		out = append(out, p.Name)
	}
	return out
}

// Place says at which memory slice each of these instances would begin, if all can
// stand on one GPU. The error says what is in the way.
func (m *Model) Place(names []string) ([]int, error) {
	compute, memory := 0, 0
	once := ""
	list := make([]*Profile, len(names))
	for i, n := range names {
		p := m.Profile(n)
		switch {
		case p == nil:
			return nil, fmt.Errorf("a %s with %d GB has no profile %s; it has %s", m.Type, m.Gigabyte, n, strings.Join(m.Names(), ", "))
		case p.Once && once != "":
			return nil, fmt.Errorf("only one instance of %s has the media engines", n)
		case p.Once:
			once = n
		}
		list[i] = p
		compute += p.Compute
		memory += p.Memory
	}
	switch {
	case compute > 7:
		return nil, fmt.Errorf("%s take %d of 7 compute slices", strings.Join(names, ", "), compute)
	case memory > 8:
		return nil, fmt.Errorf("%s take %d of 8 memory slices", strings.Join(names, ", "), memory)
	}
	order := make([]int, len(names)) // those with the fewest places first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(list[b].Memory, list[a].Memory), cmp.Compare(len(list[a].Starts), len(list[b].Starts)))
	})
	at := make([]int, len(names))
	if !place(list, order, 0, at) {
		return nil, fmt.Errorf("%s cannot stand beside each other: their memory slices begin only at certain ones", strings.Join(names, ", "))
	}
	return at, nil
}

// place tries every start of the first in order, then the others on what is left.
func place(list []*Profile, order []int, used uint, at []int) bool {
	if len(order) == 0 {
		return true
	}
	p := list[order[0]]
	for _, s := range p.Starts {
		mask := (uint(1)<<p.Memory - 1) << s
		if used&mask == 0 && place(list, order[1:], used|mask, at) {
			at[order[0]] = s
			return true
		}
	}
	return false
}

// Layouts lists every set of profiles that fills a GPU: none could be added. Sets are
// in the order of Names, largest profiles first.
func (m *Model) Layouts() [][]string {
	var out [][]string
	var walk func(from int, set []string)
	walk = func(from int, set []string) {
		for i := from; i >= 0; i-- {
			next := append(slices.Clone(set), m.Profiles[i].Name)
			if _, err := m.Place(next); err == nil {
				walk(i, next)
			}
		}
		full := len(set) > 0
		for _, p := range m.Profiles {
			_, err := m.Place(append(slices.Clone(set), p.Name))
			full = full && err != nil
		}
		if full {
			out = append(out, set)
		}
	}
	walk(len(m.Profiles)-1, nil)
	return out
}
