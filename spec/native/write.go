package native

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/job"
)

// writer writes YAML that package spec/yaml reads back as it was.
type writer struct {
	b      strings.Builder
	indent int
	dash   bool // the next field follows the dash of a list entry
	spec   *job.Spec
}

func (w *writer) key(name string) {
	if w.dash {
		w.dash = false
	} else {
		w.b.WriteString(strings.Repeat("  ", w.indent))
	}
	w.b.WriteString(name + ":")
}

// writeRaw writes a value as it stands.
func (w *writer) writeRaw(name string, write bool, value string) {
	if write {
		w.key(name)
		w.b.WriteString(" " + value + "\n")
	}
}

// writeKeyed writes a field whose name comes from a user.
func (w *writer) writeKeyed(name, value string) {
	w.key(quoteText(name))
	w.b.WriteString(" " + value + "\n")
}

func (w *writer) writeFlag(name string, on bool) { w.writeRaw(name, on, "true") }

// writeText writes text that is not empty.
func (w *writer) writeText(name, s string) {
	if s == "" {
		return
	}
	if block, ok := blockText(s, strings.Repeat("  ", w.indent+1)); ok {
		w.writeRaw(name, true, block)
		return
	}
	w.writeRaw(name, true, quoteText(s))
}

// writeList writes a list of names; one name is written as it is.
func (w *writer) writeList(name string, items []string) {
	if len(items) == 1 {
		w.writeText(name, items[0])
		return
	}
	w.writeTexts(name, items)
}

// writeTexts writes a list, also of one entry.
func (w *writer) writeTexts(name string, items []string) {
	if len(items) == 0 {
		return
	}
	parts := make([]string, len(items))
	for i, s := range items {
		parts[i] = quoteFlow(s)
	}
	w.writeRaw(name, true, "["+strings.Join(parts, ", ")+"]")
}

// openGroup begins a group of fields, item one in a list; shut ends either.
func (w *writer) openGroup(name string) {
	w.key(name)
	w.b.WriteByte('\n')
	w.indent++
}

func (w *writer) beginItem() {
	w.b.WriteString(strings.Repeat("  ", w.indent) + "- ")
	w.dash = true
	w.indent++
}

func (w *writer) closeGroup() {
	w.indent--
	w.dash = false
}

// blockText is text of several lines after |, if that keeps every byte.
func blockText(s, indent string) (string, bool) {
	if !strings.HasSuffix(s, "\n") || strings.HasSuffix(s, "\n\n") || strings.Trim(s, "\n") == "" || strings.Contains(s, "\r\n") {
		return "", false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (r < 0x20 || r == 0x7f) || r == utf8.RuneError || r == '\ufeff' {
			return "", false
		}
	}
	header := "|\n"
	if first := strings.TrimLeft(s, "\n"); s[0] == '\n' || first[0] == ' ' || first[0] == '\t' {
		header = "|2\n"
	}
	var b strings.Builder
	b.WriteString(header)
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		switch {
		case line == "":
		case strings.Trim(line, " \t") == "":
			b.WriteString(indent + line)
		default:
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// quoteText is text as a value of a field: plain where that is read as the same text,
// by other readers of YAML too.
func quoteText(s string) string {
	if plainText(s) {
		return s
	}
	return doubleQuote(s)
}

// quoteFlow is text inside brackets.
func quoteFlow(s string) string {
	if plainText(s) && !strings.ContainsAny(s, ",[]{}:") {
		return s
	}
	return doubleQuote(s)
}

// plainText reports whether the text needs no quotes.
func plainText(s string) bool {
	switch strings.ToLower(s) {
	case "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return false
	}
	letter := false
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || r == '/' || r == '%' && i > 0:
			letter = true
		case unicode.IsDigit(r) || r == '_' || r == '.' || r == '+' || r == '@' && i > 0:
		case i == 0 && r == '-' && len(s) > 2 && unicode.IsLetter(rune(strings.TrimPrefix(s[1:], "-")[0])):
		case i > 0 && strings.ContainsRune("-=()~$;<>^?*&|!", r):
		case i > 0 && r == ':' && i+1 < len(s) && s[i+1] != ' ':
		case i > 0 && r == ',' && i+1 < len(s):
		case i > 0 && i+1 < len(s) && r == ' ' && s[i+1] != '#':
		default:
			return false
		}
	}
	return letter && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "+") && len(s) <= 200 && !isNumeric(s)
}

// isNumeric reports whether some reader of YAML may take the text for a number.
func isNumeric(s string) bool {
	if s[0] < '0' || s[0] > '9' {
		return false
	}
	return strings.Trim(strings.ToLower(s), "0123456789abcdefox_.+-") == ""
}

// doubleQuote is text in double quotes.
func doubleQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			b.WriteString("\ufffd") // not UTF-8: it cannot be said
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f || r == '\ufeff' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			if r < 0x100 {
				fmt.Fprintf(&b, `\x%02x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
