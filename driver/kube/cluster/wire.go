package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Objects of the core group go over the wire as Protocol Buffers: a pod is a third as long as
// in JSON, and is read in a tenth of the time, on both sides. An API server encodes an event
// once for all who watch in that form, as its own controllers do. All else is JSON: kinds of
// add-ons have no other form, and the fields of a message differ between the versions of a
// group. A server that takes no such body is spoken to in JSON from then on.

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	plain    = "application/json"
)

// magic begins each object in this form; a runtime.Unknown follows.
var magic = []byte("k8s\x00")

// isBinary reports whether a resource's objects are asked for and sent as Protocol Buffers.
func (r Resource) isBinary() bool { return r.Group == "" && r.Version == "v1" }

// acceptHeader are those that an answer may have.
func acceptHeader(binary bool) string {
	if binary {
		return protobuf + "," + plain
	}
	return plain
}

// encodeBody writes a body, and says what form it has.
func encodeBody(q *call) (body []byte, kind string, err error) {
	if q.body == nil {
		return nil, "", nil
	}
	if q.kind == "" && q.binary {
		if o, ok := q.body.(interface {
			runtime.Object
			Marshal() ([]byte, error)
		}); ok && o.GetObjectKind().GroupVersionKind().Kind != "" {
			body, err = wrapEnvelope(o, o.Marshal)
			return body, protobuf, err
		}
	}
	body, err = json.Marshal(q.body)
	return body, orDefault(q.kind, plain), err
}

func wrapEnvelope(o runtime.Object, marshal func() ([]byte, error)) ([]byte, error) {
	raw, err := marshal()
	if err != nil {
		return nil, err
	}
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	text, err := u.Marshal()
	return append(magic[:len(magic):len(magic)], text...), err
}

// isBinary reports whether an answer is in Protocol Buffers.
func isBinary(h http.Header) bool { return strings.HasPrefix(h.Get("Content-Type"), protobuf) }

// message is what can read its own fields.
type message interface{ Unmarshal([]byte) error }

// decodeBinary reads an object into a value, without what cut names.
func decodeBinary(text []byte, cut *cut, into any) error {
	kind, raw, err := unwrapEnvelope(text)
	if err != nil {
		return err
	}
	m, ok := into.(message)
	if !ok {
		return fmt.Errorf("%T cannot be read from %s", into, protobuf)
	}
	if raw, err = cut.cutFields(raw); err != nil {
		return err
	}
	if err := m.Unmarshal(raw); err != nil {
		return err
	}
	if o, ok := into.(runtime.Object); ok {
		o.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	}
	return nil
}

// unwrapEnvelope is the object in its envelope. It is a part of text.
func unwrapEnvelope(text []byte) (kind runtime.TypeMeta, raw []byte, err error) {
	rest, ok := bytes.CutPrefix(text, magic)
	if !ok {
		return kind, nil, errors.New("the answer is not what it says it is: " + protobuf)
	}
	err = eachField(rest, func(number uint64, _, value []byte) error {
		switch number {
		case 1:
			return kind.Unmarshal(value)
		case 2:
			raw = value
		case 3:
			if len(value) > 0 {
				return fmt.Errorf("the answer is encoded as %q", value)
			}
		}
		return nil
	})
	return kind, raw, err
}

// eachField calls f for each field of a message: its number, all of it, and its value, if that is of
// bytes.
func eachField(text []byte, f func(number uint64, field, value []byte) error) error {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		size, length := 0, uint64(0)
		switch tag & 7 {
		case 0:
			_, size = binary.Uvarint(text[n:])
		case 1:
			size = 8
		case 2:
			length, size = binary.Uvarint(text[n:])
		case 5:
			size = 4
		default:
			return fmt.Errorf("a field of wire type %d", tag&7)
		}
		if size <= 0 || length > uint64(len(text)) || n+size+int(length) > len(text) {
			return io.ErrUnexpectedEOF
		}
		end := n + size + int(length)
		if err := f(tag>>3, text[:end], text[n+size:end]); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}

