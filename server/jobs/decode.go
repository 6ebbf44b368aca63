package jobs

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
	"github.com/coxswain-sched/coxswain/server/transport"
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
	if err := d.readObject(func(name string) error { return d.readField(v, name) }); err != nil {
		return nil, err
	}
	d.skipSpace()
	if d.at < len(d.s) {
		return nil, d.syntaxError("more behind its end")
	}
	return v, nil
}

func (d *decoder) readField(v *submission, name string) (err error) {
	switch name {
	case "form":
		v.Form, err = d.readCopiedText()
	case "file":
		v.File, err = d.readCopiedText()
	case "dir":
		v.Dir, err = d.readCopiedText()
	case "host":
		v.Host, err = d.readCopiedText()
	case "text":
		v.script, err = d.readBytes()
	case "args":
		v.Args, err = d.readList(d.readCopiedText)
	case "script_args":
		v.ScriptArgs, err = d.readList(d.readCopiedText)
	case "command":
		v.Command, err = d.readList(d.readCopiedText)
	case "environ":
		v.Environ, err = d.readList(d.readText)
	case "umask":
		v.Umask, err = d.readNumber()
	default:
		return d.decodeRareField(v, name)
	}
	return err
}

// readNumber reads a whole number, or null.
func (d *decoder) readNumber() (*uint32, error) {
	if d.readNull() {
		return nil, nil
	}
	from := d.at
	for d.at < len(d.s) && d.s[d.at] >= '0' && d.s[d.at] <= '9' {
		d.at++
	}
	n, err := strconv.ParseUint(d.s[from:d.at], 10, 32)
	if err != nil || d.at-from > 1 && d.s[from] == '0' {
		return nil, d.syntaxError("a whole number is missing")
	}
	v := uint32(n)
	return &v, nil
}

