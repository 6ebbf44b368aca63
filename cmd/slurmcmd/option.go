package slurmcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// Option is one option of a command.
type Option struct {
	Long   string
	Short  byte
	Arg    getopt.Arg
	Do     func(value string) error
	Bare   func() // of getopt.Numbers: called in place of Do where no value was given
	Filter bool   // it chooses among what there is: an empty value chooses nothing
	Same   string // the long name of the option of which this is another name; only Long or Short is set beside it
}

// Alias is another name of an option.
func Alias(long, same string) Option { return Option{Long: long, Same: same} }

// Flag is an option that sets a variable.
func Flag(long string, short byte, v *bool) Option {
	return Option{Long: long, Short: short, Do: func(string) error { *v = true; return nil }}
}

// Text is an option whose argument goes into a variable.
func Text(long string, short byte, v *string) Option {
	return Option{Long: long, Short: short, Arg: getopt.Required, Do: func(s string) error { *v = s; return nil }}
}

// List is a filter whose argument is a list with commas.
func List(long string, short byte, v *[]string) Option {
	return Filter(long, short, func(s string) error { *v = append(*v, SplitFilter(s)...); return nil })
}

// Filter is a filter that reads its argument by itself.
func Filter(long string, short byte, do func(value string) error) Option {
	return Option{Long: long, Short: short, Arg: getopt.Required, Do: do, Filter: true}
}

// Numbers is a filter by jobs, which may also be given without any: then bare is called.
func Numbers(long string, short byte, do func(value string) error, bare func()) Option {
	return Option{Long: long, Short: short, Arg: getopt.Numbers, Do: do, Bare: bare, Filter: true}
}

// Ignored is an option that has no effect here.
func Ignored(long string, short byte, arg getopt.Arg) Option {
	return Option{Long: long, Short: short, Arg: arg, Do: func(string) error { return nil }}
}

// Refused is an option of Slurm's that is not there; instead says what is.
func Refused(long string, short byte, arg getopt.Arg, instead string) Option {
	return Option{Long: long, Short: short, Arg: arg, Do: func(string) error {
		return fault.New(fault.Unsupported, "--%s is not built yet", long).Advise("%s", instead)
	}}
}

// Autocomplete refuses the option by which Slurm's own completion for shells asks for options.
func Autocomplete() Option {
	return Refused("autocomplete", 0, getopt.Required, "cox completion writes the completion of cox")
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

// SplitFilter is Split of a filter's value. A value that names nothing is one empty entry,
// so that the filter still counts as given: see MatchesNothing.
func SplitFilter(s string) []string {
	if list := Split(s); len(list) > 0 {
		return list
	}
	return []string{""}
}

// MatchesNothing reports whether one of the filters was given and names nothing, as with a
// variable that is not set. Nothing passes it, as in Slurm.
func MatchesNothing(filters ...[]string) bool {
	return slices.ContainsFunc(filters, func(f []string) bool { return len(f) > 0 && JoinFilter(f) == "" })
}

// JoinFilter joins the entries of a filter that are not empty.
func JoinFilter(list []string) string {
	return strings.Join(DropEmpty(list), ",")
}

// DropEmpty returns the entries of a filter that are not empty.
func DropEmpty(list []string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// UsageError is a wrong option; it is printed as getopt and Slurm print it.
type UsageError struct {
	Text string
	Near string // the option that was probably meant; empty: none is near
}

// Error is the text without the command's name.
func (e *UsageError) Error() string { return e.Text }

func (e *UsageError) printUsage(c *Command) {
	fmt.Fprintf(c.Err, "%s: %s\n", c.Name, e.Text)
	if e.Near != "" {
		c.printRemedy("did you mean --" + e.Near + "?")
	}
	fmt.Fprintf(c.Err, "Try \"%s --help\" for more information\n", c.Name)
}

// options are a command's options as getopt reads them.
type options []Option

// TableOf is a command's options as getopt reads them.
func TableOf(list []Option) getopt.Table { return options(list) }

// Long implements getopt.Table.
func (o options) Long(name string) (index int, possible []string) {
	return getopt.Match(name, len(o), o.Option)
}

// Short implements getopt.Table.
func (o options) Short(letter byte) int {
	return slices.IndexFunc(o, func(x Option) bool { return x.Short == letter })
}

// Option implements getopt.Table.
func (o options) Option(index int) getopt.Option {
	return getopt.Option{Long: o[index].Long, Short: o[index].Short, Arg: o.mainOption(index).Arg, Same: o[index].Same}
}

// mainOption is the option at an index, or the one of which it is another name.
func (o options) mainOption(index int) *Option {
	if same := o[index].Same; same != "" {
		index = slices.IndexFunc(o, func(x Option) bool { return x.Long == same })
	}
	return &o[index]
}

// Parse reads options, which may stand among other words, and returns those words.
// "--" ends the options.
func Parse(list []Option, args []string) (rest []string, err error) {
	scan := getopt.New(options(list), args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return rest, nil
		case getopt.Terminator:
			return append(rest, args[it.Next:]...), nil
		case getopt.Plain:
			rest = append(rest, args[it.Word])
		case getopt.Found:
			if o := options(list).mainOption(it.Index); o.Bare != nil && !it.HasValue {
				o.Bare()
			} else if err := o.Do(it.Value); err != nil {
				return nil, err
			}
		default:
			e := &UsageError{Text: it.Err().Error()}
			if it.Kind == getopt.Unknown && !it.Letter {
				e.Near = getopt.Nearest(it.Name, len(list), options(list).Option)
			}
			return nil, e
		}
	}
}
