//go:build planted_uncounted

package planted

const Uncounted = true
