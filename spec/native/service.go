package native

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// kindService is what kind: says for a service; kindJob is what it may say for a job.
const (
	kindService = "service"
	kindJob     = "job"
)

// What an update and a drain are where the file says nothing.
const (
	defaultDrain         = 30 * time.Second
	defaultStep          = time.Minute
	defaultUpdateTimeout = 10 * time.Minute
	defaultCooldown      = 5 * time.Minute
)

// Bounds of the numbers of a service.
const (
	maxReplicas = service.MostReplicas
	maxPorts    = 16
	maxProbe    = 24 * time.Hour
	maxLook     = time.Minute // of one look of a probe
)

// serviceFields are the fields that a service has besides those of a job.
var serviceFields = []field[draft]{
	{name: "ports", form: aPortList, doc: "ports that the first task of a replica listens on, by name: chosen at launch, in $PORT_NAME, the first also in $PORT", also: []string{"port", "expose", "containerport"}, set: setPorts},
	{name: "replicas", form: aReplicas, doc: "how many of them run; {min, max} with scale; 1 if not given", also: []string{"replica", "instances", "count"}, set: setReplicas},
	{name: "probes", form: form{text: "{startup, readiness, liveness}", schema: objectSchema(probesFields)}, doc: "how one sees that a replica is well; without readiness it is ready when its first port takes connections", also: []string{"probe", "health", "healthcheck", "readiness_probe", "checks"}, set: setProbes},
	{name: "update", form: form{text: "{surge, unavailable, …}", schema: objectSchema(updateFields)}, doc: "how a new revision takes the place of the old one", also: []string{"strategy", "rollout", "rolling_update"}, set: setUpdate},
	{name: "drain", form: form{text: "30s, 5m, 0s", schema: aPatience.schema}, doc: "longest time that a replica which is to end has for the requests that it has begun; 30s if not given", also: []string{"drain_timeout", "grace", "graceful_shutdown"}, set: func(p *parser, d *draft, v value) { d.service.Job.Serve.Drain = p.parseSpan(v, 0, maxProbe) }},
	{name: "log", form: form{text: "{size, keep}", schema: objectSchema(logFields)}, doc: "how large an output file of a replica may become, and how many are kept, on this machine", also: []string{"logs", "log_rotation"}, set: setLog},
	{name: "scale", form: form{text: "{metric, target, …}", schema: objectSchema(scaleFields)}, doc: "what the number of replicas follows, between min and max", also: []string{"scaling", "autoscale", "autoscaling", "hpa"}, set: setScale},
	{name: "route", form: form{text: "{host, path, …}", schema: objectSchema(routeFields)}, doc: "how the gateway finds it", also: []string{"ingress", "url", "gateway"}, set: setRoute},
	{name: "spare_qos", form: aText, doc: "quality of service of the replicas above min, which batch may preempt there", also: []string{"burst_qos"}, set: textField(func(d *draft) *string { return &d.service.SpareQOS })},
}

// kindField says what a document describes. It is in every document.
var kindField = field[draft]{name: "kind", form: form{text: "job, service", schema: func() schema { return schema{"enum": []string{kindJob, kindService}} }}, doc: "service: what runs is kept alive and has an address ([native-services.md](native-services.md)); job if not given", set: setKind}

func setKind(p *parser, _ *draft, v value) {
	if s, ok := p.parseText(v); ok && s != kindJob && s != kindService {
		p.failValue(v, "write kind: service for what stays, or leave it out for what ends", "%q is no kind that is known here", shortName(s))
	}
}

// IsService reports whether a document describes a service.
func IsService(doc *yaml.Document) bool {
	n := doc.Root.Get("kind")
	return n != nil && n.Kind == yaml.Scalar && n.Text == kindService
}

// ParseService reads a service, as ParseDocument reads a job. What a replica runs is in its Job and,
// for a script, in its Script.
func ParseService(doc *yaml.Document, file string, opts Options) (*service.Spec, []spec.Warning, error) {
	d, warnings, err := parseDocument(doc, file, opts)
	if err != nil {
		return nil, warnings, err
	}
	d.service.Script = d.script
	return d.service, warnings, nil
}

// beginService prepares the draft of a service.
func (d *draft) beginService() {
	d.service = &service.Spec{
		Replicas: service.Bounds{Min: 1, Max: 1},
		Update:   service.Update{Surge: 1, Step: defaultStep, Timeout: defaultUpdateTimeout},
	}
	d.service.Job.Serve = &job.Serve{Drain: defaultDrain}
}

// misplaced is a field that has no place in a service.
type misplaced struct{ name, why, remedy string }

func (m misplaced) fieldName() string { return m.name }

