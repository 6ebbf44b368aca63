package fastclient

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/api"
)

// Object appends a JSON object field by field. The zero value is ready; End closes
// it.
type Object struct{ b []byte }

func (o *Object) name(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// Text adds a text; an empty one is left out.
func (o *Object) Text(name, v string) {
	if v != "" {
		o.name(name)
		o.b = AppendString(o.b, v)
	}
}

// SetText adds a text, also an empty one.
func (o *Object) SetText(name, v string) {
	o.name(name)
	o.b = AppendString(o.b, v)
}

// Texts adds a list of texts; an empty one is left out.
func (o *Object) Texts(name string, v []string) {
	if len(v) > 0 {
		o.SetTexts(name, v)
	}
}

// SetTexts adds a list of texts, also an empty one.
func (o *Object) SetTexts(name string, v []string) {
	o.name(name)
	o.b = append(o.b, '[')
	for i, s := range v {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = AppendString(o.b, s)
	}
	o.b = append(o.b, ']')
}

// True adds a field that is true, or nothing.
func (o *Object) True(name string, v bool) {
	if v {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

// Raw adds JSON as it is.
func (o *Object) Raw(name string, v []byte) {
	o.name(name)
	o.b = append(o.b, v...)
}

// Int adds a whole number.
func (o *Object) Int(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

// Float adds a number.
func (o *Object) Float(name string, v float64) {
	o.name(name)
	o.b = strconv.AppendFloat(o.b, v, 'g', -1, 64)
}

// Len says whether anything was added: 0 if not.
func (o *Object) Len() int { return len(o.b) }

// End closes the object and returns it.
func (o *Object) End() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	o.b = append(o.b, '}')
	return o.b
}

// Submit encodes a request to submit, without its provenance.
func Submit(s *api.Submit) []byte {
	n := 1024 + len(s.Text) + len(s.Text)/8
	for _, e := range s.Environ {
		n += len(e) + len(e)/8 + 4
	}
	o := Object{b: make([]byte, 0, n)}
	o.Text("form", s.Form)
	o.Text("file", s.File)
	o.Text("text", s.Text)
	o.Texts("args", s.Args)
	o.Texts("script_args", s.ScriptArgs)
	o.Texts("command", s.Command)
	o.Texts("step", s.Step)
	o.Text("client", s.Client)
	if s.Lease != 0 {
		o.Int("lease", s.Lease)
	}
	if s.KillBad != nil {
		o.Raw("kill_on_bad_exit", strconv.AppendBool(nil, *s.KillBad))
	}
	o.Texts("environ", s.Environ)
	o.SetText("dir", s.Dir)
	o.Text("host", s.Host)
	if s.Umask != nil {
		o.Int("umask", int64(*s.Umask))
	}
	o.Texts("limits", s.Limits)
	o.True("strict", s.Strict)
	if len(s.Files) > 0 {
		var f Object
		for _, name := range slices.Sorted(maps.Keys(s.Files)) {
			f.name(string(quoteJSON(name)))
			f.b = AppendString(f.b, s.Files[name])
		}
		o.Raw("files", f.End())
	}
	o.True("test_only", s.TestOnly)
	o.Text("pool", s.Pool)
	return o.End()
}

// Select encodes a selection of jobs.
func Select(s *api.Select) []byte {
	var o Object
	o.Texts("ids", s.IDs)
	o.Texts("users", s.Users)
	o.Texts("accounts", s.Accounts)
	o.Texts("partitions", s.Partitions)
	o.Texts("qos", s.QOS)
	o.Texts("names", s.Names)
	o.Texts("states", s.States)
	o.Texts("nodes", s.Nodes)
	o.Texts("pools", s.Pools)
	o.True("all", s.All)
	return o.End()
}

// quoteJSON is a text as it stands between quotes.
func quoteJSON(s string) []byte {
	b := AppendString(nil, s)
	return b[1 : len(b)-1]
}

const hexDigits = "0123456789abcdef"

// AppendString appends a text in quotes. Bytes that are no UTF-8 become U+FFFD, as
// encoding/json has it.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r < 0xa0 { // a control character that terminals act upon
				b = append(append(b, s[from:i]...), '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
				i += n
				from = i
				continue
			}
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, "\ufffd"...)
		}
		i++
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
