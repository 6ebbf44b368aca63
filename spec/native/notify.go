package native

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var notifyFields = []field[job.Notify]{
	{name: "webhook", form: aText, doc: "URL of a [webhook](../how-to/webhooks.md)", also: []string{"url", "webhook_url", "slack"}, set: setWebhook},
	{name: "on", form: aList, doc: "begin, end (failures too), fail; all if not given", also: []string{"events", "when", "types"}, set: setNotifyOn},
}

// aNotify is the form of notify.
var aNotify = form{text: "{webhook, on}", schema: notifySchema}

func notifySchema() schema {
	s := objectSchema(notifyFields)()
	s["required"] = []string{"webhook"}
	return s
}

func setNotify(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		remedy := "write notify: {webhook: https://…, on: [end, fail]}"
		if v.Kind == yaml.Scalar && !strings.Contains(v.Text, ":") || v.Kind == yaml.List {
			remedy = "write mail: [end, fail] for mail, or notify: {webhook: https://…, on: [end, fail]}"
		}
		p.failValue(v, remedy, "names no webhook")
		return
	}
	n := &job.Notify{}
	before := len(p.errs)
	decodeFields(p, v.path, v.Node, notifyFields, n)
	if n.Webhook == "" && len(p.errs) == before {
		p.failValue(v, "write notify: {webhook: https://…, on: [end, fail]}", "names no webhook")
	}
	d.spec.Notify = n
}

func setWebhook(p *parser, n *job.Notify, v value) {
	url, ok := p.parseLine(v)
	if !ok {
		return
	}
	if err := job.CheckWebhook(url); err != nil {
		p.failValue(v, "write the URL whole: https://hooks.example.org/…", "%s", err)
		return
	}
	if p.opts.Webhook != nil {
		if err := p.opts.Webhook(url); err != nil {
			p.failValue(v, fault.Remedy(err), "%s", err)
			return
		}
	}
	n.Webhook = url
}

func setNotifyOn(p *parser, n *job.Notify, v value) {
	on, err := job.NotifyOn(p.parseList(v))
	switch {
	case err != nil:
		p.failValue(v, "events: "+strings.Join(job.NotifyEvents, ", ")+", all", "%s", err)
	case len(on) == 0 && len(p.errs) == 0:
		p.failValue(v, "write on: [end, fail], or leave on out: then it is told of all", "says no event")
	}
	n.On = on
}

func (w *writer) writeNotify(n *job.Notify) {
	if n == nil {
		return
	}
	w.openGroup("notify")
	w.writeText("webhook", n.Webhook)
	if len(n.On) > 0 {
		w.writeList("on", n.On)
	}
	w.closeGroup()
}
