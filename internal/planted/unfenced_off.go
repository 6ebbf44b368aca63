//go:build !planted_unfenced

package planted

const Unfenced = false
