package native

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var routeFields = []field[service.Route]{
	{name: "host", form: aText, doc: "name under which it is asked; NAME.localhost if not given", also: []string{"hostname", "domain"}, set: func(p *parser, r *service.Route, v value) { r.Host = p.parseHost(v) }},
	{name: "path", form: aText, doc: "prefix of the paths that it answers; every path if not given", also: []string{"prefix"}, set: func(p *parser, r *service.Route, v value) { r.Path = p.parsePrefix(v) }},
	{name: "port", form: aText, doc: "name of the port that gets the requests; the first if not given", set: textField(func(r *service.Route) *string { return &r.Port })},
	{name: "auth", form: form{text: "[name of a secret, …]", schema: aList.schema}, doc: "secrets that hold tokens, one of which a request has to bear; everybody may ask if not given", also: []string{"tokens", "authentication", "api_keys"}, set: func(p *parser, r *service.Route, v value) { r.Tokens = p.parseList(v) }},
	{name: "timeout", form: form{text: "60s", schema: aPatience.schema}, doc: "until the first byte of an answer", also: []string{"request_timeout"}, set: func(p *parser, r *service.Route, v value) { r.Timeout = p.parseSpan(v, time.Second, maxProbe) }},
	{name: "balance", form: form{text: "least, sticky", schema: func() schema { return schema{"enum": []string{"least", "sticky"}} }}, doc: "least: to the replica with the fewest requests; sticky: a cookie leads to the same one", also: []string{"load_balancing", "lb"}, set: setBalance},
	{name: "rate", form: form{text: "100", schema: func() schema { return schema{"type": "number", "exclusiveMinimum": 0} }}, doc: "requests a second, at most", also: []string{"rate_limit", "rps"}, set: func(p *parser, r *service.Route, v value) { r.Rate = p.parsePositive(v) }},
	{name: "held", form: aNumber(1, 100000), doc: "requests that wait for a replica, at most; 100 if not given", also: []string{"queue", "buffer"}, set: func(p *parser, r *service.Route, v value) { r.Held = int(p.parseNumber(v, 1, 100000)) }},
	{name: "h2c", form: aBool, doc: "replicas speak HTTP/2 without TLS, as servers of gRPC do", also: []string{"grpc", "http2"}, set: boolField(func(r *service.Route) *bool { return &r.H2C })},
}

func setRoute(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write route: {host: chat.example.org}", "is %s where fields are expected", v.Kind)
		return
	}
	decodeFields(p, v.path, v.Node, routeFields, &d.service.Route)
	if n := v.Get("port"); n != nil {
		d.portUses = append(d.portUses, value{Node: n, path: v.path + ".port", name: "port", at: n.Place})
	}
}

func (p *parser) parseHost(v value) string {
	s, ok := p.parseLine(v)
	if !ok {
		return ""
	}
	s = strings.ToLower(s)
	if err := service.CheckHost(s); err != nil {
		p.failValue(v, "write a name such as chat.example.org", "%s", err)
	}
	return s
}

// parsePrefix reads the prefix of the paths of a route.
func (p *parser) parsePrefix(v value) string {
	s, ok := p.parseLine(v)
	if !ok {
		return ""
	}
	if err := service.CheckPath(s); err != nil {
		p.failValue(v, "write a path such as /v1", "%s", err)
	}
	return s
}

func setBalance(p *parser, r *service.Route, v value) {
	s, ok := p.parseText(v)
	if ok && !slices.Contains([]string{"least", "sticky"}, s) {
		p.failValue(v, "write balance: least or balance: sticky", "%q is no way to balance", shortName(s))
	}
	r.Sticky = s == "sticky"
}
