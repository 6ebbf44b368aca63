package sbatch

import (
	"fmt"
	"strings"
)

// LicenseForms are the forms of --licenses.
const LicenseForms = "NAME, NAME:COUNT, NAME@SERVER:COUNT, lists of these with commas (all of them) or | (one of them)"

// LicenseFault finds what is wrong with a text of --licenses: the n bytes from at, and why. The
// reason is empty if it can be read; what licences there are is for the site to know.
func LicenseFault(text string) (at, n int, reason string) {
	either := strings.Contains(text, "|")
	if either && strings.ContainsAny(text, ",;") {
		return 0, len(text), fmt.Sprintf("%q asks for all (,) and for one of them (|)", text)
	}
	named := false
	for part, rest, more := "", text, true; more; at += len(part) + 1 {
		k := strings.IndexAny(rest, ",;|")
		if more = k >= 0; !more {
			k = len(rest)
		}
		if part = rest[:k]; more {
			rest = rest[k+1:]
		}
		name, count, counted := strings.Cut(part, ":")
		wanted, ok := nodeCount(count)
		switch {
		case part == "" && either:
			return min(at, len(text)-1), 1, fmt.Sprintf("%q has no licence on one side of |", text)
		case part == "":
			continue
		case strings.ContainsAny(name, " =/") || name == "" || counted && count != "0" && (!ok || wanted < 1):
			return at, len(part), fmt.Sprintf("%q is no licence", part)
		case either && counted && count == "0":
			return at, len(part), fmt.Sprintf("%q asks for none, so the others would never be had", part)
		}
		named = true
	}
	if text != "" && !named {
		return 0, len(text), fmt.Sprintf("%q names no licence", text)
	}
	return 0, 0, ""
}

// parseLicenses checks the form of each part of --licenses.
func (p *parser) parseLicenses(set settings) string {
	d, ok := set.get("licenses")
	if !ok {
		return ""
	}
	if at, n, reason := LicenseFault(d.Value); reason != "" {
		p.blamePart(d, at, n, reason, "forms: "+LicenseForms)
		return ""
	}
	return d.Value
}