// notForServices are fields of a job that make no sense of a replica, with what to do instead.
var notForServices = []misplaced{
	{"array", "replicas are not an array", "say replicas: N"},
	{"schedule", "a service runs all the time", "leave it out, or write a job of its own for what runs at times"},
	{"retries", "a service is always begun anew when it ends", "leave it out"},
	{"rerun", "each new replica is placed anew", "leave it out, or say nodelist or exclude"},
	{"deadline", "a service has no end", "leave it out"},
	{"depends_fail", "a service waits for no other job", "leave it out"},
	{"depends", "a service waits for no other job", "leave it out; a probe of startup can wait inside"},
	{"time_min", "a replica moves by itself before its time limit", "say time:, or leave both out"},
	{"input", "nobody writes to the input of a service", "leave it out"},
	{"mail", "mail is about jobs that end", "leave it out"},
	{"notify", "this webhook is about jobs that end", "leave it out"},
	{"elastic", "a replica has a fixed size", "say replicas: {min, max} with scale"},
}

// finishService settles what the fields of a service decide together.
func (p *parser) finishService(d *draft, file string) {
	s := d.service
	for _, f := range notForServices {
		v, ok := d.given[f.name]
		if !ok {
			v, ok = d.flat.given[f.name]
		}
		if ok {
			p.failValue(v, f.remedy, "%s", f.why)
		}
	}
	serve := s.Job.Serve
	if _, said := d.given["ports"]; !said {
		p.addError(yaml.Place{Line: 1, Col: 1}, "", "add ports: [http], and let the program listen on $PORT", "a service without ports cannot be reached")
	}
	p.checkProbePorts(d)
	p.checkScale(d)
	d.spec.Serve = serve
	d.spec.Requeue = true
	if d.spec.Output.Stdout == "" || d.spec.Output.Stdout == defaultOutput {
		d.spec.Output.Stdout = d.spec.Name + "-%j.out"
	}
	s.Job = *d.spec
	s.Name, s.Account, s.Owner = d.spec.Name, d.spec.Account, d.spec.Owner
	if err := service.CheckName(s.Name); err != nil {
		at, ok := d.given["name"]
		if ok {
			p.failValue(at, "write name: chat", "%s", err)
		} else {
			p.addError(yaml.Place{Line: 1, Col: 1}, "", "add name: chat", "the name of the file %s is no name of a service: %s", shortName(path.Base(file)), err)
		}
	}
	if u, said := d.given["update"]; said && s.Update.InPlace && s.Replicas.Max == 1 && s.Update.Surge > 0 {
		p.failValue(u, "leave surge out", "in_place and surge exclude each other")
	}
}

// checkProbePorts checks the ports that probes and the route name.
func (p *parser) checkProbePorts(d *draft) {
	serve := d.service.Job.Serve
	check := func(at value, name string) {
		if name != "" && len(serve.Ports) > 0 && serve.PortNamed(name) == nil {
			names := make([]string, len(serve.Ports))
			for i, port := range serve.Ports {
				names[i] = port.Name
			}
			p.failValue(at, "name one of ports: "+strings.Join(names, ", "), "there is no port %q", shortName(name))
		}
	}
	for _, use := range d.portUses {
		check(use, use.Text)
	}
}

// checkScale checks bounds against what moves between them.
func (p *parser) checkScale(d *draft) {
	s := d.service
	replicas, hasReplicas := d.given["replicas"]
	scale, hasScale := d.given["scale"]
	switch {
	case hasScale && s.Replicas.Min == s.Replicas.Max && (s.Scale == nil || s.Scale.ToZero == 0):
		p.failValue(scale, "write replicas: {min: 1, max: 4}", "has nothing to do: replicas says one number")
	case !hasScale && hasReplicas && s.Replicas.Min != s.Replicas.Max:
		p.failValue(replicas, "add scale: {metric: in_flight, target: 8}, or write replicas: N", "has bounds, and nothing says what the number follows")
	case hasScale && s.Scale != nil && s.Scale.ToZero > 0 && s.Replicas.Min > 0:
		p.failValue(scale, fmt.Sprintf("write replicas: {min: 0, max: %d}, or leave to_zero out", s.Replicas.Max), "to_zero lets it sleep, and replicas has a least of %d", s.Replicas.Min)
	case s.Replicas.Min == 0 && (s.Scale == nil || s.Scale.ToZero == 0):
		p.failValue(replicas, "add to_zero: 10m below scale, or write min: 1", "min: 0 needs scale: {to_zero: TIME}, which says when it sleeps")
	}
	if _, said := d.given["spare_qos"]; said && s.Replicas.Min == s.Replicas.Max {
		p.failValue(d.given["spare_qos"], "leave it out, or write replicas: {min, max}", "is for replicas above min, and there are none")
	}
}

// parseSpan reads a time in units between two bounds; "0s" is none.
func (p *parser) parseSpan(v value, least, most time.Duration) time.Duration {
	before := len(p.errs)
	d := p.parsePatience(v)
	if len(p.errs) == before && (d < least || d > most) {
		p.failValue(v, "", "%s is not between %s and %s", shortName(v.Text), spanText(least), spanText(most))
	}
	return d
}

func spanText(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	return formatDuration(d)
}
