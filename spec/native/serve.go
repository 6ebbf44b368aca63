package native

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// aPortList is the form of ports.
var aPortList = form{text: "[http], 8000, [{name, port}, …]", schema: portsSchema}

func portsSchema() schema {
	one := anyOf(integerSchema(1, 65535), patternSchema("^[a-z0-9]"), objectSchema(portFields))
	return anyOf(one, listOf(one, 1, maxPorts))()
}

var portFields = []field[job.Port]{
	{name: "name", form: aText, doc: "its name", set: func(p *parser, port *job.Port, v value) { port.Name = p.parsePortName(v) }},
	{name: "port", form: aNumber(1, 65535), doc: "its number, if it is fixed: a counted resource of the node", also: []string{"number", "containerport", "target_port"}, set: func(p *parser, port *job.Port, v value) { port.Number = int(p.parseNumber(v, 1, 65535)) }},
}

func (p *parser) parsePortName(v value) string {
	s, ok := p.parseLine(v)
	if !ok {
		return ""
	}
	if err := service.CheckName(s); err != nil {
		p.failValue(v, "write ports: [http], or {name: http, port: 8000} for a fixed number", "%s", err)
	}
	return s
}

func setPorts(p *parser, d *draft, v value) {
	serve := d.service.Job.Serve
	for _, item := range p.listItems(v) {
		port := job.Port{}
		switch n, err := strconv.Atoi(item.Text); {
		case item.Kind == yaml.Mapping:
			decodeFields(p, item.path, item.Node, portFields, &port)
		case item.Kind == yaml.Scalar && err == nil && !item.Quoted:
			port.Number = int(p.parseNumber(item, 1, 65535))
			_ = n
		default:
			port.Name = p.parsePortName(item)
		}
		if port.Name == "" {
			port.Name = "http"
			if len(serve.Ports) > 0 {
				port.Name = fmt.Sprintf("port-%d", port.Number)
			}
		}
		p.checkPortTwice(item, serve.Ports, port)
		serve.Ports = append(serve.Ports, port)
	}
	if len(serve.Ports) > maxPorts {
		p.failValue(v, "", "are more than %d ports", maxPorts)
	}
}

// checkPortTwice refuses a port with a name or a number that one before it has.
func (p *parser) checkPortTwice(v value, before []job.Port, port job.Port) {
	for i, other := range before {
		switch {
		case other.Number == port.Number && port.Number > 0:
			p.failValue(v, "leave one of them out", "port %d is there twice", port.Number)
		case other.Name == port.Name && other.Number > 0:
			p.failValue(v, fmt.Sprintf("write {name: web, port: %d} for the one with the number", other.Number), "two ports are called %s: a first port without a name, as %d, is called http", port.Name, other.Number)
		case other.Name == port.Name:
			p.failValue(v, "give each port its own name", "two ports are called %s, ports[%d] and this one", port.Name, i)
		default:
			continue
		}
		return
	}
}

// aReplicas is the form of replicas.
var aReplicas = form{text: "2, {min, max}", schema: anyOf(integerSchema(1, maxReplicas), objectSchema(boundsFields))}

var boundsFields = []field[service.Bounds]{
	{name: "min", form: aNumber(0, maxReplicas), doc: "fewest; 0 lets it sleep", also: []string{"minimum", "least"}, set: func(p *parser, b *service.Bounds, v value) { b.Min = int(p.parseNumber(v, 0, maxReplicas)) }},
	{name: "max", form: aNumber(1, maxReplicas), doc: "most", also: []string{"maximum", "most"}, set: func(p *parser, b *service.Bounds, v value) { b.Max = int(p.parseNumber(v, 1, maxReplicas)) }},
}

func setReplicas(p *parser, d *draft, v value) {
	b := &d.service.Replicas
	if v.Kind != yaml.Mapping {
		n := int(p.parseNumber(v, 1, maxReplicas))
		*b = service.Bounds{Min: n, Max: n}
		return
	}
	*b = service.Bounds{Min: -1}
	before := len(p.errs)
	decodeFields(p, v.path, v.Node, boundsFields, b)
	switch {
	case len(p.errs) > before:
	case b.Min < 0 || b.Max == 0:
		p.failValue(v, "write replicas: {min: 1, max: 4}", "needs min and max")
	case b.Min > b.Max:
		p.failValue(v, fmt.Sprintf("write replicas: {min: %d, max: %d}", b.Max, b.Min), "min, %d, is more than max, %d", b.Min, b.Max)
	}
	b.Min = max(b.Min, 0)
}

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
	{name: "delay", form: form{text: "5s", schema: aPatience.schema}, doc: "before the first look", also: []string{"initial_delay", "initialdelayseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Delay }, 0, maxProbe)},
	{name: "every", form: form{text: "1s", schema: aPatience.schema}, doc: "from one look to the next; 1s if not given", also: []string{"period", "interval", "periodseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Every }, time.Second, maxProbe)},
	{name: "timeout", form: form{text: "1s", schema: aPatience.schema}, doc: "of one look, 1m at most; 1s if not given", also: []string{"timeoutseconds"}, set: probeSpan(func(b *job.Probe) *time.Duration { return &b.Timeout }, time.Second, maxLook)},
	{name: "failures", form: aNumber(1, 1000), doc: "in a row, until it counts as failed; 3 if not given", also: []string{"failure_threshold", "retries"}, set: func(p *parser, d *probeDraft, v value) { d.probe.Failures = int(p.parseNumber(v, 1, 1000)) }},
	{name: "passes", form: aNumber(1, 1000), doc: "in a row, until it counts as passed; 1 if not given", also: []string{"successes", "success_threshold"}, set: func(p *parser, d *probeDraft, v value) { d.probe.Passes = int(p.parseNumber(v, 1, 1000)) }},
}

func probeSpan(to func(*job.Probe) *time.Duration, least, most time.Duration) func(*parser, *probeDraft, value) {
	return func(p *parser, d *probeDraft, v value) { *to(d.probe) = p.parseSpan(v, least, most) }
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

// maxLogKeep is how many rotated files can be kept at most.
const maxLogKeep = 100

var logFields = []field[job.LogRotation]{
	{name: "size", form: aSize, doc: "from which an output file is rotated; 64M if not given", also: []string{"max_size"}, set: func(p *parser, l *job.LogRotation, v value) { l.Size = int64(p.parseSize(v)) }},
	{name: "keep", form: aNumber(1, maxLogKeep), doc: "rotated files that are kept; 4 if not given", also: []string{"max_files"}, set: func(p *parser, l *job.LogRotation, v value) { l.Keep = int(p.parseNumber(v, 1, maxLogKeep)) }},
}

func setLog(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write log: {size: 64M, keep: 4}", "is %s where fields are expected", v.Kind)
		return
	}
	decodeFields(p, v.path, v.Node, logFields, &d.service.Job.Serve.Log)
}
