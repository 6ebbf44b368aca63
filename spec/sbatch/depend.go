package sbatch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// dependencyForms lists the forms of --dependency, for messages.
const dependencyForms = "afterok:7, afterok:7:8, after:7+10 (minutes), afterany:7_3, aftercorr:7, singleton; joined by , (all) or ? (any)"

// maxDependencies bounds how many jobs a dependency may name, tasks of arrays
// counted one by one.
const maxDependencies = 10_000

// maxDelay is the longest delay of "after:7+N".
const maxDelay = slurmfmt.MaxTimeLimit

// fillDependencies fills what the job waits for.
func (p *parser) fillDependencies(s *job.Spec, set settings) {
	d, given := set.get("dependency")
	if given {
		dep, err := parseDependency(d.Value)
		switch {
		case err != nil:
			p.blamePart(d, err.Offset, err.Len, quoteReason(err), dependencyRemedy(err))
		case !dep.IsZero():
			s.Depends = dep
		}
	}
	k, ok := set.get("kill-on-invalid-dep")
	if !ok {
		return
	}
	kill := strings.EqualFold(k.Value, "yes")
	switch {
	case !kill && !strings.EqualFold(k.Value, "no"):
		p.failOption(k, fmt.Errorf("is neither yes nor no"), "write --kill-on-invalid-dep=yes or =no")
	case !given:
		p.addWarning(k, "has no effect: the job has no --dependency")
	case !s.Depends.IsZero():
		s.Depends.KillIfNever = &kill
	}
}

// quoteReason is the reason with the wrong part in front of it, where that is not all.
func quoteReason(e *slurmfmt.Error) string {
	if part := e.Text[e.Offset : e.Offset+e.Len]; part != "" && e.Len < len(e.Text) {
		return fmt.Sprintf("%q %s", part, e.Reason)
	}
	return e.Reason
}

func dependencyRemedy(e *slurmfmt.Error) string {
	switch {
	case strings.Contains(e.Reason, "mixes"):
		return "write , throughout for all of them, or ? for any"
	case strings.Contains(e.Reason, "grow"):
		return "submit a job of its own, with --dependency=after: if it has to come later"
	case strings.Contains(e.Reason, "too many"):
		return "name arrays whole, without [ ]: all of their tasks are meant then"
	case strings.Contains(e.Reason, "delay belongs"):
		return "leave out the + and what follows it"
	}
	return "forms: " + dependencyForms
}

// parseDependency reads the value of --dependency. "" and "0" ask for nothing.
func parseDependency(s string) (job.Dependency, *slurmfmt.Error) {
	dep := job.Dependency{Text: s}
	if s == "" || s == "0" {
		return job.Dependency{}, nil
	}
	r := dependencyReader{text: s}
	for at := 0; ; {
		end := at + strings.IndexAny(s[at:], ",?")
		if end < at {
			end = len(s)
		}
		if strings.IndexByte(s[at:end], '[') >= 0 { // a list of tasks has commas of its own
			end = r.clauseEnd(at)
		}
		if err := r.parseClause(&dep, at, end); err != nil {
			return job.Dependency{}, err
		}
		if end == len(s) {
			return dep, nil
		}
		switch anyOf := s[end] == '?'; {
		case r.sep == 0:
			r.sep, dep.Any = s[end], anyOf
		case r.sep != s[end]:
			return job.Dependency{}, r.errorAt(end, end+1, "mixes , and ?: either all conditions have to hold or any")
		}
		at = end + 1
	}
}

// dependencyReader walks over one value of --dependency.
type dependencyReader struct {
	text string
	sep  byte // the first separator, 0 before it
	jobs int  // named so far
}

func (r *dependencyReader) errorAt(from, to int, reason string) *slurmfmt.Error {
	return &slurmfmt.Error{Text: r.text, Offset: from, Len: to - from, Reason: reason}
}

// clauseEnd is where the condition that begins at at ends, separators inside
// brackets left out.
func (r *dependencyReader) clauseEnd(at int) int {
	depth := 0
	for i := at; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth <= 0 && (c == ',' || c == '?'):
			return i
		}
	}
	return len(r.text)
}

