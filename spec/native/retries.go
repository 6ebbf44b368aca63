package native

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// defaultBackoff is the first pause of retries that name none.
const defaultBackoff = 10 * time.Second

var retryFields = []field[job.Retries]{
	{name: "count", form: aNumber(1, job.MaxRetries), doc: "most times that it runs again", also: []string{"max", "limit", "attempts", "max_retries"}, set: func(p *parser, r *job.Retries, v value) {
		r.Count = int(p.parseNumber(v, 1, job.MaxRetries))
	}},
	{name: "backoff", form: form{text: "10s, 5m, 0s", schema: aPatience.schema}, doc: "pause before the first retry; doubles with each one up to 10 minutes, or stays as it is if it is longer; 10s if not given", also: []string{"delay", "interval", "pause"}, set: setBackoff},
	{name: "on", form: form{text: "[exit codes 1 to 255, error, oom, node, timeout]", schema: retryOnSchema}, doc: "causes: these exit codes (128 + signal for a signal), any exit code but 0, out of memory, a lost node, the time limit; error if not given", also: []string{"when", "exit_codes", "codes", "on_events", "causes"}, set: setRetryOn},
}

// aRetry is the form of retries.
var aRetry = form{text: "3, {count, backoff, on}", schema: anyOf(integerSchema(1, job.MaxRetries), retriesSchema)}

func retriesSchema() schema {
	s := objectSchema(retryFields)()
	s["required"] = []string{"count"}
	return s
}

func retryOnSchema() schema {
	entry := "([0-9]+|" + strings.Join(job.RetryWords(), "|") + ")"
	one := anyOf(integerSchema(1, 255), patternSchema("^"+entry+"(,"+entry+")*$"))
	return anyOf(one, listOf(one, 1, 0))()
}

func setRetries(p *parser, d *draft, v value) {
	r := &job.Retries{Backoff: defaultBackoff}
	if v.Kind == yaml.Mapping {
		decodeFields(p, v.path, v.Node, retryFields, r)
		if r.Count == 0 && len(p.errs) == 0 {
			p.failValue(v, "write retries: {count: 3}", "does not say how often")
		}
	} else {
		r.Count = int(p.parseNumber(v, 1, job.MaxRetries))
	}
	d.spec.Retries = r
}

func setBackoff(p *parser, r *job.Retries, v value) {
	r.Backoff = p.parsePatience(v)
	zero := v.Kind == yaml.Scalar && v.Text == "0s"
	if len(p.errs) == 0 && (r.Backoff > job.MaxRetryBackoff || r.Backoff == 0 && !zero) {
		p.failValue(v, "write backoff: 30s", "%q is not between 0s and 24h", shortName(v.Text))
	}
}

func setRetryOn(p *parser, r *job.Retries, v value) {
	for _, item := range p.listItems(v) {
		for _, entry := range p.parseList(item) {
			if err := job.CheckRetryOn(entry); err != nil {
				p.failValue(item, "write on: [1, 75, oom, node, timeout], or error for every exit code", "%s", err)
				return
			}
			if !slices.Contains(r.On, entry) {
				r.On = append(r.On, entry)
			}
		}
	}
}

// aRerun is the form of rerun.
var aRerun = form{text: "same-nodes, exclude-failed", schema: func() schema { return schema{"enum": job.RerunWords()} }}

func setRerun(p *parser, d *draft, v value) {
	text, ok := p.parseLine(v)
	if !ok {
		return
	}
	r := job.Rerun(text)
	if r == job.RerunAnywhere || r.Check() != nil {
		p.failValue(v, "write rerun: same-nodes, or rerun: exclude-failed", "%q is neither %s nor %s", shortName(text), job.RerunSameNodes, job.RerunExcludeFailed)
		return
	}
	d.spec.Rerun = r
}

func (w *writer) writeRetries(r *job.Retries) {
	if r == nil {
		return
	}
	w.openGroup("retries")
	w.writeRaw("count", true, strconv.Itoa(r.Count))
	backoff := "0s"
	if r.Backoff > 0 {
		backoff = formatDuration(r.Backoff)
	}
	w.writeRaw("backoff", r.Backoff != defaultBackoff, backoff)
	w.writeRaw("on", len(r.On) > 0, "["+strings.Join(r.On, ", ")+"]")
	w.closeGroup()
}
