package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Node returns the value at a path, nil if there is none: "spec.containers[0].image",
// "metadata.labels[kueue.x-k8s.io/queue-name]". The empty path is the document.
func (d *Document) Node(path string) *yaml.Node {
	n, _ := d.findPath(path)
	return n
}

// Place is where the field of a path stands: its name, or the value of an entry of a list. If
// the document has no such field, it is the place of the nearest one around it.
func (d *Document) Place(path string) yaml.Place {
	_, at := d.findPath(path)
	return at
}

// findPath follows a path as far as it goes.
func (d *Document) findPath(path string) (*yaml.Node, yaml.Place) {
	n, at := d.root, d.root.Place
	if n.Kind == yaml.Mapping && len(n.Fields) > 0 {
		at = n.Fields[0].Place
	}
	for path != "" {
		var step string
		if step, path = cutStep(path); step == "" {
			continue
		}
		switch n.Kind {
		case yaml.List:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Items) {
				return nil, at
			}
			n = n.Items[i]
			at = n.Place
		case yaml.Mapping:
			f := findField(n, step)
			if f == nil {
				return nil, at
			}
			n, at = f.Value, f.Place
		default:
			return nil, at
		}
	}
	return n, at
}

func findField(n *yaml.Node, name string) *yaml.Field {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return &n.Fields[i]
		}
	}
	return nil
}

// cutStep takes the first step off a path.
func cutStep(path string) (step, rest string) {
	if path[0] == '[' {
		if end := strings.IndexByte(path, ']'); end > 0 {
			return path[1:end], path[end+1:]
		}
	}
	path = strings.TrimPrefix(path, ".")
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// Join is the path of a field below another one.
func Join(path, field string) string {
	switch {
	case strings.ContainsAny(field, "./[]") || field == "":
		return path + "[" + field + "]"
	case path == "":
		return field
	}
	return path + "." + field
}

// Fail is an error about the field of a path, which the document need not have. The message
// completes "path: …".
func (d *Document) Fail(path, remedy, format string, args ...any) *spec.Error {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = shortText(path) + ": " + message
	}
	return d.failAt(d.Place(path), remedy, message)
}

// failAt is an error about a place.
func (d *Document) failAt(at yaml.Place, remedy, message string) *spec.Error {
	if label := d.Label(); label != "" {
		message = label + ": " + message
	}
	e := d.text.Error(at, message, remedy)
	if d.Kind != nil && d.Kind.Name == "Secret" {
		e.Text, e.Len = "", 0 // the line may hold what nobody else may see
	}
	return e
}

// Warn is a warning about the field of a path. The message completes "path …".
func (d *Document) Warn(path, format string, args ...any) spec.Warning {
	at := d.Place(path)
	option := shortText(path)
	if label := d.Label(); label != "" {
		option = strings.TrimSuffix(label+": "+option, ": ")
	}
	return spec.Warning{File: d.text.Name(), Line: at.Line, Col: at.Col, Option: option, Message: fmt.Sprintf(format, args...)}
}
