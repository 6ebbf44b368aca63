// Package getopt reads command lines as getopt_long of the C library does, which
// Slurm's commands use: abbreviated long options, short options in one word, values in
// the same word or in the next one. Every reader of Slurm's command lines here uses it.
//
// A Scanner only takes words apart. It neither checks values nor stops at a mistake, so
// that a caller can report the first one or all of them, stop at the first plain word
// (srun) or go on after it (squeue).
package getopt

import (
	"fmt"
	"strings"
)

// Arg says whether an option takes a value.
type Arg uint8

// The kinds.
const (
	None     Arg = iota
	Required     // in the same word or the next one
	Optional     // in the same word only: --nice=5, -I5
	Numbers      // optional; the next word too where that is no option: squeue -j 7
)

// Option is one option of a command.
type Option struct {
	Long  string // without dashes
	Short byte   // 0: none
	Arg   Arg
	Same  string // the option of which this is another name; empty: none
}

// Canonical is the option's main name.
func (o *Option) Canonical() string {
	if o.Same != "" {
		return o.Same
	}
	return o.Long
}

// Table is the options of a command, by index.
type Table interface {
	// Long finds an option by its name or an abbreviation. Without one it returns -1
	// and the names that the text may abbreviate.
	Long(name string) (index int, possible []string)
	// Short finds an option by its letter, -1: there is none.
	Short(letter byte) int
	// Option is the option at an index.
	Option(index int) Option
}

// Match finds the option that a name means among n options: the one of that name, or
// the only one whose name begins so. Other names of the same option do not make a
// beginning ambiguous. Without such an option it returns -1 and all that begin so.
func Match(name string, n int, option func(index int) Option) (index int, possible []string) {
	index = -1
	first, unique := "", true
	for i := range n {
		o := option(i)
		switch {
		case o.Long == name && name != "":
			return i, nil
		case o.Long == "" || !strings.HasPrefix(o.Long, name):
			continue
		case index < 0:
			index, first = i, o.Canonical()
		case o.Canonical() != first:
			unique = false
		}
		possible = append(possible, o.Long)
	}
	if index >= 0 && unique {
		return index, nil
	}
	return -1, possible
}

// List is a Table that is searched from its start.
type List []Option

// Long implements Table.
func (l List) Long(name string) (index int, possible []string) {
	return Match(name, len(l), l.Option)
}

// Short implements Table.
func (l List) Short(letter byte) int {
	for i := range l {
		if l[i].Short == letter && letter != 0 {
			return i
		}
	}
	return -1
}

// Option implements Table.
func (l List) Option(index int) Option { return l[index] }

// Kind says what an Item is.
type Kind uint8

// The kinds of item.
const (
	End        Kind = iota // there are no more words
	Found                  // an option
	Plain                  // a word that is neither an option nor an option's value
	Terminator             // "--"; the words after it are no options

	// Mistakes. Error describes them.
	Unknown
	Ambiguous
	Missing  // an option without the value that it needs
	Unwanted // a value for an option that takes none
)

// Item is what a Scanner found.
type Item struct {
	Kind     Kind
	Option   Option   // of Found, Missing and Unwanted
	Index    int      // of the option in its table
	Name     string   // as written, without dashes: a long name, or a letter
	Letter   bool     // Name is a letter
	Value    string   // of Found and Unwanted
	HasValue bool     //
	Possible []string // of Ambiguous

	Word    int // index of the word that holds the option, or is plain
	ValueAt int // where Value begins in the word that holds it
	Next    int // index of the first word that was not read; Value is in the word before it
}

// Glued reports whether the value is in the word of the option.
func (i *Item) Glued() bool { return i.HasValue && i.Next == i.Word+1 }

// Error describes a mistake in the words of the C library.
type Error struct{ Text string }

// Error implements error. The command's name is not part of the text.
func (e *Error) Error() string { return e.Text }

// Err is the error of a mistake, nil for other items.
func (i *Item) Err() error {
	written := i.Name
	if i.HasValue {
		written += "=" + i.Value
	}
	text := ""
	switch i.Kind {
	case Unknown:
		if text = fmt.Sprintf("unrecognized option '--%s'", written); i.Letter {
			text = fmt.Sprintf("invalid option -- '%s'", i.Name)
		}
	case Ambiguous:
		text = fmt.Sprintf("option '--%s' is ambiguous; possibilities: '--%s'", written, strings.Join(i.Possible, "' '--"))
	case Missing:
		if text = fmt.Sprintf("option '--%s' requires an argument", i.Option.Long); i.Letter {
			text = fmt.Sprintf("option requires an argument -- '%s'", i.Name)
		}
	case Unwanted:
		text = fmt.Sprintf("option '--%s' doesn't allow an argument", i.Option.Long)
	default:
		return nil
	}
	return &Error{text}
}
