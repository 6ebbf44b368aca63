// Package slurmfmt reads and prints the values of Slurm's dialect: times,
// memory, counts, job ids, arrays, generic resources, signals, file name
// patterns and state codes.
//
// Every function is pure: no I/O, no clock (begin times are relative to a given
// now), no state. What Slurm's own commands accept is accepted here and means
// the same; a few values that Slurm takes but that cannot mean anything (a
// negative GPU count) are refused. Sizes are checked before anything is
// allocated for them.
//
// Host lists have a package of their own, hostlist.
package slurmfmt

import (
	"fmt"
	"strconv"
)

// Error says why a text is not a value of the wanted form. Offset and Len count
// the bytes of Text that are wrong; Reason completes the sentence "TEXT …".
type Error struct {
	Text        string
	Offset, Len int
	Reason      string
}

// Error quotes the whole text and gives the reason.
func (e *Error) Error() string {
	if e.Text == "" {
		return "an empty value " + e.Reason
	}
	return fmt.Sprintf("%q %s", e.Text, e.Reason)
}

// textError blames all of the text.
func textError(text, reason string, args ...any) *Error {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	return &Error{Text: text, Len: len(text), Reason: reason}
}

// wrongPart blames text[from:to].
func wrongPart(text string, from, to int, reason string, args ...any) *Error {
	e := textError(text, reason, args...)
	e.Offset, e.Len = from, to-from
	return e
}

// parseDigits reads decimal digits alone, without sign, up to the largest int64.
func parseDigits(s string) (int64, bool) {
	if s == "" || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
