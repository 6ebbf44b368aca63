package sbatch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// unusedForm says which values sbatch takes for an option that has no effect here. A wrong one is
// refused all the same: it is a slip that another cluster would refuse.
type unusedForm struct {
	is    func(value string) bool
	forms string
}

// oneOf takes words of a list, separated by commas, whatever their case.
func oneOf(words ...string) unusedForm {
	return unusedForm{func(value string) bool {
		for w := range strings.SplitSeq(value, ",") {
			known := false
			for _, k := range words {
				known = known || strings.EqualFold(w, k)
			}
			if !known {
				return false
			}
		}
		return true
	}, strings.Join(words, ", ")}
}

// matches takes values of an expression.
func matches(expression, forms string) unusedForm {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:` + expression + `)$`) })
	return unusedForm{func(value string) bool { return re().MatchString(value) }, forms}
}

// countForm takes whole numbers, from 1 on unless zero is one of them.
func countForm(zero bool) unusedForm {
	if zero {
		return matches(`[0-9]{1,9}`, "a number from 0 on")
	}
	return matches(`[1-9][0-9]{0,8}`, "a number from 1 on")
}

const (
	frequency = `(?:[0-9]+|low|medium|high|highm1)`
	governor  = `(?:conservative|ondemand|onDemand|performance|powersave|schedutil|userspace)`
)

// unusedForms are the forms of the options without effect, and of those that only steps follow; those that are not listed take any text.
var unusedForms = map[string]unusedForm{
	"acctg-freq":        matches(`[0-9]+|(?:(?:task|energy|network|filesystem)=[0-9]+)(?:,(?:task|energy|network|filesystem)=[0-9]+)*`, "seconds, task=30,energy=60,network=30,filesystem=30"),
	"core-spec":         countForm(true),
	"cores-per-socket":  countForm(false),
	"cpu-freq":          matches(frequency+`(?:-`+frequency+`)?(?::`+governor+`)?|`+governor, "kilohertz, low, medium, high, highm1, two of these with - between them, a governor such as performance"),
	"gpu-bind":          matches(`(?:v|verbose|q|quiet)?,?(?:closest|none|single:[0-9]+|per_task:[0-9]+|map:[0-9*,]+|mask:[0-9a-fx*,]+|map_gpu:[0-9*,]+|mask_gpu:[0-9a-fx*,]+)`, "closest, none, single:N, per_task:N, map:LIST, mask:LIST"),
	"gpu-freq":          matches(`(?:(?:memory=)?`+frequency+`|verbose)(?:,(?:(?:memory=)?`+frequency+`|verbose))*`, "megahertz, low, medium, high, highm1, memory=…, verbose"),
	"gres-flags":        oneOf("disable-binding", "enforce-binding", "allow-task-sharing", "multiple-tasks-per-sharing", "one-task-per-sharing"),
	"hint":              oneOf("compute_bound", "memory_bound", "multithread", "nomultithread"),
	"mem-bind":          matches(`(?:(?:q|quiet|v|verbose|sort|nosort|none|no|rank|local|p|prefer|map_mem:[0-9a-fx*,]+|mask_mem:[0-9a-fx*,]+|help)(?:,|$))+`, "none, local, rank, prefer, sort, nosort, map_mem:LIST, mask_mem:LIST"),
	"no-kill":           oneOf("off", "no"),
	"ntasks-per-core":   countForm(false),
	"ntasks-per-socket": countForm(false),
	"oom-kill-step":     oneOf("0", "1"),
	"profile":           oneOf("all", "none", "energy", "filesystem", "lustre", "network", "task"),
	"resv-ports":        countForm(true),
	"thread-spec":       countForm(true),
	"threads-per-core":  countForm(false),
	"wait-all-nodes":    oneOf("0", "1"),
	"delay-boot":        {func(value string) bool { _, err := slurmfmt.ParseDuration(value); return err == nil }, "a time, as in --time"},
}

// checkUnused reports whether the value of an option that the job itself does not use is one that
// sbatch takes, and refuses it otherwise.
func (p *parser) checkUnused(d *Directive) bool {
	form, ok := unusedForms[d.Option]
	if !ok || !d.HasValue || form.is(d.Value) {
		return true
	}
	remedy := "write one of these forms"
	if d.opt.Status == NoEffect {
		remedy = "take it out: the option has no effect here"
	}
	p.failOption(d, fmt.Errorf("is no value of this option (forms: %s)", form.forms), remedy)
	return false
}
