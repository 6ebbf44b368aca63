package server

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// submission is api.Submit as it is read: the script as bytes. Environ shares
// memory with the request's copy and is not to be kept; what a job keeps does not.
type submission struct {
	api.Submit
	script []byte // Text
}

// readSubmission reads api.Submit. It does what encoding/json would, in a tenth of
// the time: submissions come by the thousand with a script and an environment each.
// Fields that are rare are left to encoding/json.
func readSubmission(body []byte) (*submission, error) {
	d := &decoder{b: body, s: string(body)}
	v := &submission{}
	if err := d.object(func(name string) error { return d.field(v, name) }); err != nil {
		return nil, err
	}
	d.space()
	if d.at < len(d.s) {
		return nil, d.fail("more behind its end")
	}
	return v, nil
}

func (d *decoder) field(v *submission, name string) (err error) {
	switch name {
	case "form":
		v.Form, err = d.kept()
	case "file":
		v.File, err = d.kept()
	case "dir":
		v.Dir, err = d.kept()
	case "host":
		v.Host, err = d.kept()
	case "text":
		v.script, err = d.bytes()
	case "args":
		v.Args, err = d.list(d.kept)
	case "script_args":
		v.ScriptArgs, err = d.list(d.kept)
	case "command":
		v.Command, err = d.list(d.kept)
	case "environ":
		v.Environ, err = d.list(d.text)
	case "umask":
		v.Umask, err = d.number()
	default:
		return d.rare(v, name)
	}
	return err
}

// number reads a whole number, or null.
func (d *decoder) number() (*uint32, error) {
	if d.null() {
		return nil, nil
	}
	from := d.at
	for d.at < len(d.s) && d.s[d.at] >= '0' && d.s[d.at] <= '9' {
		d.at++
	}
	n, err := strconv.ParseUint(d.s[from:d.at], 10, 32)
	if err != nil || d.at-from > 1 && d.s[from] == '0' {
		return nil, d.fail("a whole number is missing")
	}
	v := uint32(n)
	return &v, nil
}

