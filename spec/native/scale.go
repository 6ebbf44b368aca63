package native

import (
	"math"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var scaleFields = []field[service.Scale]{
	{name: "metric", form: aText, doc: "in_flight, requests_per_second, or the name of a number on the replicas' Prometheus page; in_flight if not given", also: []string{"on", "by"}, set: textField(func(s *service.Scale) *string { return &s.Metric })},
	{name: "target", form: form{text: "8, 2.5", schema: func() schema { return schema{"type": "number", "exclusiveMinimum": 0} }}, doc: "of the metric for each replica", also: []string{"goal", "per_replica"}, set: func(p *parser, s *service.Scale, v value) { s.Target = p.parsePositive(v) }},
	{name: "path", form: aText, doc: "of the Prometheus page; /metrics if not given", set: func(p *parser, s *service.Scale, v value) { s.Path = p.parsePath(v) }},
	{name: "port", form: aText, doc: "name of the port of the Prometheus page; the first if not given", set: textField(func(s *service.Scale) *string { return &s.Port })},
	{name: "cooldown", form: form{text: "5m", schema: aPatience.schema}, doc: "for so long the largest number counts before replicas go; 5m if not given", also: []string{"stabilization", "scale_down_delay"}, set: func(p *parser, s *service.Scale, v value) { s.Cooldown = p.parseSpan(v, time.Second, maxProbe) }},
	{name: "to_zero", form: form{text: "10m", schema: aPatience.schema}, doc: "without a request for so long, no replica is left; needs min: 0", also: []string{"sleep", "idle", "scale_to_zero"}, set: func(p *parser, s *service.Scale, v value) { s.ToZero = p.parseSpan(v, time.Second, 30*24*time.Hour) }},
}

func setScale(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write scale: {metric: in_flight, target: 8}", "is %s where fields are expected", v.Kind)
		return
	}
	s := &service.Scale{Metric: service.MetricInFlight, Cooldown: defaultCooldown}
	before := len(p.errs)
	decodeFields(p, v.path, v.Node, scaleFields, s)
	if n := v.Get("port"); n != nil {
		d.portUses = append(d.portUses, value{Node: n, path: v.path + ".port", name: "port", at: n.Place})
	}
	known := []named{{name: service.MetricInFlight, also: []string{"inflight", "concurrency", "requests"}}, {name: service.MetricRate, also: []string{"rps", "qps", "rate"}}}
	switch near := nearestName(s.Metric, known); {
	case len(p.errs) > before:
	case s.Target == 0:
		p.failValue(v, "write target: 8", "does not say how much each replica should have")
	case near != "" && near != s.Metric:
		p.failValue(value{Node: v.Get("metric"), path: v.path + ".metric", at: v.Get("metric").Place}, "write metric: "+near, "%q is no metric; did you mean %s?", shortName(s.Metric), near)
	case service.CheckMetric(s.Metric) != nil:
		p.failValue(value{Node: v.Get("metric"), path: v.path + ".metric", at: v.Get("metric").Place}, "write in_flight, requests_per_second, or a name such as vllm:num_requests_waiting", "%s", service.CheckMetric(s.Metric))
	}
	d.service.Scale = s
}

func (p *parser) parsePositive(v value) float64 {
	s, ok := p.parsePlain(v, "a number")
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) || f > 1e12 {
		p.failValue(v, "write a number such as 8", "%q is no number above 0", shortName(s))
		return 0
	}
	return f
}
