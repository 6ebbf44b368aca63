// Package printable says which characters of a text that somebody else wrote may reach a
// terminal. Names of jobs, comments and file names come from users; characters that move the
// cursor, start an escape sequence or reverse the direction of text would let one user change
// what another one sees.
package printable

import "unicode/utf8"

// IsRune reports whether a character can be printed as it is. Control characters, marks that
// change the direction of text, separators of lines, byte-order marks, tags and
// utf8.RuneError cannot.
func IsRune(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError,
		r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
		r == 0xfeff, r >= 0xe0000 && r <= 0xe007f:
		return false
	}
	return true
}

// Clean turns line breaks and tabs into blanks and every other character that cannot be
// printed, and every byte that is not UTF-8, into a question mark. It returns its argument
// where there is none of these.
func Clean(b []byte) []byte {
	first := 0
	for first < len(b) {
		r, size := utf8.DecodeRune(b[first:])
		if !IsRune(r) {
			break
		}
		first += size
	}
	if first == len(b) {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:first]...)
	for i := first; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			out = append(out, ' ')
		case !IsRune(r):
			out = append(out, '?')
		default:
			out = append(out, b[i:i+size]...)
		}
		i += size
	}
	return out
}
