package slurm

import (
	"strings"
)

// setting is one Key=Value, or a word alone, with where it stands.
type setting struct {
	file       string
	line       int
	key, value string
	alone      bool // there was no =
}

// String is the setting as it is in the report, without a password.
func (s setting) String() string {
	if key, _, ok := strings.Cut(s.key, "="); s.alone && ok && isSecret(key) {
		return key + "=…"
	}
	switch {
	case s.alone:
		return s.key
	case isSecret(s.key):
		return s.key + "=…"
	}
	return s.key + "=" + s.value
}

// isSecret reports whether a setting is a password.
func isSecret(key string) bool {
	key = strings.TrimSpace(strings.ToLower(key))
	return strings.HasSuffix(key, "pass") || strings.HasSuffix(key, "password") || strings.HasSuffix(key, "k_g")
}

// hasKey compares a key as Slurm does.
func (s setting) hasKey(key string) bool { return strings.EqualFold(s.key, key) }

// confLine is a line of slurm.conf: comments gone, lines that end in \ joined.
type confLine struct {
	line int
	text string
}

// confLines takes slurm.conf apart.
func confLines(text string) (out []confLine) {
	joined, from := "", 0
	for i, l := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		l = stripComment(l)
		if joined == "" {
			from = i + 1
		}
		if cut, ok := strings.CutSuffix(strings.TrimRight(l, " \t"), `\`); ok {
			joined += cut + " "
			continue
		}
		if joined += l; strings.TrimSpace(joined) != "" {
			out = append(out, confLine{from, strings.TrimSpace(joined)})
		}
		joined = ""
	}
	if strings.TrimSpace(joined) != "" {
		out = append(out, confLine{from, strings.TrimSpace(joined)})
	}
	return out
}

// stripComment cuts what stands behind a # that is not escaped.
func stripComment(l string) string {
	for i := range l {
		if l[i] == '#' && (i == 0 || l[i-1] != '\\') {
			return l[:i]
		}
	}
	return l
}

// splitSettings takes a line apart at blanks; values may stand in quotes.
func (l confLine) splitSettings(file string) (out []setting) {
	rest := l.text
	for {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return out
		}
		s := setting{file: file, line: l.line}
		i := strings.IndexAny(rest, "= \t")
		switch {
		case i < 0:
			s.key, rest, s.alone = rest, "", true
		case strings.HasPrefix(strings.TrimLeft(rest[i:], " \t"), "="):
			s.key = strings.TrimRight(strings.TrimSuffix(rest[:i], "+"), "-") // Key+=, Key-=
			rest = strings.TrimLeft(strings.TrimLeft(rest[i:], " \t")[1:], " \t")
			s.value, rest = firstWord(rest)
		default:
			s.key, rest, s.alone = rest[:i], rest[i:], true
		}
		out = append(out, s)
	}
}

// firstWord is the first value of a text: in quotes, or up to a blank.
func firstWord(s string) (value, rest string) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if i := strings.IndexByte(s[1:], s[0]); i >= 0 {
			return s[1 : i+1], s[i+2:]
		}
		return s[1:], ""
	}
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// dumpLine is a line of sacctmgr dump: Kind - 'name':Key=Value:…
type dumpLine struct {
	kind, name string
	options    []setting
}

// dumpLineOf reads a line of a dump; false if it is none.
func dumpLineOf(file string, line int, text string) (dumpLine, bool) {
	kind, rest, ok := strings.Cut(text, "-")
	if !ok {
		return dumpLine{}, false
	}
	d := dumpLine{kind: strings.ToLower(strings.TrimSpace(kind))}
	for i, part := range rejoinParts(splitQuoted(strings.TrimSpace(rest), ':')) {
		if i == 0 {
			d.name = unquoteText(part)
			continue
		}
		if part == "" {
			continue
		}
		key, value, paired := strings.Cut(part, "=")
		d.options = append(d.options, setting{file: file, line: line, key: strings.TrimSpace(strings.TrimRight(key, "+-")), value: unquoteText(value), alone: !paired})
	}
	return d, d.name != "" && strings.IndexFunc(d.kind, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// rejoinParts puts together what a colon inside of a value took apart: gres/gpu:h100=4,
// 1-00:00:00. An option has a name of letters.
func rejoinParts(parts []string) (out []string) {
	for i, part := range parts {
		name, _, paired := strings.Cut(part, "=")
		name = strings.TrimRight(name, "+- ")
		letters := strings.IndexFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
		before := ""
		if i > 0 {
			before = out[len(out)-1][strings.LastIndexAny(out[len(out)-1], ",=")+1:]
		}
		if i > 1 && part != "" && (!paired || !letters || strings.HasPrefix(strings.ToLower(before), "gres/") && !strings.Contains(before, ":")) {
			out[len(out)-1] += ":" + part
			continue
		}
		out = append(out, part)
	}
	return out
}

// splitQuoted cuts at a separator that is not inside of quotes.
func splitQuoted(s string, sep byte) (out []string) {
	from, quote := 0, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && c == sep:
			out, from = append(out, s[from:i]), i+1
		}
	}
	return append(out, s[from:])
}

func unquoteText(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return strings.Trim(s, `'"`)
}
