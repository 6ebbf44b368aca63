//go:build planted_array_limit

package planted

const ArrayLimit = true
