package native

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// form is what a field's value may look like.
type form struct {
	text   string        // for documentation
	schema func() schema // for editors; made when it is asked for, which commands do not
	empty  bool          // a field without a value is taken
}

// maxCount is the largest number of nodes, tasks or CPUs that can be asked for.
const maxCount = math.MaxInt32

// Patterns of texts, for the schema; the parser is the judge.
const (
	timePattern = `^(([0-9]+(\.[0-9]+)?[dhms])+|[0-9]+-[0-9:]+|[0-9]+:[0-9:]+|[uU]nlimited|UNLIMITED)$`
	sizePattern = `^[0-9]+(\.[0-9]+)?[KMGTkmgt](i?[Bb])?$`
)

var (
	aText     = form{text: "text", schema: scalarSchema}
	aBool     = form{text: "true, false", schema: func() schema { return schema{"type": "boolean"} }}
	aCount    = form{text: "number from 1", schema: integerSchema(1, maxCount)}
	anAmount  = form{text: "number from 1", schema: integerSchema(1, math.MaxInt64)} // of what may be counted in bytes
	aDuration = form{text: "30m, 4h, 1d12h, 90s, D-H:M:S, H:M:S, unlimited", schema: patternSchema(timePattern)}
	aSize     = form{text: "512M, 32G, 1.5T", schema: patternSchema(sizePattern)}
	aShare    = form{text: "1 to 1000, 20G", schema: anyOf(integerSchema(1, 1000), patternSchema(sizePattern))}
	aSizeAll  = form{text: "512M, 32G, all", schema: anyOf(patternSchema(sizePattern), func() schema { return schema{"const": "all"} })}
	aList     = form{text: "text, a,b or [a, b]", schema: anyOf(scalarSchema, listOf(scalarSchema, 1, 0))}
	aWhen     = form{text: "2026-01-31T18:00, 18:00, tomorrow, now+2hours", schema: func() schema { return schema{"type": []string{"string", "integer"}} }}
)

func aNumber(least, most int64) form {
	return form{text: "number", schema: integerSchema(least, most)}
}

// parseText is a scalar as it was written.
func (p *parser) parseText(v value) (string, bool) {
	if v.Kind == yaml.Scalar && strings.IndexByte(v.Text, 0) < 0 {
		return v.Text, true
	}
	if v.Kind == yaml.Scalar {
		p.failValue(v, "", "holds a NUL character")
		return "", false
	}
	p.failValue(v, "", "is %s where text is expected", v.Kind)
	return "", false
}

// parseLine is text of one line that is not empty.
func (p *parser) parseLine(v value) (string, bool) {
	s, ok := p.parseText(v)
	switch {
	case !ok:
		return "", false
	case s == "":
		p.failValue(v, "write a value, or leave the field out", "is empty")
		return "", false
	case strings.ContainsAny(s, "\n\r"):
		p.failValue(v, "", "is more than one line")
		return "", false
	}
	return s, true
}

// parsePlain is a scalar without quotes, for numbers and true or false.
func (p *parser) parsePlain(v value, wanted string) (string, bool) {
	switch {
	case v.Kind != yaml.Scalar:
		p.failValue(v, "", "is %s where %s is expected", v.Kind, wanted)
		return "", false
	case v.Quoted:
		p.failValue(v, "take the quotes away", "is text where %s is expected", wanted)
		return "", false
	}
	return v.Text, true
}

func (p *parser) parseBool(v value) bool {
	s, ok := p.parsePlain(v, "true or false")
	if ok && s != "true" && s != "false" {
		p.failValue(v, "write true or false", "%q is neither true nor false", shortName(s))
	}
	return s == "true"
}

// parseNumber reads a whole number between least and most.
func (p *parser) parseNumber(v value, least, most int64) int64 {
	s, ok := p.parsePlain(v, "a number")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.failValue(v, "", "%q is not a whole number", shortName(s))
	case err != nil || n < least || n > most:
		p.failValue(v, "", "%s is not between %d and %d", shortName(s), least, most)
	default:
		return n
	}
	return 0
}

func (p *parser) parseCount(v value) int { return int(p.parseNumber(v, 1, maxCount)) }

// parseCPUs reads a number of CPUs, in thousandths.
func (p *parser) parseCPUs(v value) resource.Amount {
	s, ok := p.parsePlain(v, "a number of CPUs")
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	n := math.Round(f * 1000)
	if err != nil || !(f >= 0) || f > maxCount || n != f*1000 && math.Abs(n-f*1000) > 1e-6 || strings.ContainsAny(s, "xXpP_") {
		p.failValue(v, "write a number such as 4 or 0.5", "%q is no number of CPUs", shortName(s))
		return 0
	}
	return resource.Amount(n)
}

// parseDuration reads "1d12h", or one of Slurm's forms; 0 means unlimited.
func (p *parser) parseDuration(v value) time.Duration {
	s, ok := p.parseLine(v)
	if !ok {
		return 0
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		p.failValue(v, "write "+shortName(s)+"m for minutes, "+shortName(s)+"h for hours", "%s has no unit", shortName(s))
		return 0
	}
	if d, ok := slurmfmt.ParseUnits(s); ok {
		if d <= 0 || d > slurmfmt.MaxTimeLimit || d%time.Second != 0 {
			p.failValue(v, "write unlimited for no limit", "%q is not between a second and 100 years, in whole seconds", shortName(s))
		}
		return d
	}
	d, err := slurmfmt.ParseTimeLimit(s)
	switch {
	case err != nil:
		p.failValue(v, "forms: "+aDuration.text, "%q is not a time", shortName(s))
	case strings.Count(s, ":") == 1 && !strings.Contains(s, "-"):
		p.addWarning(v, "is minutes and seconds, as sbatch reads it: %s; write 10h30m for hours and minutes", formatDuration(d))
	}
	return d
}

