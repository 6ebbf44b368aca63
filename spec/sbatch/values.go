package sbatch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// hostForms lists the forms of a host list, for messages.
const hostForms = "forms: node1, node[1-3,7], rack[1-2]-node[01-16], lists of these"

// failOption blames an option's value. The error's text completes "--option=value …".
func (p *parser) failOption(d *Directive, err error, remedy string) {
	at, n, reason := 0, len(d.Value), err.Error()
	var value *slurmfmt.Error
	var hosts *hostlist.Error
	if remedy == "" {
		remedy = d.guessValue()
	}
	switch {
	case errors.As(err, &value):
		at, n, reason = value.Offset, value.Len, value.Reason
		if part := value.Text[at : at+n]; n < len(value.Text) && part != "" {
			reason = fmt.Sprintf("%q %s", part, reason)
		}
	case errors.As(err, &hosts):
		at, n = hosts.Offset, hosts.Len
		reason = strings.TrimPrefix(hosts.Error(), "host list: ")
		remedy = cmp.Or(remedy, hostForms)
	}
	p.blamePart(d, at, n, reason, remedy)
}

// guessValue guesses what a value in another program's form was meant to be.
func (d *Directive) guessValue() string {
	end := 0
	for end < len(d.Value) && (d.Value[end] >= '0' && d.Value[end] <= '9' || d.Value[end] == '.') {
		end++
	}
	number, unit := d.Value[:end], strings.ToLower(strings.TrimSpace(d.Value[end:]))
	if number == "" || unit == "" {
		return ""
	}
	switch d.Option {
	case "time", "time-min":
		form := map[byte]string{'m': number, 'h': number + ":00:00", 'd': number + "-0", 's': "0:0:" + number}[unit[0]]
		if form != "" && !strings.Contains(number, ".") {
			return fmt.Sprintf("write --%s=%s", d.Option, form)
		}
	case "mem", "mem-per-cpu", "mem-per-gpu", "tmp":
		n, err := strconv.ParseFloat(number, 64)
		k := strings.IndexByte("mgt", unit[0])
		switch {
		case err != nil || k < 0 || n > 1e6:
		case n == math.Trunc(n):
			return fmt.Sprintf("write --%s=%s%c", d.Option, number, "MGT"[k])
		case k > 0:
			return fmt.Sprintf("write --%s=%.0f%c", d.Option, math.Ceil(n*1024), "MGT"[k-1])
		}
	}
	return ""
}

// blamePart marks n bytes of an option's value from at.
func (p *parser) blamePart(d *Directive, at, n int, reason, remedy string) {
	text := d.showOption()
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	sep := " "
	if strings.HasPrefix(reason, `"`) {
		sep = ": "
	}
	if d.HasValue && d.Value == "" && slices.Contains(p.blanks, d.Line) {
		return
	}
	w, from := d.value, d.valueAt+at
	if !d.HasValue || w.src == "" {
		w, from, n = d.name, 0, len(d.name.text)
	}
	from = min(from, len(w.text))
	e := w.errorAt(from, min(from+n, len(w.text)), text+sep+reason, remedy)
	same := func(old *spec.Error) bool { return old.Line == e.Line && old.Col == e.Col && old.Message == e.Message }
	if !slices.ContainsFunc(p.errs, same) { // a value that components share is blamed once
		p.errs = append(p.errs, e)
	}
}

// checkValue reports whether there is no error, and blames the value otherwise.
func (p *parser) checkValue(d *Directive, err error) bool {
	if err != nil {
		p.failOption(d, err, "")
	}
	return err == nil
}

func isPropagated(option string) bool {
	k := slotOf(option)
	return slices.ContainsFunc(propagated, func(name string) bool { return slotOf(name) == k })
}

