package native

import (
	"fmt"
	"strconv"

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
		for _, other := range serve.Ports {
			if other.Name == port.Name || other.Number == port.Number && port.Number > 0 {
				p.failValue(item, "give each port its own name and number", "is there twice")
			}
		}
		serve.Ports = append(serve.Ports, port)
	}
	if len(serve.Ports) > maxPorts {
		p.failValue(v, "", "are more than %d ports", maxPorts)
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