// formatDuration prints whole seconds in units: "1d12h".
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	var b strings.Builder
	for _, unit := range "dhms" {
		size := slurmfmt.UnitOf(byte(unit))
		if n := d / size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteRune(unit)
			d -= n * size
		}
	}
	return b.String()
}

// sizes are the units of a size in bytes.
var sizes = map[byte]resource.Amount{'k': resource.KiB, 'm': resource.MiB, 'g': resource.GiB, 't': resource.TiB}

// parseSize reads a size in bytes; a unit is a power of 1024.
func (p *parser) parseSize(v value) resource.Amount {
	s, ok := p.parseLine(v)
	if !ok {
		return 0
	}
	number, unit := s, byte(0)
	if end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end > 0 {
		rest := strings.ToLower(s[end:])
		if suffix := rest[1:]; suffix == "" || suffix == "b" || suffix == "ib" {
			number, unit = s[:end], rest[0]
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	scale, known := sizes[unit]
	switch {
	case err == nil && unit == 0:
		p.failValue(v, "write "+shortName(s)+"M or "+shortName(s)+"G", "%s has no unit", shortName(s))
	case err != nil || !known:
		p.failValue(v, "forms: "+aSize.text, "%q is not a size", shortName(s))
	case f*float64(scale) < 1 || f*float64(scale) > float64(1<<62):
		p.failValue(v, "", "%s is not between 1 byte and 4 EiB", shortName(s))
	default:
		return resource.Amount(math.Round(f * float64(scale)))
	}
	return 0
}

// formatSize prints bytes so that size reads them back.
func formatSize(a resource.Amount) (string, bool) {
	for _, u := range []struct {
		name byte
		size resource.Amount
	}{{'T', resource.TiB}, {'G', resource.GiB}, {'M', resource.MiB}, {'K', resource.KiB}} {
		if a%u.size == 0 {
			return strconv.FormatInt(int64(a/u.size), 10) + string(u.name), a > 0
		}
	}
	return strconv.FormatFloat(float64(a)/float64(resource.KiB), 'f', -1, 64) + "K", a > 0 && a < 1<<40
}

// parseList reads "a", "a,b" or [a, b].
func (p *parser) parseList(v value) []string {
	var out []string
	for _, item := range p.listItems(v) {
		s, ok := p.parseLine(item)
		if !ok {
			return nil
		}
		for part := range strings.SplitSeq(s, ",") {
			part = strings.TrimSpace(part)
			if part == "" || strings.ContainsAny(part, " \t") {
				p.failValue(item, "forms: a, "+strconv.Quote("a,b")+", [a, b]", "%q is no name", shortName(part))
				return nil
			}
			out = append(out, part)
		}
	}
	return out
}

// listItems are the entries of a list, or the value itself.
func (p *parser) listItems(v value) []value {
	if v.Kind != yaml.List {
		return []value{v}
	}
	if len(v.Items) == 0 {
		p.failValue(v, "leave the field out", "is an empty list")
	}
	out := make([]value, len(v.Items))
	for i, n := range v.Items {
		out[i] = value{Node: n, path: v.path + "[" + strconv.Itoa(i) + "]", name: v.name, at: n.Place}
		if out[i].at.Len == 0 {
			out[i].at = v.at
		}
	}
	return out
}

// parseHosts reads a host list, "gpu[1-4],login" or a list of these, each name once.
func (p *parser) parseHosts(v value) []string {
	var out []string
	seen := map[string]bool{}
	total := 0
	for _, item := range p.listItems(v) {
		s, ok := p.parseLine(item)
		if !ok {
			return nil
		}
		n, err := hostlist.Count(s) // before anything is made of it
		if total += n; err == nil && total > hostlist.MaxHosts {
			p.failValue(v, "", "names more than %d hosts", hostlist.MaxHosts)
			return nil
		}
		var names []string
		if err == nil {
			names, err = hostlist.Expand(s)
		}
		var bad *hostlist.Error
		if errors.As(err, &bad) {
			p.failPart(item, bad.Offset, bad.Len, "", "%s", strings.TrimPrefix(bad.Error(), "host list: "))
			return nil
		}
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	if len(out) == 0 {
		p.failValue(v, "", "names no host")
	}
	return out
}

// failSlurmValue blames a value for what slurmfmt found.
func (p *parser) failSlurmValue(v value, err error, remedy string) {
	var bad *slurmfmt.Error
	if !errors.As(err, &bad) {
		p.failValue(v, remedy, "%s", err)
		return
	}
	reason := bad.Reason
	if part := bad.Text[bad.Offset : bad.Offset+bad.Len]; part != "" {
		reason = strconv.Quote(shortName(part)) + " " + reason
	}
	p.failPart(v, bad.Offset, bad.Len, remedy, "%s", reason)
}
