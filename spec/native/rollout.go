package native

import (
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var updateFields = []field[service.Update]{
	{name: "surge", form: aNumber(0, maxReplicas), doc: "replicas more than wanted while it goes on; 1 if not given", also: []string{"max_surge"}, set: func(p *parser, u *service.Update, v value) { u.Surge = int(p.parseNumber(v, 0, maxReplicas)) }},
	{name: "unavailable", form: aNumber(0, maxReplicas), doc: "replicas fewer than wanted while it goes on; 0 if not given", also: []string{"max_unavailable"}, set: func(p *parser, u *service.Update, v value) { u.Unavailable = int(p.parseNumber(v, 0, maxReplicas)) }},
	{name: "in_place", form: aBool, doc: "without room for one more: one replica after the other, or `unavailable` at a time, is drained, ended and begun anew", also: []string{"inplace", "recreate"}, set: boolField(func(u *service.Update) *bool { return &u.InPlace })},
	{name: "canary", form: form{text: "[10%, 50%]", schema: aList.schema}, doc: "part of the requests that the new revision gets, step by step, before all", also: []string{"weights", "steps"}, set: setCanary},
	{name: "step", form: form{text: "1m", schema: aPatience.schema}, doc: "how long each step of canary lasts; 1m if not given", set: func(p *parser, u *service.Update, v value) { u.Step = p.parseSpan(v, time.Second, maxProbe) }},
	{name: "timeout", form: form{text: "10m", schema: aPatience.schema}, doc: "without progress, until the update has failed; 10m if not given", also: []string{"progress_deadline"}, set: func(p *parser, u *service.Update, v value) { u.Timeout = p.parseSpan(v, time.Second, maxProbe) }},
	{name: "auto_undo", form: aBool, doc: "an update that failed is undone; true if not given", also: []string{"undo", "auto_rollback", "rollback"}, set: func(p *parser, u *service.Update, v value) { u.ManualUndo = !p.parseBool(v) }},
}

func setUpdate(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write update: {surge: 1, unavailable: 0}", "is %s where fields are expected", v.Kind)
		return
	}
	u := &d.service.Update
	before := len(p.errs)
	decodeFields(p, v.path, v.Node, updateFields, u)
	given := func(name string) bool { return v.Get(name) != nil }
	switch {
	case len(p.errs) > before:
	case u.InPlace && (given("surge") && u.Surge > 0):
		p.failValue(v, "leave surge out", "in_place and surge exclude each other")
	case u.InPlace:
		u.Surge, u.Unavailable = 0, max(u.Unavailable, 1)
	case u.Surge == 0 && u.Unavailable == 0:
		p.failValue(v, "write surge: 1, or unavailable: 1", "surge and unavailable are both 0: no replica could ever be replaced")
	}
	if given("step") && len(u.Canary) == 0 {
		p.failValue(v, "add canary: [10%, 50%]", "step is for canary, which is not given")
	}
}

func setCanary(p *parser, u *service.Update, v value) {
	for _, text := range p.parseList(v) {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil || n < 1 || n > 99 || len(u.Canary) > 0 && n <= u.Canary[len(u.Canary)-1] {
			p.failValue(v, "write canary: [10%, 50%]", "%q is no step: write per cent from 1%% to 99%%, each more than the one before", shortName(text))
			return
		}
		u.Canary = append(u.Canary, n)
	}
}