// cut says which fields of a message are not read. nil: all are.
type cut struct {
	only bool            // the others are not, than those in fields
	in   map[uint64]*cut // nil: with only the whole field is read, else it is not
}

var (
	// managed leaves out who wrote which field: a third of an object, and nobody here asks.
	managed = &cut{in: map[uint64]*cut{1: {in: map[uint64]*cut{17: nil}}}}
	// lean leaves out of a pod, besides, all of its specification but its node, its gates and its claims.
	lean = &cut{in: map[uint64]*cut{1: managed.in[1], 2: {only: true, in: map[uint64]*cut{10: nil, 38: nil, 39: nil}}}}
)

// cutFields is a message without what is cut out of it. It may be a part of text.
func (c *cut) cutFields(text []byte) ([]byte, error) {
	if c == nil {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	err := eachField(text, func(number uint64, field, value []byte) error {
		below, named := c.in[number]
		switch {
		case below != nil:
			less, err := below.cutFields(value)
			if err != nil {
				return err
			}
			out = binary.AppendUvarint(out, number<<3|2)
			out = append(binary.AppendUvarint(out, uint64(len(less))), less...)
		case named == c.only:
			out = append(out, field...)
		}
		return nil
	})
	return out, err
}

// pageOf reads a part of a list, and calls f for every object of it.
func pageOf[T any](text []byte, cut *cut, f func(*T) error) (meta metav1.ListMeta, err error) {
	_, raw, err := unwrapEnvelope(text)
	if err != nil {
		return meta, err
	}
	return meta, eachField(raw, func(number uint64, _, value []byte) error {
		switch number {
		case 1:
			return meta.Unmarshal(value)
		case 2:
			o := new(T)
			m, ok := any(o).(message)
			if !ok {
				return fmt.Errorf("%T cannot be read from %s", o, protobuf)
			}
			less, err := cut.cutFields(value)
			if err != nil {
				return err
			}
			if err := m.Unmarshal(less); err != nil {
				return err
			}
			return f(o)
		}
		return nil
	})
}

// events reads a watch: io.EOF at its end.
type events struct {
	body   *bufio.Reader
	json   *json.Decoder // nil: Protocol Buffers
	buffer []byte
}

func newEvents(r *http.Response) *events {
	if isBinary(r.Header) {
		return &events{body: bufio.NewReaderSize(r.Body, 32<<10)}
	}
	return &events{json: json.NewDecoder(r.Body)}
}

// event is a change. Its object is valid until the next one is read.
type event struct {
	what   watch.EventType
	object []byte
}

// eventAtMost bounds an event: no object is that long.
const eventAtMost = 64 << 20

func (e *events) nextEvent() (ev event, err error) {
	if e.json != nil {
		var x struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		err := e.json.Decode(&x)
		return event{x.Type, x.Object}, err
	}
	var head [4]byte
	if _, err := io.ReadFull(e.body, head[:]); err != nil {
		return ev, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > eventAtMost {
		return ev, fmt.Errorf("an event of %d bytes", n)
	}
	if uint32(cap(e.buffer)) < n {
		e.buffer = make([]byte, max(n, 16<<10))
	}
	text := e.buffer[:n]
	if _, err := io.ReadFull(e.body, text); err != nil {
		return ev, fmt.Errorf("in an event: %w", err)
	}
	err = eachField(text, func(number uint64, _, value []byte) error {
		switch number {
		case 1:
			ev.what = watch.EventType(value)
		case 2:
			return eachField(value, func(number uint64, _, value []byte) error {
				if number == 1 {
					ev.object = value
				}
				return nil
			})
		}
		return nil
	})
	return ev, err
}

// readObject reads an event's object, or a part of it, into a value.
func (e *events) readObject(ev event, cut *cut, into any) error {
	if bytes.HasPrefix(ev.object, magic) {
		return decodeBinary(ev.object, cut, into)
	}
	return json.Unmarshal(ev.object, into)
}
