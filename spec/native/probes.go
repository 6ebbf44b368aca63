package native

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// probesFields are the fields of probes.
var probesFields = []field[draft]{
	{name: "startup", form: aProbe, doc: "until it has passed once, the others do not look", also: []string{"start"}, set: setProbe(func(s *job.Serve) **job.Probe { return &s.Startup })},
	{name: "readiness", form: aProbe, doc: "while it passes, the replica gets requests", also: []string{"ready", "readiness_probe"}, set: setProbe(func(s *job.Serve) **job.Probe { return &s.Readiness })},
	{name: "liveness", form: aProbe, doc: "when it fails, the program is ended and begun anew", also: []string{"live", "alive", "liveness_probe"}, set: setProbe(func(s *job.Serve) **job.Probe { return &s.Liveness })},
}

// aProbe is the form of a probe.
var aProbe = form{text: "/health, {http, port, every, …}", schema: func() schema {
	return anyOf(patternSchema("^/"), objectSchema(probeFields))()
}}

// probeDraft is a probe while its fields are read.
type probeDraft struct {
	probe *job.Probe
	ports *[]value // places that name a port
}

var probeFields = []field[probeDraft]{
	{name: "http", form: aText, doc: "path of a GET; 200 to 399 passes", also: []string{"path", "httpget", "url"}, set: func(p *parser, d *probeDraft, v value) { d.probe.HTTP = p.parsePath(v) }},
	{name: "tcp", form: aBool, doc: "the port takes a connection", also: []string{"tcpsocket"}, set: func(p *parser, d *probeDraft, v value) { d.probe.TCP = p.parseBool(v) }},
	{name: "exec", form: form{text: "text for sh -c, or [program, argument, …]", schema: aList.schema}, doc: "a command beside the task; exit code 0 passes", also: []string{"command", "cmd"}, set: func(p *parser, d *probeDraft, v value) { d.probe.Exec = p.parseWords(v) }},
	{name: "port", form: aText, doc: "name of the port; the first if not given", set: func(p *parser, d *probeDraft, v value) {
		d.probe.Port, _ = p.parseLine(v)
		*d.ports = append(*d.ports, v)
	}},
	{name: "delay", form: form{text: "5s", schema: aPatience.schema}, doc: "before the first look", also: []string{"initial_delay", "initialdelayseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Delay }, 0)},
	{name: "every", form: form{text: "1s", schema: aPatience.schema}, doc: "from one look to the next; 1s if not given", also: []string{"period", "interval", "periodseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Every }, time.Second)},
	{name: "timeout", form: form{text: "1s", schema: aPatience.schema}, doc: "of one look; 1s if not given", also: []string{"timeoutseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Timeout }, time.Second)},
	{name: "failures", form: aNumber(1, 1000), doc: "in a row, until it counts as failed; 3 if not given", also: []string{"failure_threshold", "retries"}, set: func(p *parser, d *probeDraft, v value) { d.probe.Failures = int(p.parseNumber(v, 1, 1000)) }},
	{name: "passes", form: aNumber(1, 1000), doc: "in a row, until it counts as passed; 1 if not given", also: []string{"successes", "success_threshold"}, set: func(p *parser, d *probeDraft, v value) { d.probe.Passes = int(p.parseNumber(v, 1, 1000)) }},
}

func probeSpan(to func(*job.Probe) *time.Duration, least time.Duration) func(*parser, *probeDraft, value) {
	return func(p *parser, d *probeDraft, v value) { *to(d.probe) = p.parseSpan(v, least, maxProbe) }
}

func setProbes(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write probes: {readiness: {http: /health}}", "is %s where readiness, liveness or startup is expected", v.Kind)
		return
	}
	decodeFields(p, v.path, v.Node, probesFields, d)
}

func setProbe(to func(*job.Serve) **job.Probe) func(*parser, *draft, value) {
	return func(p *parser, d *draft, v value) {
		b := &job.Probe{}
		before := len(p.errs)
		if v.Kind == yaml.Mapping {
			decodeFields(p, v.path, v.Node, probeFields, &probeDraft{probe: b, ports: &d.portUses})
		} else {
			b.HTTP = p.parsePath(v)
		}
		kinds := 0
		for _, is := range []bool{b.HTTP != "", b.TCP, len(b.Exec) > 0} {
			if is {
				kinds++
			}
		}
		switch {
		case len(p.errs) > before:
		case kinds == 0:
			p.failValue(v, "write http: /health, tcp: true or exec: COMMAND", "does not say what it looks at")
		case kinds > 1:
			p.failValue(v, "leave all but one out", "http, tcp and exec exclude each other")
		}
		*to(d.service.Job.Serve) = b
	}
}

// parsePath reads an absolute path of a URL.
func (p *parser) parsePath(v value) string {
	s, ok := p.parseLine(v)
	if ok && (!strings.HasPrefix(s, "/") || strings.ContainsAny(s, " \t#")) {
		p.failValue(v, "write a path such as /health", "%q is no path of a URL", shortName(s))
	}
	return s
}
