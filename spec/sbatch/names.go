package sbatch

import "github.com/coxswain-sched/coxswain/model/getopt"

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
	index  int     // in the table; the plugins' follow it
	slot   int     // options that exclude each other share one
}

func indexNames() map[string]entry {
	m := make(map[string]entry, slots)
	for i := range table {
		m[table[i].Name] = entry{&table[i], i, i}
	}
	for i := range table {
		if shared := sharedPlace(table[i].canonicalName()); shared != table[i].Name {
			m[table[i].Name] = entry{&table[i], i, m[shared].slot}
		}
	}
	for i := range plugins {
		if name := plugins[i].name; m[name].option == nil {
			m[name] = entry{nil, len(table) + i, len(table) + i}
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

// indexLetters lists the place of each letter's option in the table, plus one.
func indexLetters() (list [128]int) {
	for i := range table {
		if c := table[i].Short; c != 0 {
			list[c] = i + 1
		}
	}
	return list
}

// optionByName finds a long name, or the only one that begins so.
func optionByName(name string) (*Option, []string) {
	i, possible := options{}.Long(name)
	if i < 0 || i >= len(table) {
		return nil, possible
	}
	return &table[i], nil
}

// options is the table as getopt reads it; the plugins' options of which the arguments
// are known follow sbatch's own.
type options struct{}

// Long implements getopt.Table.
func (options) Long(name string) (index int, possible []string) {
	e, known := byName[name]
	switch {
	case known && e.option != nil:
		return e.index, nil
	case name == "":
		return -1, nil
	}
	if index, possible = getopt.Match(name, len(table), options{}.Option); index >= 0 {
		return index, nil
	}
	if known && plugins[e.index-len(table)].known {
		return e.index, nil
	}
	return -1, possible
}

// Short implements getopt.Table.
func (options) Short(letter byte) int {
	if letter >= 128 {
		return -1
	}
	return byLetter[letter] - 1
}

// Option implements getopt.Table.
func (options) Option(index int) getopt.Option {
	if index >= len(table) {
		p := &plugins[index-len(table)]
		return getopt.Option{Long: p.name, Arg: p.arg}
	}
	o := &table[index]
	return getopt.Option{Long: o.Name, Short: o.Short, Arg: o.Arg, Same: o.Same}
}
