package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The measures of help texts, in columns.
const (
	HelpWidth  = 80
	flagColumn = 32 // where the text of a flag begins
)

// writeHelp is the whole help of a command: its text, whose paragraphs are filled anew, and its usage.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(paragraph, " ") { // laid out by hand
			fmt.Fprintf(w, "%s\n\n", paragraph)
			continue
		}
		fmt.Fprintf(w, "%s\n\n", wrapText(strings.Join(strings.Fields(paragraph), " "), 0, 0))
	}
	writeUsage(w, cmd)
}

// fitExample is a line of an example in lines that fit: the comment goes before it, and a command
// goes on behind a backslash.
func fitExample(line string) string {
	if utf8.RuneCountInString(line) <= HelpWidth {
		return line
	}
	command, comment, commented := strings.Cut(line, "  # ")
	if commented {
		indent := command[:len(command)-len(strings.TrimLeft(command, " "))]
		return wrapText("# "+comment, len(indent), len(indent)+2) + "\n" + fitExample(strings.TrimRight(command, " "))
	}
	lines := strings.Split(wrapText(strings.TrimLeft(command, " "), 2, 6, HelpWidth-2), "\n")
	return strings.Join(lines, " \\\n")
}

// writeUsage is the usage of a command: how to call it, examples, commands below it by group,
// and flags. No line is wider than HelpWidth, unless a word is.
func writeUsage(w io.Writer, cmd *cobra.Command) {
	fmt.Fprint(w, "Usage:")
	if cmd.Runnable() {
		for form := range strings.SplitSeq(cmd.UseLine(), "  |  ") {
			form = strings.TrimPrefix(form, cmd.CommandPath()+" ")
			if cmd.HasParent() {
				form = strings.TrimPrefix(form, cmd.Name()+" ")
			}
			fmt.Fprintf(w, "\n%s", wrapText(strings.TrimRight(cmd.CommandPath()+" "+form, " "), 2, 6))
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s [command]", cmd.CommandPath())
	}
	fmt.Fprintln(w)
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "\nAliases:\n  %s\n", strings.Join(append([]string{cmd.Name()}, cmd.Aliases...), ", "))
	}
	if cmd.HasExample() {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.SplitSeq(strings.TrimRight(cmd.Example, "\n"), "\n") {
			fmt.Fprintln(w, fitExample(line))
		}
	}
	writeCommands(w, cmd)
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", cmd.LocalFlags()}, {"Global flags", cmd.InheritedFlags()}} {
		if part.flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", part.title, FlagUsages(part.flags))
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more about a command.\n", cmd.CommandPath())
	}
}

// writeCommands lists the commands below one, by their groups.
func writeCommands(w io.Writer, cmd *cobra.Command) {
	list := func(title, group string) {
		var b strings.Builder
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
				b.WriteString(wrapText(fmt.Sprintf("%-*s %s", sub.NamePadding(), sub.Name(), sub.Short), 2, sub.NamePadding()+3) + "\n")
			}
		}
		if b.Len() > 0 {
			fmt.Fprintf(w, "\n%s\n%s", title, b.String())
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Commands:", "")
}

// FlagUsages are the flags that help shows, one or more lines each. A usage that begins with a
// word in backquotes has the name of the flag's value there.
func FlagUsages(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := valueAndUsage(f)
		head := "      --" + f.Name
		if f.Shorthand != "" {
			head = "  -" + f.Shorthand + ", --" + f.Name
		}
		switch {
		case value == "":
		case f.NoOptDefVal != "":
			head += "[=" + value + "]"
		default:
			head += " " + value
		}
		text := usage
		if d := defaultOf(f); d != "" {
			text += " (default " + d + ")"
		}
		if utf8.RuneCountInString(head) > flagColumn-2 {
			b.WriteString(head + "\n")
			head = ""
		}
		lines := wrapText(text, 0, 0, HelpWidth-flagColumn)
		for line := range strings.SplitSeq(lines, "\n") {
			fmt.Fprintf(&b, "%s%s%s\n", head, strings.Repeat(" ", flagColumn-utf8.RuneCountInString(head)), line)
			head = ""
		}
	})
	return b.String()
}

// valueAndUsage are the name of a flag's value, "" where it takes none, and what it says.
func valueAndUsage(f *pflag.Flag) (value, usage string) {
	if rest, ok := strings.CutPrefix(f.Usage, "`"); ok {
		value, usage, _ = strings.Cut(rest, "`")
		return value, strings.TrimSpace(usage)
	}
	value, usage = pflag.UnquoteUsage(f)
	switch f.Value.Type() {
	case "bool":
		return "", usage
	case "string", "stringArray", "stringSlice", "strings":
		if !strings.Contains(f.Usage, "`") {
			value = "TEXT"
		}
	case "int", "int64", "uint", "uint32", "uint64", "float64":
		value = "N"
	}
	return value, usage
}

// defaultOf is a flag's value where it is not given, "" for one that says nothing.
func defaultOf(f *pflag.Flag) string {
	if strings.Contains(f.Usage, "(default") {
		return ""
	}
	switch f.DefValue {
	case "", "0", "false", "[]", "0s", "-1":
		return ""
	}
	return f.DefValue
}

// wrapText breaks a text at blanks: the first line begins in one column, the others in another.
func wrapText(text string, first, other int, width ...int) string {
	room := HelpWidth
	if len(width) > 0 {
		room = width[0]
	}
	var b strings.Builder
	column := first
	b.WriteString(strings.Repeat(" ", first))
	start := true
	for _, word := range splitWords(text) {
		n := utf8.RuneCountInString(word)
		if lead := len(word) - len(strings.TrimLeft(word, " ")); !start && column+n > room {
			b.WriteString("\n" + strings.Repeat(" ", other))
			column, word, n = other, word[lead:], n-lead
		}
		b.WriteString(word)
		column += n
		start = false
	}
	return b.String()
}

// splitWords are the words of a text, each with the blanks before it.
func splitWords(text string) (out []string) {
	from := 0
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' && text[i-1] != ' ' {
			out = append(out, text[from:i])
			from = i
		}
	}
	return append(out, text[from:])
}
