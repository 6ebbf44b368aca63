package policy

import (
	"bytes"
	"slices"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/input"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// describesWork reports whether a file of cox apply is work, as cox submit takes it, and no rules of a site.
func describesWork(name string, data []byte) bool {
	switch in := input.Recognise(name, data); in.Kind {
	case input.Kubernetes:
		return true
	case input.Batch:
		return bytes.HasPrefix(data, []byte("#!"))
	case input.Native:
		doc, err := yaml.Parse(spec.Source{Name: name, Data: data})
		return err == nil && slices.ContainsFunc([]string{"command", "script", "groups", "kind", "image", "schedule"}, func(key string) bool { return doc.Root.Get(key) != nil })
	}
	return false
}