// rare hands one field to encoding/json.
func (d *decoder) rare(v *submission, name string) error {
	from := d.at
	if err := d.skip(0); err != nil {
		return err
	}
	var into any
	switch name {
	case "strict":
		into = &v.Strict
	case "test_only":
		into = &v.TestOnly
	case "preview":
		into = &v.Preview
	case "pool":
		into = &v.Pool
	case "pods":
		into = &v.Pods
	case "provenance":
		into = &v.Provenance
	case "upload":
		into = &v.Upload
	case "files":
		into = &v.Files
	default:
		return fault.New(fault.Invalid, "a submission has no field %q", name).
			Advise("fields stand in /openapi.json; a client that is newer than this server needs a newer server (API %s)", apiVersion)
	}
	dec := json.NewDecoder(strings.NewReader(d.s[from:d.at]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.New(fault.Invalid, "field %q of the submission: %w", name, err).Advise("its form stands in /openapi.json")
	}
	return nil
}

// decoder reads JSON from a string.
type decoder struct {
	b  []byte // what s was made of
	s  string
	at int
}

func (d *decoder) fail(what string) error {
	line := 1 + strings.Count(d.s[:min(d.at, len(d.s))], "\n")
	return fault.New(fault.Invalid, "the submission is not the JSON that is expected: %s at byte %d, line %d", what, d.at, line).
		Advise("send application/json; its form stands in /openapi.json")
}

func (d *decoder) space() {
	for d.at < len(d.s) {
		switch d.s[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// next skips white space and one byte, if it is that one.
func (d *decoder) next(c byte) bool {
	d.space()
	if d.at < len(d.s) && d.s[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) null() bool {
	d.space()
	if strings.HasPrefix(d.s[d.at:], "null") {
		d.at += 4
		return true
	}
	return false
}

// object calls f at the value of every member.
func (d *decoder) object(f func(name string) error) error {
	if !d.next('{') {
		return d.fail("an object is missing")
	}
	if d.next('}') {
		return nil
	}
	for {
		name, err := d.text()
		if err != nil {
			return err
		}
		if !d.next(':') {
			return d.fail("a : is missing")
		}
		d.space()
		if err := f(name); err != nil {
			return err
		}
		switch {
		case d.next('}'):
			return nil
		case !d.next(','):
			return d.fail("a comma or } is missing")
		}
	}
}

// list reads an array of strings, or null.
func (d *decoder) list(element func() (string, error)) ([]string, error) {
	if d.null() {
		return nil, nil
	}
	if !d.next('[') {
		return nil, d.fail("a list is missing")
	}
	if d.next(']') {
		return nil, nil
	}
	out := make([]string, 0, 8)
	for {
		v, err := element()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		switch {
		case d.next(']'):
			return out, nil
		case !d.next(','):
			return nil, d.fail("a comma or ] is missing")
		}
	}
}

// text reads a string; without escapes it shares memory with the body.
func (d *decoder) text() (string, error) {
	raw, escaped, err := d.raw()
	if err != nil {
		return "", err
	}
	if !escaped {
		return raw, nil
	}
	b, err := d.unescape(raw)
	return string(b), err
}

// kept reads a string with memory of its own; null is empty.
func (d *decoder) kept() (string, error) {
	if d.null() {
		return "", nil
	}
	v, err := d.text()
	return strings.Clone(v), err
}

// bytes reads a string as bytes, in one pass: a script is full of escapes. Null is
// empty.
func (d *decoder) bytes() ([]byte, error) {
	if d.null() {
		return nil, nil
	}
	if !d.next('"') {
		return nil, d.fail("a string is missing")
	}
	out := make([]byte, 0, min(len(d.b)-d.at, 4096))
	high := false
	for b := d.b; ; {
		from := d.at
		for d.at < len(b) && plain[b[d.at]] {
			d.at++
		}
		out = append(out, b[from:d.at]...)
		if d.at+1 >= len(b) {
			break
		}
		switch c := b[d.at]; {
		case c == '"':
			d.at++
			if high && !utf8.Valid(out) {
				return nil, d.fail("text that is not UTF-8")
			}
			return out, nil
		case c == '\\' && short[b[d.at+1]] != 0:
			out = append(out, short[b[d.at+1]])
			d.at += 2
		case c == '\\' && b[d.at+1] == 'u':
			r, n, ok := codePoint(d.s[d.at+2:])
			if !ok {
				return nil, d.fail("an escape that is none")
			}
			out = utf8.AppendRune(out, r)
			d.at += 2 + n
		case c == '\\':
			return nil, d.fail("an escape that is none")
		case c < ' ':
			return nil, d.fail("a control character inside of a string")
		default:
			high = true
			out = append(out, c)
			d.at++
		}
	}
	return nil, d.fail("a string does not end")
}

// plain are the bytes that stand for themselves; short is what an escape of one
// letter stands for.
var plain, short = func() (p [256]bool, s [256]byte) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		p[c] = c != '"' && c != '\\'
	}
	for c, v := range map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\\': '\\', '/': '/'} {
		s[c] = v
	}
	return p, s
}()

// raw returns a string as it stands between its quotes.
func (d *decoder) raw() (raw string, escaped bool, err error) {
	if !d.next('"') {
		return "", false, d.fail("a string is missing")
	}
	from, quote := d.at, -1
	for {
		if quote < d.at {
			i := strings.IndexByte(d.s[d.at:], '"')
			if i < 0 {
				return "", false, d.fail("a string does not end")
			}
			quote = d.at + i
		}
		i := strings.IndexByte(d.s[d.at:quote], '\\')
		if i < 0 {
			break
		}
		escaped = true
		if d.at += i + 2; d.at > len(d.s) {
			return "", false, d.fail("a string does not end")
		}
	}
	raw = d.s[from:quote]
	d.at = quote + 1
	control, high := unusual(d.b[from:quote])
	switch {
	case control:
		return "", false, d.fail("a control character inside of a string")
	case high && !utf8.ValidString(raw):
		return "", false, d.fail("text that is not UTF-8")
	}
	return raw, escaped, nil
}

// unusual looks for control characters and for bytes above ASCII, eight at a time:
// a byte below 0x20 borrows its top bit, and only the first such byte need be right.
func unusual(b []byte) (control, high bool) {
	const every = 0x0101010101010101
	var controls, highs uint64
	for ; len(b) >= 8; b = b[8:] {
		v := binary.LittleEndian.Uint64(b)
		highs |= v
		controls |= (v - 0x20*every) &^ v
	}
	for _, c := range b {
		highs |= uint64(c)
		if c < 0x20 {
			return true, highs&(0x80*every) != 0
		}
	}
	return controls&(0x80*every) != 0, highs&(0x80*every) != 0
}

func (d *decoder) unescape(raw string) ([]byte, error) {
	b := make([]byte, 0, len(raw))
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			return append(b, raw...), nil
		}
		b = append(b, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		if v := short[c]; v != 0 {
			b = append(b, v)
			continue
		}
		r, n, ok := codePoint(raw)
		if c != 'u' || !ok {
			return nil, d.fail("an escape that is none")
		}
		b, raw = utf8.AppendRune(b, r), raw[n:]
	}
}

// codePoint reads what stands behind \u, the second half of a pair too.
func codePoint(s string) (r rune, n int, ok bool) {
	hex := func(s string) (rune, bool) {
		if len(s) < 4 {
			return 0, false
		}
		v, err := strconv.ParseUint(s[:4], 16, 16)
		return rune(v), err == nil
	}
	if r, ok = hex(s); !ok || !utf16.IsSurrogate(r) {
		return r, 4, ok
	}
	if strings.HasPrefix(s[4:], `\u`) {
		if low, ok := hex(s[6:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 10, true
			}
		}
	}
	return utf8.RuneError, 4, true // half a pair, as encoding/json reads it
}

var errDeep = errors.New("nested too deeply")

// skip passes over any value.
func (d *decoder) skip(depth int) error {
	if depth > 100 {
		return fault.New(fault.Invalid, "the submission is %w", errDeep)
	}
	d.space()
	if d.at == len(d.s) {
		return d.fail("a value is missing")
	}
	switch d.s[d.at] {
	case '{':
		return d.object(func(string) error { return d.skip(depth + 1) })
	case '"':
		_, _, err := d.raw()
		return err
	case '[':
		d.at++
		for first := true; ; first = false {
			switch {
			case first && d.next(']'):
				return nil
			case !first && d.next(']'):
				return nil
			case !first && !d.next(','):
				return d.fail("a comma or ] is missing")
			}
			if err := d.skip(depth + 1); err != nil {
				return err
			}
		}
	}
	from := d.at
	for d.at < len(d.s) && !strings.ContainsRune(" \t\r\n,]}", rune(d.s[d.at])) {
		d.at++
	}
	if !json.Valid([]byte(d.s[from:d.at])) {
		return d.fail("a value that is none")
	}
	return nil
}