// parseClause reads text[at:end]: "afterok:7:8", "singleton", or "7" for afterany:7.
func (r *dependencyReader) parseClause(dep *job.Dependency, at, end int) *slurmfmt.Error {
	text := r.text[at:end]
	name, jobs, named := strings.Cut(text, ":")
	from := at + len(name) + 1
	kind, known := dependencyKind(name)
	switch {
	case text == "":
		return r.errorAt(at, end, "has a part without a condition")
	case strings.EqualFold(name, "expand"):
		return r.errorAt(at, end, "is refused: a running job's allocation does not grow here")
	case kind == job.Singleton && !named:
		dep.Clauses = append(dep.Clauses, job.DependencyClause{Kind: kind})
		if r.jobs++; r.jobs > maxDependencies {
			return r.errorAt(at, end, fmt.Sprintf("is one of too many: a dependency may have %d conditions", maxDependencies))
		}
		return nil
	case kind == job.Singleton:
		return r.errorAt(from-1, end, "is too much: singleton names no job")
	case !named && name != "" && name[0] >= '0' && name[0] <= '9':
		kind, jobs, from = job.AfterAny, name, at
		if r.sep == '?' || end < len(r.text) && r.text[end] == '?' {
			return r.errorAt(at, end, "needs its kind in front of it, such as afterany:")
		}
	case !known:
		return r.errorAt(at, at+len(name), "is no kind of dependency")
	case !named:
		return r.errorAt(at, end, "names no job")
	}
	return r.parseRefs(dep, kind, jobs, from)
}

// dependencyKinds in any case are what sbatch knows.
var dependencyKinds = [...]job.DependencyKind{
	job.AfterOK, job.AfterAny, job.After, job.AfterNotOK, job.AfterCorr, job.Singleton, job.AfterBurst,
}

func dependencyKind(name string) (job.DependencyKind, bool) {
	for _, k := range dependencyKinds {
		if strings.EqualFold(name, string(k)) {
			return k, true
		}
	}
	return "", false
}

// parseRefs reads "7:8_3:9+10" from text[at:] into one clause, or one for each delay.
func (r *dependencyReader) parseRefs(dep *job.Dependency, kind job.DependencyKind, list string, at int) *slurmfmt.Error {
	clause := job.DependencyClause{Kind: kind}
	for more := true; more; {
		var item string
		item, list, more = strings.Cut(list, ":")
		id, minutes, delayed := strings.Cut(item, "+")
		delay := time.Duration(0)
		if delayed {
			n, err := strconv.ParseUint(minutes, 10, 32)
			switch {
			case kind != job.After:
				return r.errorAt(at+len(id), at+len(item), "cannot stand here: a delay belongs to after: alone")
			case err != nil || n == 0 || time.Duration(n)*time.Minute > maxDelay:
				return r.errorAt(at, at+len(item), "has a delay that is no number of minutes from 1 to 100 years")
			}
			delay = time.Duration(n) * time.Minute
		}
		refs, reason := r.parseRef(id)
		if reason != "" {
			return r.errorAt(at, at+len(id), reason)
		}
		if delay != clause.Delay && len(clause.Jobs) > 0 {
			dep.Clauses = append(dep.Clauses, clause)
			clause = job.DependencyClause{Kind: kind}
		}
		clause.Delay, clause.Jobs = delay, append(clause.Jobs, refs...)
		if r.jobs += len(refs); r.jobs > maxDependencies {
			return r.errorAt(at, at+len(item), fmt.Sprintf("is one of too many: a dependency may name %d jobs", maxDependencies))
		}
		at += len(item) + 1
	}
	dep.Clauses = append(dep.Clauses, clause)
	return nil
}

// parseRef reads "7", "7_3", "7_*" or "7_[1-3,5]".
func (r *dependencyReader) parseRef(s string) (refs []job.JobRef, reason string) {
	number, tasks, hasTasks := strings.Cut(s, "_")
	id, err := strconv.ParseUint(number, 10, 63)
	switch {
	case err != nil || id == 0 || number[0] == '+':
		return nil, "is no job: a number, or NUMBER_TASK for a task of an array"
	case !hasTasks || tasks == "*":
		return []job.JobRef{{Job: job.ID(id)}}, ""
	}
	if inner, ok := strings.CutPrefix(tasks, "["); ok {
		if tasks, ok = strings.CutSuffix(inner, "]"); !ok {
			return nil, "has no closing ]"
		}
	} else if strings.ContainsAny(tasks, ",-:%") {
		return nil, "has several tasks without [ ] around them"
	}
	a, err := slurmfmt.ParseArray(tasks, slurmfmt.MaxArraySize)
	if err != nil || strings.ContainsAny(tasks, "%[") {
		return nil, "has no tasks of an array behind _"
	}
	count := 0
	for _, x := range a.Ranges {
		if count += int((x.Hi-x.Lo)/x.Step) + 1; count > maxDependencies {
			return nil, fmt.Sprintf("names too many: a dependency may name %d jobs", maxDependencies)
		}
	}
	for _, n := range a.Indices() {
		refs = append(refs, job.JobRef{Job: job.ID(id), Task: &n})
	}
	return refs, ""
}
