package api

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// ErrorOf is the body that reports an error. Places in a submitted text are added
// by whoever knows the text.
func ErrorOf(err error) *Error {
	k := fault.KindOf(err)
	return &Error{Status: k.HTTPStatus(), Title: k.String(), Detail: err.Error(), Remedy: fault.Remedy(err)}
}

// Error is the detail, as the server wrote it.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Title
	}
	return e.Detail
}

// FaultKind is the kind that Title names; for a word that this version does not
// know, the one of the status.
func (e *Error) FaultKind() fault.Kind {
	for k := fault.Internal; k <= fault.Exhausted; k++ {
		if k.String() == e.Title {
			return k
		}
	}
	switch {
	case e.Status == 401 || e.Status == 403:
		return fault.Permission
	case e.Status == 404:
		return fault.NotFound
	case e.Status == 409:
		return fault.Conflict
	case e.Status == 501:
		return fault.Unsupported
	case e.Status == 502 || e.Status == 503 || e.Status == 504:
		return fault.Unavailable
	case e.Status == 507:
		return fault.Exhausted
	case e.Status >= 400 && e.Status < 500:
		return fault.Invalid
	}
	return fault.Internal
}

// Fault is the error as the rest of the program knows errors, with kind and
// remedy; errors.As finds the *Error in it.
func (e *Error) Fault() error {
	return &fault.Error{Kind: e.FaultKind(), Err: e, Remedy: e.Remedy}
}

// AppendTSV appends a value to a line of text with columns, with tab, newline,
// carriage return and backslash escaped.
func AppendTSV[T string | []byte](b []byte, v T) []byte {
	from := 0
	for i := range len(v) {
		var esc byte
		switch v[i] {
		case '\t':
			esc = 't'
		case '\n':
			esc = 'n'
		case '\r':
			esc = 'r'
		case '\\':
			esc = '\\'
		default:
			continue
		}
		b = append(append(b, v[from:i]...), '\\', esc)
		from = i + 1
	}
	return append(b, v[from:]...)
}

// UnescapeTSV is the value that AppendTSV wrote.
func UnescapeTSV(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			switch c = s[i]; c {
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			}
		}
		b = append(b, c)
	}
	return string(b)
}
