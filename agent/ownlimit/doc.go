// Package ownlimit reads the resource limits of this process, which a submission passes on to the
// job (package rlimit says which and how).
package ownlimit

// Texts returns what Read returns, as a submission sends it: NAME=VALUE.
func Texts() []string {
	var out []string
	for _, l := range Read() {
		out = append(out, l.String())
	}
	return out
}
