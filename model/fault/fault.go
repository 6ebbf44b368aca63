// Package fault gives every error of the project one of a few kinds. The kind,
// never the text, decides the exit code and the HTTP status, in this one place.
//
// An error without a kind is Internal. Wrapping with %w keeps the kind.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Kind classifies an error by what the caller can do about it.
type Kind uint8

// The kinds.
const (
	Internal    Kind = iota // a defect or a broken machine
	Invalid                 // the request is wrong: change it
	NotFound                // no such thing, and that is certain
	Conflict                // the state has moved on, or the name is taken
	Permission              // not yours to do
	Unavailable             // no answer now: the outcome is unknown, ask again
	Unsupported             // this engine or version cannot do it
	Exhausted               // disk, memory, numbers: nothing is left
)

// kinds holds numbers instead of net/http's names: that package would cost every
// srun a part of its start-up time.
var kinds = []struct {
	name   string
	status int
	exit   int
}{
	Internal:    {"internal", 500, 70},
	Invalid:     {"invalid request", 400, 2},
	NotFound:    {"not found", 404, 3},
	Conflict:    {"conflict", 409, 4},
	Permission:  {"permission", 403, 77},
	Unavailable: {"unavailable", 503, 75},
	Unsupported: {"unsupported", 501, 69},
	Exhausted:   {"exhausted", 507, 74},
}

// String is the kind's name as messages show it.
func (k Kind) String() string { return kinds[k].name }

// HTTPStatus is the status code of a response that reports the kind.
func (k Kind) HTTPStatus() int { return kinds[k].status }

// ExitCode is cox's own exit code for the kind. The codes of Unavailable,
// Unsupported, Permission, Exhausted and Internal are those of sysexits.h.
func (k Kind) ExitCode() int { return kinds[k].exit }

// Error is an error with a kind and, where there is one, what to do about it.
type Error struct {
	Kind   Kind
	Err    error
	Remedy string // one sentence, empty if there is nothing to advise
}

// Error is the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// New formats an error of a kind; %w wraps.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Err: fmt.Errorf(format, args...)}
}

// Advise returns the error with a remedy.
func (e *Error) Advise(format string, args ...any) *Error {
	return &Error{Kind: e.Kind, Err: e.Err, Remedy: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of the outermost Error in the chain, or what an error's
// own FaultKind method says, or the kind of a full disk or a forbidden file that
// the system reports; Internal otherwise.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var k interface{ FaultKind() Kind }
	switch {
	case errors.As(err, &k):
		return k.FaultKind()
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Exhausted
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return Permission
	}
	return Internal
}

// Remedy returns the remedy of the outermost Error in the chain, or "".
func Remedy(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Remedy
	}
	return ""
}
