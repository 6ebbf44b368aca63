package step

import (
	"fmt"
	"slices"
	"strings"
)

// effect says what srun does with an option.
type effect uint8

// The effects.
const (
	honoured effect = iota
	ignored         // accepted, and said to have no effect
	silent          // accepted without effect, where nobody could expect one inside a job
	refused         // an error
)

// argument says whether an option takes one.
type argument uint8

// The arguments.
const (
	noArg argument = iota
	needArg
	maybeArg
)

// srunOption is one row of srun's options.
type srunOption struct {
	long   string
	short  byte // 0: none
	arg    argument
	effect effect
	why    string // of an effect other than honoured
	set    func(o *srunOptions, value string) error
}

// unknownOption is an error in the form of the option itself; srun then names its
// help.
type unknownOption struct{ text string }

func (e *unknownOption) Error() string { return e.text }

// parseSrun reads the options of one component. What follows the first word that is
// no option is the program.
func parseSrun(o *srunOptions, args []string) error {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			o.program = args[1:]
			return nil
		case strings.HasPrefix(word, "--"):
			rest, err := parseLong(o, word[2:], args[1:])
			if err != nil {
				return err
			}
			args = rest
		case len(word) > 1 && word[0] == '-':
			rest, err := parseShort(o, word[1:], args[1:])
			if err != nil {
				return err
			}
			args = rest
		default:
			o.program = args
			return nil
		}
	}
	return nil
}

// parseLong reads "name", "name=value" or an abbreviation of it.
func parseLong(o *srunOptions, text string, rest []string) ([]string, error) {
	name, value, given := strings.Cut(text, "=")
	opt, err := findLong(name, text)
	if err != nil {
		return nil, err
	}
	switch {
	case opt.arg == noArg && given:
		return nil, &unknownOption{fmt.Sprintf("option '--%s' doesn't allow an argument", opt.long)}
	case opt.arg == needArg && !given:
		if len(rest) == 0 {
			return nil, &unknownOption{fmt.Sprintf("option '--%s' requires an argument", opt.long)}
		}
		value, rest = rest[0], rest[1:]
	}
	return rest, o.take(opt, value)
}

// findLong finds an option by its name or an abbreviation that is not ambiguous.
// Underscores stand for hyphens.
func findLong(name, text string) (*srunOption, error) {
	name = strings.ReplaceAll(name, "_", "-")
	var found []*srunOption
	for i := range srunTable {
		opt := &srunTable[i]
		if opt.long == name {
			return opt, nil
		}
		if strings.HasPrefix(opt.long, name) && name != "" {
			found = append(found, opt)
		}
	}
	switch len(found) {
	case 0:
		return nil, &unknownOption{fmt.Sprintf("unrecognized option '--%s'", text)}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, opt := range found {
		names = append(names, "'--"+opt.long+"'")
	}
	slices.Sort(names)
	return nil, &unknownOption{fmt.Sprintf("option '--%s' is ambiguous; possibilities: %s", text, strings.Join(names, " "))}
}

// parseShort reads a word of short options: "-lN2", "-n", "8".
func parseShort(o *srunOptions, word string, rest []string) ([]string, error) {
	for len(word) > 0 {
		i := slices.IndexFunc(srunTable, func(opt srunOption) bool { return opt.short == word[0] && word[0] != 0 })
		if i < 0 {
			return nil, &unknownOption{fmt.Sprintf("invalid option -- '%c'", word[0])}
		}
		opt := &srunTable[i]
		word = word[1:]
		value := ""
		switch {
		case opt.arg == noArg:
		case word != "" || opt.arg == maybeArg:
			value, word = word, ""
		case len(rest) == 0:
			return nil, &unknownOption{fmt.Sprintf("option requires an argument -- '%c'", opt.short)}
		default:
			value, rest = rest[0], rest[1:]
		}
		if err := o.take(opt, value); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// take enters an option.
func (o *srunOptions) take(opt *srunOption, value string) error {
	switch opt.effect {
	case refused:
		return fmt.Errorf("--%s: %s", opt.long, opt.why)
	case ignored:
		if !slices.ContainsFunc(o.unused, func(u *srunOption) bool { return u == opt }) {
			o.unused = append(o.unused, opt)
		}
		return nil
	case silent:
		return nil
	}
	o.given[opt.long] = true
	return opt.set(o, value)
}
