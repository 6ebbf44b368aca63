package work

import (
	"encoding/json"
	"fmt"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

// Document is one document of a file, whose fields are checked.
type Document struct {
	Kind, APIVersion string
	Name, Namespace  string
	Labels           map[string]string
	Annotations      map[string]string
	JSON             []byte // the whole document

	aside string // what is done with a kind that is only taken note of
	of    *manifest.Document
}

// Fail is an error at a path of the document, such as spec.replicas.
func (d *Document) Fail(path, message, remedy string) *spec.Error {
	return d.of.Fail(path, remedy, "%s", message)
}

// Warn is a warning at a path of the document.
func (d *Document) Warn(path, message string) spec.Warning { return d.of.Warn(path, "%s", message) }

// decode reads a document into the struct of its kind.
func (d *Document) decode(to any) error {
	if err := json.Unmarshal(d.JSON, to); err != nil {
		return fmt.Errorf("%s %s: %w", d.Kind, d.Name, err)
	}
	return nil
}

// documentsOf takes the documents of a file over.
func documentsOf(f *manifest.File) ([]Document, error) {
	out := make([]Document, len(f.Documents))
	for i, from := range f.Documents {
		d := &out[i]
		*d = Document{Kind: from.Kind.Name, JSON: from.JSON(""), of: from}
		if from.Kind.Use == fields.Aside {
			d.aside = from.Kind.Note
		}
		var head struct {
			APIVersion string `json:"apiVersion"`
			Metadata   struct {
				Name         string            `json:"name"`
				GenerateName string            `json:"generateName"`
				Namespace    string            `json:"namespace"`
				Labels       map[string]string `json:"labels"`
				Annotations  map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := d.decode(&head); err != nil {
			return nil, d.Fail("metadata", err.Error(), "write name, labels and annotations as texts")
		}
		m := &head.Metadata
		d.APIVersion, d.Name, d.Namespace, d.Labels, d.Annotations = head.APIVersion, firstText(m.Name, trimHyphen(m.GenerateName)), m.Namespace, m.Labels, m.Annotations
	}
	return out, nil
}

// trimHyphen takes the end off a generateName: the job has a number of its own.
func trimHyphen(s string) string {
	for s != "" && s[len(s)-1] == '-' {
		s = s[:len(s)-1]
	}
	return s
}