// decodeRareField hands one field to encoding/json.
func (d *decoder) decodeRareField(v *submission, name string) error {
	from := d.at
	if err := d.skipValue(0); err != nil {
		return err
	}
	var into any
	switch name {
	case "step":
		into = &v.Step
	case "limits":
		into = &v.Limits
	case "client":
		into = &v.Client
	case "work":
		into = &v.Work
	case "lease":
		into = &v.Lease
	case "kill_on_bad_exit":
		into = &v.KillBad
	case "strict":
		into = &v.Strict
	case "test_only":
		into = &v.TestOnly
	case "preview":
		into = &v.Preview
	case "pool":
		into = &v.Pool
	case "notify":
		into = &v.Notify
	case "rerun":
		into = &v.Rerun
	case "pods":
		into = &v.Pods
	case "provenance":
		into = &v.Provenance
	case "schedule":
		into = &v.Schedule
	case "once":
		into = &v.Once
	case "upload":
		into = &v.Upload
	case "files":
		into = &v.Files
	default:
		return fault.New(fault.Invalid, "a submission has no field %q", name).
			Advise("fields stand in /openapi.json; a client that is newer than this server needs a newer server (API %s)", transport.APIVersion)
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

func (d *decoder) syntaxError(what string) error {
	line := 1 + strings.Count(d.s[:min(d.at, len(d.s))], "\n")
	return fault.New(fault.Invalid, "the submission is not the JSON that is expected: %s at byte %d, line %d", what, d.at, line).
		Advise("send application/json; its form stands in /openapi.json")
}

func (d *decoder) skipSpace() {
	for d.at < len(d.s) {
		switch d.s[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// skipByte skips white space and one byte, if it is that one.
func (d *decoder) skipByte(c byte) bool {
	d.skipSpace()
	if d.at < len(d.s) && d.s[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) readNull() bool {
	d.skipSpace()
	if strings.HasPrefix(d.s[d.at:], "null") {
		d.at += 4
		return true
	}
	return false
}

// readObject calls f at the value of every member.
func (d *decoder) readObject(f func(name string) error) error {
	if !d.skipByte('{') {
		return d.syntaxError("an object is missing")
	}
	if d.skipByte('}') {
		return nil
	}
	for {
		name, err := d.readText()
		if err != nil {
			return err
		}
		if !d.skipByte(':') {
			return d.syntaxError("a : is missing")
		}
		d.skipSpace()
		if err := f(name); err != nil {
			return err
		}
		switch {
		case d.skipByte('}'):
			return nil
		case !d.skipByte(','):
			return d.syntaxError("a comma or } is missing")
		}
	}
}

// readList reads an array of strings, or null.
func (d *decoder) readList(element func() (string, error)) ([]string, error) {
	if d.readNull() {
		return nil, nil
	}
	if !d.skipByte('[') {
		return nil, d.syntaxError("a list is missing")
	}
	if d.skipByte(']') {
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
		case d.skipByte(']'):
			return out, nil
		case !d.skipByte(','):
			return nil, d.syntaxError("a comma or ] is missing")
		}
	}
}

// readText reads a string; without escapes it shares memory with the body.
func (d *decoder) readText() (string, error) {
	raw, escaped, err := d.readRaw()
	if err != nil {
		return "", err
	}
	if !escaped {
		return raw, nil
	}
	b, err := d.unescape(raw)
	return string(b), err
}

// readCopiedText reads a string with memory of its own; null is empty.
func (d *decoder) readCopiedText() (string, error) {
	if d.readNull() {
		return "", nil
	}
	v, err := d.readText()
	return strings.Clone(v), err
}

// readBytes reads a string as bytes, in one pass: a script is full of escapes. Null is
// empty.
func (d *decoder) readBytes() ([]byte, error) {
	if d.readNull() {
		return nil, nil
	}
	if !d.skipByte('"') {
		return nil, d.syntaxError("a string is missing")
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
				return nil, d.syntaxError("text that is not UTF-8")
			}
			return out, nil
		case c == '\\' && short[b[d.at+1]] != 0:
			out = append(out, short[b[d.at+1]])
			d.at += 2
		case c == '\\' && b[d.at+1] == 'u':
			r, n, ok := codePoint(d.s[d.at+2:])
			if !ok {
				return nil, d.syntaxError("an escape that is none")
			}
			out = utf8.AppendRune(out, r)
			d.at += 2 + n
		case c == '\\':
			return nil, d.syntaxError("an escape that is none")
		case c < ' ':
			return nil, d.syntaxError("a control character inside of a string")
		default:
			high = true
			out = append(out, c)
			d.at++
		}
	}
	return nil, d.syntaxError("a string does not end")
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

// readRaw returns a string as it stands between its quotes.
func (d *decoder) readRaw() (raw string, escaped bool, err error) {
	if !d.skipByte('"') {
		return "", false, d.syntaxError("a string is missing")
	}
	from, quote := d.at, -1
	for {
		if quote < d.at {
			i := strings.IndexByte(d.s[d.at:], '"')
			if i < 0 {
				return "", false, d.syntaxError("a string does not end")
			}
			quote = d.at + i
		}
		i := strings.IndexByte(d.s[d.at:quote], '\\')
		if i < 0 {
			break
		}
		escaped = true
		if d.at += i + 2; d.at > len(d.s) {
			return "", false, d.syntaxError("a string does not end")
		}
	}
	raw = d.s[from:quote]
	d.at = quote + 1
	control, high := hasUnusualBytes(d.b[from:quote])
	switch {
	case control:
		return "", false, d.syntaxError("a control character inside of a string")
	case high && !utf8.ValidString(raw):
		return "", false, d.syntaxError("text that is not UTF-8")
	}
	return raw, escaped, nil
}

// hasUnusualBytes looks for control characters and for bytes above ASCII, eight at a time:
// a byte below 0x20 borrows its top bit, and only the first such byte need be right.
func hasUnusualBytes(b []byte) (control, high bool) {
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
			return nil, d.syntaxError("an escape that is none")
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

// skipValue passes over any value.
func (d *decoder) skipValue(depth int) error {
	if depth > 100 {
		return fault.New(fault.Invalid, "the submission is %w", errDeep)
	}
	d.skipSpace()
	if d.at == len(d.s) {
		return d.syntaxError("a value is missing")
	}
	switch d.s[d.at] {
	case '{':
		return d.readObject(func(string) error { return d.skipValue(depth + 1) })
	case '"':
		_, _, err := d.readRaw()
		return err
	case '[':
		d.at++
		for first := true; ; first = false {
			switch {
			case first && d.skipByte(']'):
				return nil
			case !first && d.skipByte(']'):
				return nil
			case !first && !d.skipByte(','):
				return d.syntaxError("a comma or ] is missing")
			}
			if err := d.skipValue(depth + 1); err != nil {
				return err
			}
		}
	}
	from := d.at
	for d.at < len(d.s) && !strings.ContainsRune(" \t\r\n,]}", rune(d.s[d.at])) {
		d.at++
	}
	if !json.Valid([]byte(d.s[from:d.at])) {
		return d.syntaxError("a value that is none")
	}
	return nil
}
