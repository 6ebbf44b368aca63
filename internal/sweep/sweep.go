// Package sweep changes a JSON document in one place at a time, for tests: every
// field left out, of a wrong type, empty, negative, too large, doubled.
//
// A fuzzer finds such changes by luck; a sweep makes each of them once, always the
// same ones in the same order. What a change means for the reader of the document
// is for the test to judge. Members of an object are written in order of their
// names, so a change that is none is not yielded, whatever order the document had.
package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Change is one changed document.
type Change struct {
	What string // place and change, for messages: "groups[0].nodes.min: -1"
	Doc  []byte
}

// numbers stand in for a number.
var numbers = []json.Number{
	"0", "-1", "1", "0.5", "65536", "2147483648", "4294967296", "1000000000000",
	"9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e400",
}

// texts stand in for a string.
var texts = []string{
	"", " ", "0", "-1", "\x00", "a\nb", "../../x", "%s%n%j", "\u202e", "null", "18446744073709551616",
	"9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1500-01-01T00:00:00Z", strings.Repeat("x", 9000),
}

// others stand in for a value of any type.
var others = []string{
	`null`, `true`, `7`, `"text"`, `[]`, `{}`, `[null]`, `[[]]`, `{"":null}`,
}

// JSON yields every change of a document. It panics if doc is not JSON: it is the
// test's own.
func JSON(doc []byte) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		var root any
		if err := dec.Decode(&root); err != nil {
			panic(fmt.Sprintf("sweep: %v in %s", err, doc))
		}
		s := &sweeper{root: root, yield: yield, same: encodeJSON(root)}
		s.changeValue("", root, func(v any) { s.root = v })
	}
}

type sweeper struct {
	root  any
	same  []byte
	yield func(Change) bool
	done  bool
}

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sweep: %v", err)) // it was read, or stands above
	}
	return b
}

// changeValue makes every change of one value; put writes another one in its place.
func (s *sweeper) changeValue(path string, v any, put func(any)) {
	for _, text := range others {
		s.yieldChange(path, text, put, json.RawMessage(text))
	}
	switch v := v.(type) {
	case json.Number:
		for _, n := range numbers {
			s.yieldChange(path, string(n), put, n)
		}
	case string:
		for _, x := range texts {
			s.yieldChange(path, fmt.Sprintf("%.20q", x), put, x)
		}
		s.yieldChange(path, "text twice", put, v+v)
	case []any:
		s.changeList(path, v, put)
	case map[string]any:
		s.changeObject(path, v, put)
	}
	put(v)
}

func (s *sweeper) changeList(path string, v []any, put func(any)) {
	for i := range v {
		s.yieldChange(fmt.Sprintf("%s[%d]", path, i), "left out", put, slices.Delete(slices.Clone(v), i, i+1))
		s.yieldChange(fmt.Sprintf("%s[%d]", path, i), "twice", put, slices.Insert(slices.Clone(v), i, v[i]))
	}
	back := slices.Clone(v)
	slices.Reverse(back)
	s.yieldChange(path, "backwards", put, back)
	if len(v) > 0 {
		s.yieldChange(path, "1000 of them", put, slices.Repeat(v[:1], 1000))
	}
	put(v)
	for i, x := range v {
		s.changeValue(fmt.Sprintf("%s[%d]", path, i), x, func(n any) { v[i] = n })
	}
}

func (s *sweeper) changeObject(path string, v map[string]any, put func(any)) {
	names := slices.Sorted(maps.Keys(v))
	for _, name := range names {
		less := maps.Clone(v)
		delete(less, name)
		s.yieldChange(path+"."+name, "left out", put, less)
	}
	more := maps.Clone(v)
	more["nobody_knows_this"] = 1
	s.yieldChange(path, "one member more", put, more)
	put(v)
	for _, name := range names {
		s.changeValue(path+"."+name, v[name], func(n any) { v[name] = n })
	}
}

// yieldChange yields the document with a value in its place.
func (s *sweeper) yieldChange(path, what string, put func(any), v any) {
	if s.done {
		return
	}
	put(v)
	if doc := encodeJSON(s.root); !bytes.Equal(doc, s.same) {
		s.done = !s.yield(Change{strings.TrimPrefix(path, ".") + ": " + what, doc})
	}
}
