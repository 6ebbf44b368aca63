package policy

import (
	"errors"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// unit says how an amount of one thing is written.
type unit struct {
	name  string // "thousandths", "bytes", "number"
	hours bool   // amounts are minutes of the thing; h and d behind them are hours and days
}

// tresForms are the names of countable things.
const tresForms = "cpu, memory, disk, gpu, gpu:TYPE, node, billing, license/NAME, or a resource of the site"

// known things, and other words for them.
var (
	tresKnown = []string{"cpu", "memory", "disk", "gpu", "node", "billing", "job", "task"}
	tresAlso  = map[string]string{
		"cpus": "cpu", "core": "cpu", "cores": "cpu", "mem": "memory", "ram": "memory", "gpus": "gpu", "gres/gpu": "gpu", "nvidia.com/gpu": "gpu",
		"nodes": "node", "jobs": "job", "tasks": "task", "pods": "job",
	}
)

// tresName says what is wrong about the name of a countable thing; "": nothing.
func tresName(name string) string {
	switch also := tresAlso[strings.ToLower(name)]; {
	case also != "":
		return "no such name; did you mean " + also + "?"
	case strings.HasPrefix(name, "gres/gpu:"):
		return "no such name; did you mean gpu:" + strings.TrimPrefix(name, "gres/gpu:") + "?"
	case strings.HasPrefix(name, "gpu:"), strings.HasPrefix(name, "license/"):
		if _, rest, _ := strings.Cut(strings.Replace(name, "license/", "license:", 1), ":"); !plainName(rest) {
			return "has no name behind " + name[:len(name)-len(rest)]
		}
	case !plainName(strings.ReplaceAll(name, "/", "_")):
		return "is no name: letters, digits, -, _, . and /"
	default:
		for _, k := range tresKnown {
			if name == k {
				return ""
			}
		}
		if near := nearestName(name, tresKnown); near != "" {
			return "no such name; did you mean " + near + "?"
		}
	}
	return ""
}

// plainName reports whether a text can be the name of something.
func plainName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for _, r := range s {
		if !strings.ContainsRune("-_.@+", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}

func validText(s string) bool { return utf8.ValidString(s) && len(s) <= 4096 }

// unitOf is the unit of a countable thing in a field.
func unitOf(name, field string) unit {
	u := unit{name: "number", hours: strings.HasSuffix(field, "minutes")}
	switch {
	case name == "cpu" || name == "gpu" || strings.HasPrefix(name, "gpu:"):
		u.name = "thousandths"
	case name == "memory" || name == "disk":
		u.name = "bytes"
	}
	return u
}

func (u unit) formsText() string {
	forms := map[string]string{"thousandths": "write a number, as 8 or 0.5", "bytes": "write a number with its unit, as 512GiB or 2TiB", "number": "write a whole number"}[u.name]
	if u.hours && u.name != "bytes" {
		forms += "; it is minutes: 100h are 6000"
	}
	return forms
}

// parseAmount reads an amount. Its second result says what is wrong; "": nothing.
func (u unit) parseAmount(text string) (resource.Amount, string) {
	scale, body := uint64(1), text
	if u.hours && u.name != "bytes" {
		for suffix, minutes := range map[string]uint64{"h": 60, "d": 24 * 60} {
			if cut, ok := strings.CutSuffix(text, suffix); ok {
				scale, body = minutes, cut
			}
		}
	}
	switch u.name {
	case "bytes":
		return parseBytes(text)
	case "thousandths":
		whole, part, dot := strings.Cut(body, ".")
		if dot && (part == "" || len(part) > 3) {
			return 0, "has more than three digits behind the point"
		}
		n, err := strconv.ParseUint(whole+(part + "000")[:3], 10, 63)
		return scaleAmount(n, scale, err)
	}
	n, err := strconv.ParseUint(body, 10, 63)
	return scaleAmount(n, scale, err)
}

// scaleAmount is n·by, if n could be read and that can be counted.
func scaleAmount(n, by uint64, err error) (resource.Amount, string) {
	high, low := bits.Mul64(n, by)
	switch {
	case err != nil && strings.Contains(err.Error(), "range"), high > 0, low > uint64(resource.Unlimited)/2:
		return 0, "is more than can be counted"
	case err != nil:
		return 0, "is no amount"
	}
	return resource.Amount(low), ""
}

// byteUnits from the largest.
var byteUnits = []struct {
	name  string
	shift uint
}{{"EiB", 60}, {"PiB", 50}, {"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}

// parseBytes reads 512GiB, 512G, 1.5TiB. Powers of 1024 all of them.
func parseBytes(text string) (resource.Amount, string) {
	if text == "0" {
		return 0, ""
	}
	i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		return 0, "has no unit"
	}
	number, name := text[:i], strings.TrimSpace(text[i:])
	for _, u := range byteUnits {
		if name != u.name && name != u.name[:1] && (u.shift == 0 || name != u.name[:1]+"B") {
			continue
		}
		whole, part, dot := strings.Cut(number, ".")
		n, err := strconv.ParseUint(whole, 10, 63)
		a, wrong := scaleAmount(n, 1<<u.shift, err)
		if wrong != "" || !dot {
			return a, wrong
		}
		f, err := strconv.ParseUint(part, 10, 63)
		if err != nil || len(part) > 3 {
			return 0, "has more than three digits behind the point"
		}
		for range 3 - len(part) {
			f *= 10
		}
		high, low := bits.Mul64(f, 1<<u.shift)
		rest, _ := bits.Div64(high, low, 1000)
		return a.Add(resource.Amount(rest)), ""
	}
	return 0, "is no size"
}

// formatAmount writes an amount as parse reads it.
func (u unit) formatAmount(a resource.Amount) string {
	switch u.name {
	case "bytes":
		if a == 0 {
			return "0"
		}
		for _, x := range byteUnits {
			if a%(1<<x.shift) == 0 {
				return strconv.FormatInt(int64(a>>x.shift), 10) + x.name
			}
		}
	case "thousandths":
		s := strconv.FormatInt(int64(a/1000), 10)
		if part := int64(a % 1000); part != 0 {
			s += "." + strings.TrimRight(strconv.FormatInt(1000+part, 10)[1:], "0")
		}
		return s
	}
	return strconv.FormatInt(int64(a), 10)
}

// parseDuration reads 90s, 5m, 2h30m, 30d, 1d12h.
func parseDuration(text string) (account.Duration, string) {
	const day = 24 * time.Hour
	if text == "0" {
		return 0, ""
	}
	var v time.Duration
	rest := text
	if n, after, ok := strings.Cut(text, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		if errors.Is(err, strconv.ErrRange) {
			return 0, "is longer than can be reckoned"
		}
		if err != nil {
			return 0, "is not a length of time"
		}
		v, rest = time.Duration(days)*day, after
		if rest == "" {
			return account.Duration(v), ""
		}
	}
	w, err := time.ParseDuration(rest)
	if err != nil && v == 0 && strings.ContainsAny(text, ":-") { // as Slurm writes it: 1:30:00, 2-0
		w, err = slurmfmt.ParseDuration(text)
	}
	switch {
	case err != nil:
		return 0, "is not a length of time"
	case w < 0 || v+w < 0:
		return 0, "is not a duration that can be waited for"
	}
	return account.Duration(v + w), ""
}

// formatDuration is the shortest exact form.
func formatDuration(d account.Duration) string {
	const day = 24 * time.Hour
	t := time.Duration(d)
	if t == 0 {
		return "0"
	}
	s := ""
	if t >= 2*day {
		s, t = strconv.FormatInt(int64(t/day), 10)+"d", t%day
		if t == 0 {
			return s
		}
	}
	rest := t.String()
	if strings.HasSuffix(rest, "m0s") {
		rest = strings.TrimSuffix(rest, "0s")
	}
	if strings.HasSuffix(rest, "h0m") {
		rest = strings.TrimSuffix(rest, "0m")
	}
	return s + rest
}

// word is a word for a number.
type word struct {
	word string
	n    int64
}

func wordsOf(tag reflect.StructTag) (out []word) {
	for part := range strings.SplitSeq(tag.Get("words"), ",") {
		if w, n, ok := strings.Cut(part, "="); ok {
			v, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				panic("policy: tag words: " + part) // a test reads all tags
			}
			out = append(out, word{w, v})
		}
	}
	return out
}

func wordOf(tag reflect.StructTag, text string) (int64, bool) {
	for _, w := range wordsOf(tag) {
		if w.word == text {
			return w.n, true
		}
	}
	return 0, false
}
