package native

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var secretFields = []field[job.Secret]{
	{name: "name", form: aText, doc: "its name (`cox secret set NAME`)", also: []string{"secret"}, set: textField(func(s *job.Secret) *string { return &s.Name })},
	{name: "env", form: aText, doc: "variable that has the value; its name in upper case, with _ for -, if neither env nor file is given", also: []string{"variable"}, set: textField(func(s *job.Secret) *string { return &s.Env })},
	{name: "file", form: aText, doc: "file in $COX_SECRETS_DIR that has the value", also: []string{"path"}, set: textField(func(s *job.Secret) *string { return &s.File })},
}

// aSecrets is the form of secrets.
var aSecrets = form{text: "[name, {name, env}, {name, file}]", schema: secretsSchema}

func secretsSchema() schema {
	one := anyOf(patternSchema("^[a-z0-9]"), objectSchema(secretFields))
	return listOf(one, 1, job.MostSecrets)()
}

func setSecrets(p *parser, d *draft, v value) {
	if v.Kind != yaml.List {
		p.failValue(v, "write secrets: [hf-token], or [{name: hf-token, env: HF_TOKEN}]", "is %s where a list is expected", v.Kind)
		return
	}
	for _, item := range p.listItems(v) {
		s := job.Secret{}
		before := len(p.errs)
		if item.Kind == yaml.Mapping {
			decodeFields(p, item.path, item.Node, secretFields, &s)
		} else {
			s.Name, _ = p.parseLine(item)
		}
		if s.Env == "" && s.File == "" {
			s.Env = job.SecretVariable(s.Name)
		}
		if len(p.errs) > before {
			continue
		}
		if err := s.Check(); err != nil {
			p.failValue(item, "write {name: hf-token, env: HF_TOKEN}, or {name: key, file: key.pem}", "%s", err)
			continue
		}
		if slices.ContainsFunc(d.spec.Secrets, func(o job.Secret) bool { return s.Env != "" && o.Env == s.Env || s.File != "" && o.File == s.File }) {
			p.failValue(item, "give each its own variable or file", "two secrets have one place")
		}
		d.spec.Secrets = append(d.spec.Secrets, s)
	}
	if len(d.spec.Secrets) > job.MostSecrets {
		p.failValue(v, "", "are more than %d secrets", job.MostSecrets)
	}
}

func (w *writer) writeSecrets(list []job.Secret) {
	if len(list) == 0 {
		return
	}
	text := ""
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		switch {
		case s.File != "":
			text += fmt.Sprintf("{name: %s, file: %s}", quoteFlow(s.Name), quoteFlow(s.File))
		case s.Env != job.SecretVariable(s.Name):
			text += fmt.Sprintf("{name: %s, env: %s}", quoteFlow(s.Name), quoteFlow(s.Env))
		default:
			text += quoteFlow(s.Name)
		}
	}
	w.writeRaw("secrets", true, "["+text+"]")
}
