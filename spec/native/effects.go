package native

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// warnNoEffect warns of fields whose counterpart among sbatch's options has no effect
// here, with the reason that the table of options gives.
func (p *parser) warnNoEffect(d *draft) {
	idle := map[string]string{}
	for _, o := range sbatch.Table() {
		if o.Status == sbatch.NoEffect {
			idle[o.Name] = o.Why
		}
	}
	if v, given := d.given["notify"]; given && p.opts.Webhook == nil {
		p.addWarning(v, "has no effect here: webhooks are sent by a server (cox submit)")
	}
	for _, f := range topFields {
		if f.sbatch == "" || f.sbatch == "wrap" {
			continue
		}
		why, none := idle[f.sbatch]
		v, given := d.given[f.name]
		switch {
		case !given:
		case f.name == "mail" && !p.opts.Mail:
			p.addWarning(v, "has no effect here: no mail relay is configured")
		case none && f.name != "mail":
			p.addWarning(v, "has no effect here: %s", why)
		}
	}
}

// givenOptions are the options of sbatch that say the same, for the variables that
// programs read them from.
func givenOptions(d *draft) map[string]string {
	out := map[string]string{}
	fields := d.given
	if len(d.groups) > 0 {
		fields = map[string]value{}
		for k, v := range d.given {
			fields[k] = v
		}
		for k, v := range d.groups[0].given {
			fields[k] = v
		}
		if v, ok := d.given["name"]; ok {
			fields["name"] = v
		}
	}
	for _, f := range topFields {
		v, ok := fields[f.name]
		if !ok || f.sbatch == "" || f.name == "script" {
			continue
		}
		if text, ok := optionValue(f.name, v, d); ok {
			out[f.sbatch] = text
		}
	}
	return out
}

// optionValue is a field's value as sbatch spells it.
func optionValue(name string, v value, d *draft) (string, bool) {
	s := d.spec
	switch name {
	case "name":
		return s.Name, true
	case "time":
		return slurmfmt.FormatTimeLimit(s.TimeLimit), true
	case "time_min":
		return slurmfmt.FormatTimeLimit(s.TimeMin), true
	case "array":
		if s.Array != nil {
			return s.Array.Text, true
		}
		return "", false
	case "memory", "memory_per_cpu", "memory_per_gpu", "disk":
		if v.Kind == yaml.Scalar && v.Text == "all" {
			return "0", true
		}
		return memoryText(v.Text), true
	case "mail":
		if s.Mail == nil {
			return "", false
		}
		return strings.Join(s.Mail.Types, ","), true
	case "nodelist", "exclude":
		var names []string
		for _, n := range append([]*yaml.Node{v.Node}, v.Items...) {
			if n.Kind == yaml.Scalar {
				names = append(names, n.Text)
			}
		}
		if _, err := hostlist.Count(strings.Join(names, ",")); err != nil {
			return "", false
		}
		return strings.Join(names, ","), true
	case "hold", "requeue", "exclusive", "overcommit", "contiguous":
		return "", v.Text == "true"
	case "append":
		return map[bool]string{true: "append", false: "truncate"}[v.Text == "true"], true
	}
	return plainValue(v)
}

// plainValue is a scalar, or a list of scalars joined by commas.
func plainValue(v value) (string, bool) {
	if v.Kind == yaml.Scalar {
		return v.Text, true
	}
	var parts []string
	for _, n := range v.Items {
		if n.Kind != yaml.Scalar {
			return "", false
		}
		parts = append(parts, n.Text)
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// memoryText is a size as Slurm reads it, in whole MiB.
func memoryText(s string) string {
	p := &parser{doc: &yaml.Document{}}
	n := p.parseSize(value{Node: &yaml.Node{Kind: yaml.Scalar, Text: s}})
	return slurmfmt.FormatMemory(int64(n.DivUp(resource.MiB) * resource.MiB))
}
