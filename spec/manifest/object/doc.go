// Package object has the objects of Kubernetes and of operators that spec/manifest reads, as
// small structs of their own: the fields that an engine of Coxswain acts upon. The other fields
// of an object are in its node, which Kubernetes gets as it is.
//
// A struct is filled by spec/manifest and not changed after that. A pointer is nil, and a text
// empty, where the manifest has no value: no default is filled in. Every struct with a place
// (At) knows its node and its path in the document, for messages.
//
// The names of the fields are those of Kubernetes. spec/manifest/fields says for each which
// engine honours it; a test holds both together.
package object

import "github.com/coxswain-sched/coxswain/spec/yaml"

// At is where an object or a part of one stands.
type At struct {
	Path string     `json:"-"` // in its document: "spec.template.spec"; empty for the document itself
	Node *yaml.Node `json:"-"` // as it was read
}

// Under is the path of a field of this part.
func (a At) Under(field string) string {
	if a.Path == "" {
		return field
	}
	return a.Path + "." + field
}

// Has reports whether the field is given, with a value that is not null.
func (a At) Has(field string) bool {
	if a.Node == nil {
		return false
	}
	v := a.Node.Get(field)
	return v != nil && v.Kind != yaml.Null
}

// Meta is the metadata of an object.
type Meta struct {
	At
	Name         string            `json:"name"`
	GenerateName string            `json:"generateName"`
	Namespace    string            `json:"namespace"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
}

// Head is what every object begins with.
type Head struct {
	At
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   Meta   `json:"metadata"`
}

// Selector chooses objects by their labels.
type Selector struct {
	At
	MatchLabels      map[string]string     `json:"matchLabels"`
	MatchExpressions []SelectorRequirement `json:"matchExpressions"`
}

// SelectorRequirement is one condition of a Selector.
type SelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist
	Values   []string `json:"values"`
}

// Matches reports whether labels fulfil the selector. One without conditions matches all.
func (s *Selector) Matches(labels map[string]string) bool {
	for k, v := range s.MatchLabels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		if !r.matchesLabels(labels) {
			return false
		}
	}
	return true
}

func (r SelectorRequirement) matchesLabels(labels map[string]string) bool {
	value, has := labels[r.Key]
	among := false
	for _, v := range r.Values {
		among = among || v == value
	}
	switch r.Operator {
	case "In":
		return has && among
	case "NotIn":
		return !has || !among
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	return false
}
