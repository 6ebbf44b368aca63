package manifest

import (
	"bytes"
	"encoding/json"

	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// JSON is the value at a path as kubectl would send it, nil if the document has none. Fields keep
// their order.
func (d *Document) JSON(path string) []byte {
	n := d.Node(path)
	if n == nil {
		return nil
	}
	return NodeJSON(n)
}

// NodeJSON is a value of a document in JSON, as kubectl would send it.
func NodeJSON(n *yaml.Node) []byte {
	var b bytes.Buffer
	writeJSON(&b, n)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case yaml.Mapping:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, f.Name)
			b.WriteByte(':')
			writeJSON(b, f.Value)
		}
		b.WriteByte('}')
	default:
		if kind, text := resolveScalar(n); kind != aText {
			b.WriteString(text)
			return
		}
		writeText(b, n.Text)
	}
}

// writeText writes a text; what is no UTF-8 in it is replaced, as kubectl does.
func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		b.WriteString(`""`) // a string is always encoded: cannot happen
		return
	}
	b.Truncate(b.Len() - 1) // the line end
}
