package sbatch

import "strings"

// What the table comes to when it is looked up; nothing here is written to later.
var (
	byName   = indexNames()
	byLetter = indexLetters()
)

// slots is how many places a component's options need: one for each option and for
// each option of a plugin that is read.
var slots = len(table) + len(plugins)

// entry is what is known by a name.
type entry struct {
	option *Option // nil for a plugin's
	slot   int     // options that exclude each other share one
}

func indexNames() map[string]entry {
	m := make(map[string]entry, slots)
	for i := range table {
		m[table[i].Name] = entry{&table[i], i}
	}
	for i := range table {
		if shared := sharedPlace(table[i].canonicalName()); shared != table[i].Name {
			m[table[i].Name] = entry{&table[i], m[shared].slot}
		}
	}
	for i := range plugins {
		if name := plugins[i].name; m[name].option == nil {
			m[name] = entry{nil, len(table) + i}
		}
	}
	return m
}

// sharedPlace names the option in whose place this one stands: the last of --requeue
// and --no-requeue holds.
func sharedPlace(option string) string {
	switch option {
	case "no-requeue":
		return "requeue"
	case "oversubscribe":
		return "exclusive"
	case "ntasks-per-tres":
		return "ntasks-per-gpu"
	}
	return option
}

func slotOf(option string) int { return byName[option].slot }

// optionCount is how many options are given.
func (s settings) optionCount() int {
	n := 0
	for _, d := range s {
		if d != nil {
			n++
		}
	}
	return n
}

func indexLetters() (list [128]*Option) {
	for i := range table {
		if c := table[i].Short; c != 0 {
			list[c] = &table[i]
		}
	}
	return list
}

// optionByLetter finds a short option.
func optionByLetter(c byte) *Option {
	if c >= 128 {
		return nil
	}
	return byLetter[c]
}

// optionByName finds a long name, or the only one that begins so. Names of the same
// option do not make a beginning ambiguous.
func optionByName(name string) (*Option, []string) {
	if e, ok := byName[name]; ok && e.option != nil {
		return e.option, nil
	}
	var match *Option
	var possible []string
	same := true
	for i := range table {
		o := &table[i]
		if name == "" || !strings.HasPrefix(o.Name, name) {
			continue
		}
		possible = append(possible, o.Name)
		if match == nil {
			match = o
		} else if o.canonicalName() != match.canonicalName() {
			same = false
		}
	}
	if match != nil && same {
		return match, nil
	}
	return nil, possible
}
