package face

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Arg says whether an option takes an argument.
type Arg uint8

// The kinds of argument. An optional one must be glued: --json=x.
const (
	None Arg = iota
	Required
	Optional
	Numbers // optional; also the next word where that is no option
)

// Option is one option of a command.
type Option struct {
	Long  string
	Short byte
	Arg   Arg
	Do    func(value string) error
}

// Flag is an option that sets a variable.
func Flag(long string, short byte, v *bool) Option {
	return Option{long, short, None, func(string) error { *v = true; return nil }}
}

// Text is an option whose argument goes into a variable.
func Text(long string, short byte, v *string) Option {
	return Option{long, short, Required, func(s string) error { *v = s; return nil }}
}

// List is an option whose argument is a list with commas.
func List(long string, short byte, v *[]string) Option {
	return Option{long, short, Required, func(s string) error { *v = append(*v, Split(s)...); return nil }}
}

// Ignored is an option that has no effect here.
func Ignored(long string, short byte, arg Arg) Option {
	return Option{long, short, arg, func(string) error { return nil }}
}

// Refused is an option of Slurm's that is not there; instead says what is.
func Refused(long string, short byte, arg Arg, instead string) Option {
	return Option{long, short, arg, func(string) error {
		return fault.New(fault.Unsupported, "--%s is not built yet", long).Advise("%s", instead)
	}}
}

// Textf is an error in Slurm's words.
func Textf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Split cuts a list at its commas outside of brackets; empty parts are left out.
func Split(s string) (out []string) {
	depth, from := 0, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ',' && depth == 0:
			if i > from {
				out = append(out, s[from:i])
			}
			from = i + 1
		case s[i] == '[':
			depth++
		case s[i] == ']' && depth > 0:
			depth--
		}
	}
	return out
}

// UsageError is a wrong option; it is printed as getopt and Slurm print it.
type UsageError struct{ Text string }

// Error is the text without the command's name.
func (e *UsageError) Error() string { return e.Text }

func (e *UsageError) print(c *Command) {
	fmt.Fprintf(c.Err, "%s: %s\nTry \"%s --help\" for more information\n", c.Name, e.Text, c.Name)
}

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Parse reads options, which may stand among other words, and returns those words.
// "--" ends the options; with first also the first word that is none.
func Parse(options []Option, args []string, first bool) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(rest, args[i+1:]...), nil
		case strings.HasPrefix(a, "--"):
			i, err = long(options, args, i)
		case len(a) > 1 && a[0] == '-':
			i, err = short(options, args, i)
		case first:
			return append(rest, args[i:]...), nil
		default:
			rest = append(rest, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func long(options []Option, args []string, i int) (int, error) {
	name, value, glued := strings.Cut(args[i][2:], "=")
	var found *Option
	var others []string
	for n := range options {
		o := &options[n]
		if o.Long == name {
			found, others = o, nil
			break
		}
		if o.Long != "" && strings.HasPrefix(o.Long, name) {
			others = append(others, "'--"+o.Long+"'")
			found = o
		}
	}
	switch {
	case found == nil:
		return i, usage("unrecognized option '--%s'", name)
	case len(others) > 1:
		return i, usage("option '%s' is ambiguous; possibilities: %s", args[i], strings.Join(others, " "))
	case found.Arg == None && glued:
		return i, usage("option '--%s' doesn't allow an argument", found.Long)
	case found.Arg == Required && !glued:
		if i++; i == len(args) {
			return i, usage("option '--%s' requires an argument", found.Long)
		}
		value = args[i]
	case found.Arg == Numbers && !glued && numbersFollow(args, i):
		i++
		value = args[i]
	}
	return i, found.Do(value)
}

func short(options []Option, args []string, i int) (int, error) {
	word := args[i]
	for k := 1; k < len(word); k++ {
		var o *Option
		for n := range options {
			if options[n].Short == word[k] {
				o = &options[n]
				break
			}
		}
		switch {
		case o == nil:
			return i, usage("invalid option -- '%c'", word[k])
		case o.Arg == None:
			if err := o.Do(""); err != nil {
				return i, err
			}
			continue
		case o.Arg == Numbers && k+1 == len(word) && numbersFollow(args, i):
			return i + 1, o.Do(args[i+1])
		case o.Arg == Optional || o.Arg == Numbers || k+1 < len(word):
			return i, o.Do(word[k+1:])
		case i+1 == len(args):
			return i, usage("option requires an argument -- '%c'", word[k])
		}
		return i + 1, o.Do(args[i+1])
	}
	return i, nil
}

func numbersFollow(args []string, i int) bool {
	return i+1 < len(args) && args[i+1] != "" && args[i+1][0] != '-'
}
