package input

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// templateEnds are the ends of the names of templates, with the language that they mean.
var templateEnds = []struct{ end, language string }{
	{".j2", "Jinja"},
	{".jinja", "Jinja"},
	{".jinja2", "Jinja"},
	{".tftpl", "Terraform"},
	{".mustache", "Mustache"},
	{".mako", "Mako"},
	{".erb", "ERB"},
	{".tpl", ""},
	{".tmpl", ""},
	{".gotmpl", "Go"},
	{".template", ""},
	{".in", ""},
}

// hole is a place of a template that is to be filled.
type hole struct {
	line     int
	col, len int // from 1
	text     string
}

// templateOf is the input for a template with a hole.
func templateOf(name, text string, h hole) Input {
	language := languageOf(name, text, h)
	in := Input{Kind: Template, What: "a template of " + language, Line: h.line, Col: h.col, Len: h.len, Text: h.text}
	file := shownName(name, "FILE")
	out := "rendered" + renderedEnd(name)
	switch language {
	case "Helm":
		chart := "CHART"
		if dir, _, ok := strings.Cut("/"+file, "/templates/"); ok {
			if chart = strings.TrimPrefix(dir, "/"); chart == "" {
				chart = "."
			}
			if strings.HasPrefix(file, "/") {
				chart = "/" + chart
			}
		}
		in.Remedy = "render it first: helm template " + chart + " > " + out
	case "Jinja":
		in.Remedy = "render it first: jinja2 " + file + " VALUES.yaml > " + out + " (or the tool that it belongs to)"
	case "Go":
		in.Remedy = "render it first: gomplate -f " + file + " > " + out + " (or the tool that it belongs to)"
	case "Mustache", "Mako", "ERB":
		in.Remedy = "render it first with the tool that it belongs to, and write the result to " + out
	case "Terraform":
		in.Remedy = "render it first with Terraform's templatefile(), and write the result to " + out
	default:
		in.What = "a template with variables of the shell"
		in.Remedy = "fill in the variables first: envsubst < " + file + " > " + out
	}
	return in
}

// renderedEnd is the end of the name of what a template becomes.
func renderedEnd(name string) string {
	base := path.Base(name)
	for _, end := range templateEnds {
		base = strings.TrimSuffix(base, end.end)
	}
	switch ext := path.Ext(base); ext {
	case "", ".":
		return ".yaml"
	default:
		return ext
	}
}

// languageOf says which language a template is in, by the end of its name or its words; "" for
// variables of the shell.
func languageOf(name, text string, h hole) string {
	for _, end := range templateEnds {
		if strings.HasSuffix(strings.ToLower(name), end.end) && end.language != "" {
			return end.language
		}
	}
	hole := h.text[min(max(h.col-1, 0), len(h.text)):]
	switch {
	case strings.HasPrefix(hole, "${"), strings.HasPrefix(hole, "$"):
		return ""
	case strings.Contains(text, "{%"):
		return "Jinja"
	case helmWords().MatchString(text), strings.Contains("/"+name, "/templates/"):
		return "Helm"
	case goWords().MatchString(text):
		return "Go"
	}
	return "Jinja"
}

var (
	helmWords = lazyRegexp(`\{\{-?\s*(?:\$?\.(?:Values|Release|Chart|Files|Capabilities|Template)\b|include\s|template\s|tpl\s|toYaml\b|\$root\b|/\*)`)
	goWords   = lazyRegexp(`\{\{-?\s*(?:\.|\$|if\s|range\s|with\s|end\b|define\s|else\b)`)

	// yamlHole is a hole where YAML has a line, a key or a value; quoted values count.
	yamlHole = lazyRegexp(`^\s*\{[{%]|^[^#'"]*[:\-\[,]\s*["']?[^"'#{}]*\{\{|^\s*[\w./-]*\{\{`)
	// shellHole is a variable in the value of a key; the first group is the key, the second the variable.
	shellHole = lazyRegexp(`^\s*(?:-\s+)?["']?([\w./-]+)["']?:\s+["']?[\w./:@-]*(\$\{\w+[^}]*\}|\$[A-Z_]{2,}\b)`)
)

func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// shellKeys are the fields whose text a shell or the job's environment expands later, or that are free text.
var shellKeys = []string{
	"script", "command", "args", "run", "setup", "value", "env", "export", "output", "error", "input", "workdir", "comment", "chdir", "wrap",
}

// yamlTemplate recognises a template of YAML. Text of a block ("script: |") is a program and
// does not count. In a job variables of the shell count at the first column alone: what stands
// deeper (env) is text.
func yamlTemplate(name, text string, manifest bool) (Input, bool) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") && !strings.Contains(text, "$") {
		return Input{}, false
	}
	n, block := 0, -1
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, "\r\n")
		indent := len(l) - len(strings.TrimLeft(l, " "))
		trimmed := l[indent:]
		if trimmed == "" || block >= 0 && indent > block {
			continue
		}
		if block = -1; opensBlock(trimmed) {
			block = indent
		}
		if strings.HasPrefix(trimmed, "#") || len(l) > maxLine {
			continue
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(trimmed, "- "), ":")
		if !manifest && slices.Contains(shellKeys, key) {
			continue
		}
		if at := holeStart(l); at >= 0 && yamlHole().MatchString(l) {
			return templateOf(name, text, hole{line: n, col: at + 1, len: holeLength(l[at:]), text: l}), true
		}
		if m := shellHole().FindStringSubmatchIndex(l); m != nil && (manifest || indent == 0) && !slices.Contains(shellKeys, l[m[2]:m[3]]) {
			return templateOf(name, text, hole{line: n, col: m[4] + 1, len: m[5] - m[4], text: l}), true
		}
	}
	return Input{}, false
}

// holeStart is where the first hole of a line begins; -1: it has none.
func holeStart(l string) int {
	a, b := strings.Index(l, "{{"), strings.Index(l, "{%")
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// maxLine is how many bytes a line may have in which holes are looked for.
const maxLine = 16 << 10

// opensBlock reports whether a line of YAML begins a block of text.
func opensBlock(l string) bool {
	i := strings.LastIndexAny(l, "|>")
	return i > 0 && l[i-1] == ' ' && strings.Trim(l[i+1:], "+-0123456789 ") == "" && strings.ContainsAny(l[:i], ":-")
}

// holeLength is how many bytes a hole has that a text begins with.
func holeLength(s string) int {
	for _, end := range []string{"}}", "%}"} {
		if i := strings.Index(s, end); i >= 0 {
			return i + 2
		}
	}
	return len(s)
}

// batchTemplate recognises a template of a batch script: a hole in a directive, or a line of
// Jinja, which no shell has.
func batchTemplate(name, text string) (Input, bool) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") {
		return Input{}, false
	}
	n := 0
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, "\r\n")
		at := -1
		switch {
		case strings.HasPrefix(l, "#SBATCH"):
			at = strings.Index(l, "{{")
		case strings.HasPrefix(strings.TrimLeft(l, " "), "{%") && strings.Contains(l, "%}"):
			at = strings.Index(l, "{%")
		}
		if at >= 0 {
			in := templateOf(name, text, hole{line: n, col: at + 1, len: holeLength(l[at:]), text: l})
			in.What += " of a batch script"
			return in, true
		}
	}
	return Input{}, false
}
