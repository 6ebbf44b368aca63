package slurmfmt

import (
	"math"
	"strings"
)

// GRESForms lists the forms of --gres, for messages.
const GRESForms = "gpu, gpu:2, gpu:h100, gpu:h100:2, lists of these"

// GPUForms lists the forms of --gpus and its relatives, for messages.
const GPUForms = "2, h100:2, h100:2,a100:1"

// GRES is a count of a generic resource. Offset and Len say where it stands in
// the text that was read.
type GRES struct {
	Name, Type  string // Type empty: any
	Count       int64
	Offset, Len int
}

// ParseGRES reads a list "name[[:type]:count]"; count defaults to 1 and may end
// in k, m, g, t or p (powers of 1024). "none" and an empty list ask for nothing.
func ParseGRES(s string) ([]GRES, error) {
	if s == "" || strings.EqualFold(s, "none") {
		return nil, nil
	}
	var out []GRES
	at := 0
	for part := range strings.SplitSeq(s, ",") {
		g, reason := parseOneGRES(part)
		if reason != "" {
			return nil, wrongPart(s, at, at+len(part), "%s", reason)
		}
		g.Offset, g.Len = at, len(part)
		out = append(out, g)
		at += len(part) + 1
	}
	return out, nil
}

func parseOneGRES(part string) (g GRES, reason string) {
	bad := "is not a generic resource (forms: " + GRESForms + ")"
	text := strings.TrimPrefix(strings.TrimPrefix(part, "gres:"), "gres/")
	if name, count, ok := strings.Cut(text, "="); ok && allDigits(count) { // as TRES are written: gpu=2, gpu:a100=2
		text = name + ":" + count
	}
	fields := strings.Split(text, ":")
	if len(fields) > 3 || strings.ContainsAny(text, "=/() \t") {
		return g, bad
	}
	g = GRES{Name: fields[0], Count: 1}
	if g.Name == "" {
		return g, bad
	}
	if len(fields) == 1 {
		return g, ""
	}
	count, ok := parseCount(fields[len(fields)-1])
	switch {
	case len(fields) == 3 && (!ok || fields[1] == ""):
		return g, bad
	case len(fields) == 3:
		g.Type, g.Count = fields[1], count
	case ok:
		g.Count = count
	case fields[1] == "" || strings.HasPrefix(fields[1], "-") || looksLikeNumber(fields[1]):
		return g, bad
	default:
		g.Type = fields[1]
	}
	return g, ""
}

// looksLikeNumber tells a mistyped or too large count from a type: "2x", "2.5" and
// "99999999999999999999" are counts gone wrong, "1g.10gb" and "3090" types.
func looksLikeNumber(s string) bool {
	if whole, part, ok := strings.Cut(s, "."); ok && allDigits(whole) && allDigits(part) {
		return true
	}
	return allDigits(s) || allDigits(s[:len(s)-1]) && !strings.ContainsAny(s[len(s)-1:], "kmgtpKMGTP")
}

// parseCount reads "2", "20g".
func parseCount(s string) (int64, bool) {
	shift := 0
	if s != "" {
		if i := strings.IndexByte("kmgtp", s[len(s)-1]|0x20); i >= 0 {
			shift = 10 * (i + 1)
			s = s[:len(s)-1]
		}
	}
	n, ok := parseDigits(s)
	return n << shift, ok && n <= math.MaxInt64>>shift
}

// ParseGPUs reads "[type:]count" and lists of it, the form of --gpus,
// --gpus-per-node, --gpus-per-socket and --gpus-per-task. A type alone counts 1.
func ParseGPUs(s string) ([]GRES, error) {
	var out []GRES
	at := 0
	for part := range strings.SplitSeq(s, ",") {
		text := strings.TrimPrefix(strings.TrimPrefix(part, "gres:"), "gpu:")
		g, reason := parseOneGRES("gpu:" + text)
		if reason != "" {
			return nil, wrongPart(s, at, at+len(part), "is not a number of GPUs (forms: %s)", GPUForms)
		}
		g.Offset, g.Len = at, len(part)
		out = append(out, g)
		at += len(part) + 1
	}
	return out, nil
}

// TRESForms lists the forms of --tres-per-task, for messages.
const TRESForms = "cpu:2, mem:4G, gres/gpu:1, gres/gpu:h100:2, lists of these"

// TRES is one trackable resource of a list: "cpu", "mem", "gres/gpu" …
type TRES struct {
	Name  string // "cpu", "mem", "gres/NAME", "license/NAME"
	Type  string // of a gres, may be empty
	Value string // as written
	GRES  GRES   // for gres/…: the same as a GRES
}

// ParseTRES reads "cpu:2,gres/gpu:h100:1"; "=" may stand before the count.
func ParseTRES(s string) ([]TRES, error) {
	var out []TRES
	at := 0
	for part := range strings.SplitSeq(s, ",") {
		bad := wrongPart(s, at, at+len(part), "is not a list of resources (forms: %s)", TRESForms)
		text := strings.Replace(part, "=", ":", 1)
		if rest, ok := strings.CutPrefix(text, "gres:"); ok { // the older spelling
			text = "gres/" + rest
		}
		name, value, ok := strings.Cut(text, ":")
		t := TRES{Name: strings.ToLower(name), Value: value}
		switch {
		case strings.HasPrefix(t.Name, "gres/"):
			g, reason := parseOneGRES(text)
			if reason != "" {
				return nil, bad
			}
			g.Offset, g.Len = at, len(part)
			t.GRES, t.Type = g, g.Type
		case !ok || value == "" || name == "":
			return nil, bad
		}
		out = append(out, t)
		at += len(part) + 1
	}
	return out, nil
}