// inOrder sorts warnings by line, drops repetitions, and what is too much to read.
func inOrder(list []spec.Warning) []spec.Warning {
	slices.SortStableFunc(list, func(a, b spec.Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	out, same := list[:0], 0 // out[same:] stand at one place
	more := 0
	for _, w := range list {
		if len(out) > 0 && (out[len(out)-1].Line != w.Line || out[len(out)-1].Col != w.Col) {
			same = len(out)
		}
		switch {
		case len(out) == maxWarnings:
			more++
		case !slices.Contains(out[same:], w):
			out = append(out, w)
		}
	}
	if more > 0 {
		out = append(out, spec.Warning{File: out[0].File, Message: fmt.Sprintf("%d more warnings", more)})
	}
	return out
}

// maxCount is the largest number of nodes, tasks or CPUs that can be asked for.
const maxCount = math.MaxInt32

// parseInteger reads a whole number between least and most.
func (p *parser) parseInteger(d *Directive, least, most int64) int64 {
	n, err := strconv.ParseInt(d.Value, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.failOption(d, errors.New("is not a whole number"), fmt.Sprintf("write a number from %d to %d", least, most))
	case err != nil || n < least || n > most:
		p.failOption(d, fmt.Errorf("is not between %d and %d", least, most), "write a number in that range, or leave the option out")
	default:
		return n
	}
	return 0
}

// parseCount reads a positive number; 0 if the option was not given.
func (p *parser) parseCount(set settings, name string) int {
	d, ok := set.get(name)
	if !ok {
		return 0
	}
	return int(p.parseInteger(d, 1, maxCount))
}

// isBlamed reports whether an option has an error already.
func (p *parser) isBlamed(d *Directive) bool {
	return slices.ContainsFunc(p.errs, func(e *spec.Error) bool {
		return e.File == d.name.file && e.Line == d.Line && strings.HasPrefix(e.Message, d.showOption())
	})
}

// splitCommas splits a value at commas, without empty parts.
func (p *parser) splitCommas(d *Directive) []string {
	out := strings.FieldsFunc(d.Value, func(r rune) bool { return r == ',' })
	if !p.checkFew(d, len(out)) {
		return nil
	}
	if len(out) == 0 {
		p.failOption(d, errors.New("names nothing"), "leave it out, or name something")
	}
	return out
}

// expandHosts expands the host list of an option, each name once.
func (p *parser) expandHosts(set settings, name string) []string {
	d, ok := set.get(name)
	if !ok {
		return nil
	}
	names, err := hostlist.Expand(d.Value)
	if !p.checkValue(d, err) {
		return nil
	}
	if len(names) == 0 {
		p.failOption(d, errors.New("names no host"), hostForms)
	}
	if len(names) > hostlist.MaxRange {
		p.failOption(d, fmt.Errorf("names %d hosts", len(names)), fmt.Sprintf("name at most %d", hostlist.MaxRange))
		return nil
	}
	return eachOnce(names)
}

func eachOnce(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(n string) bool {
		was := seen[n]
		seen[n] = true
		return was
	})
}

// nodeForms lists the forms of --nodes, for messages.
const nodeForms = "4, 2-4, 1-15:4, 1,5,9"

// parseNodes reads --nodes: a number, a range, or a set of sizes. k and m multiply.
func (p *parser) parseNodes(set settings) job.Range {
	d, ok := set.get("nodes")
	if !ok {
		return job.Range{}
	}
	r, sizes, ok := parseNodes(d.Value)
	switch {
	case !ok:
		p.failOption(d, fmt.Errorf("is not a number of nodes (forms: %s)", nodeForms), "")
	case r.Min > r.Max:
		p.failOption(d, fmt.Errorf("has a maximum, %d, below its minimum, %d", r.Max, r.Min), fmt.Sprintf("write --nodes=%d-%d", r.Max, r.Min))
	case sizes:
		p.addWarning(d, fmt.Sprintf("is taken as its least size, %d: the job takes no size that is not in the set, and sets are not built yet", r.Min))
		r.Max = r.Min
	}
	return r
}

func parseNodes(s string) (r job.Range, sizes, ok bool) {
	parts := strings.Split(s, ",")
	for i, part := range parts {
		span, step, stepped := strings.Cut(part, ":")
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		lo, ok1 := nodeCount(low)
		hi, ok2 := nodeCount(high)
		if !ok1 || !ok2 || stepped && !ranged {
			return r, false, false
		}
		if stepped {
			if n, ok := nodeCount(step); !ok || n == 0 {
				return r, false, false
			}
			sizes = true
		}
		if i == 0 {
			r = job.Range{Min: lo, Max: hi}
		} else {
			r, sizes = job.Range{Min: min(r.Min, lo), Max: max(r.Max, hi)}, true
		}
	}
	return r, sizes, true
}

// nodeCount reads "4", "4k" (4096), "1m".
func nodeCount(s string) (int, bool) {
	scale := 1
	if s != "" {
		switch s[len(s)-1] | 0x20 {
		case 'k':
			scale, s = 1024, s[:len(s)-1]
		case 'm':
			scale, s = 1024*1024, s[:len(s)-1]
		}
	}
	if s == "" || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 || n*int64(scale) > maxCount {
		return 0, false
	}
	return int(n) * scale, true
}
