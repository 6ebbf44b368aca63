package upload

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// ignore is what files as a .gitignore say. The last line that is about a name decides.
type ignore []rule

type rule struct {
	base    string         // directory that it is about; "": all
	pattern *regexp.Regexp // of the whole name below the directory
	dirs    bool           // it is about directories alone
	keep    bool           // what it is about is not left out
}

// parseIgnore reads the lines of an IgnoreFile. The error begins with the line's number.
func parseIgnore(text string) (ignore, error) {
	var out ignore
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " \t")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r rule
		if line[0] == '!' {
			r.keep, line = true, line[1:]
		}
		line = strings.TrimPrefix(line, "./")
		if strings.HasSuffix(line, "/") {
			r.dirs, line = true, strings.TrimRight(line, "/")
		}
		if line == "" {
			return nil, fmt.Errorf("%d: there is no name in this line", n)
		}
		text, err := patternExpression(line)
		if err == nil {
			r.pattern, err = regexp.Compile(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %.100q is no pattern: %w", n, line, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// parseGitIgnore reads the .gitignore of a directory. As git does it passes over lines that are no pattern.
func parseGitIgnore(base, text string) (out ignore) {
	for line := range strings.Lines(text) {
		if rules, err := parseIgnore(line); err == nil {
			out = append(out, rules...)
		}
	}
	for i := range out {
		out[i].base = base
	}
	return out
}

// patternExpression is a pattern as a regular expression. One with a slash that is not its last
// character is of the name from the top, another of the name's last part.
func patternExpression(pattern string) (string, error) {
	var b strings.Builder
	b.WriteString("^")
	if !strings.Contains(pattern, "/") {
		b.WriteString("(?:.*/)?")
	}
	pattern = strings.TrimPrefix(pattern, "/")
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		begins := i == 0 || pattern[i-1] == '/'
		switch {
		case begins && strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case begins && rest == "**":
			b.WriteString(".+")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[':
			end := strings.IndexByte(rest[min(2, len(rest)):], ']')
			if end < 0 {
				return "", fmt.Errorf("a bracket is not closed")
			}
			set := rest[1 : end+2]
			if strings.HasPrefix(set, "!") {
				set = "^" + set[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(set, `[`, `\[`) + "]")
			i += end + 2
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i++
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	b.WriteString("$")
	return b.String(), nil
}

// isIgnored reports whether something is left out. What is in a directory that is left out is not
// asked for.
func (g ignore) isIgnored(name string, dir bool) bool {
	out := false
	for _, r := range g {
		below, ok := nameBelow(r.base, path.Clean(name))
		if ok && (dir || !r.dirs) && r.pattern.MatchString(below) {
			out = !r.keep
		}
	}
	return out
}

// nameBelow is a name as it is from a directory on.
func nameBelow(base, name string) (string, bool) {
	if base == "" || base == "." {
		return name, true
	}
	return strings.CutPrefix(name, base+"/")
}
