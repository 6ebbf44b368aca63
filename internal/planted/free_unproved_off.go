//go:build !planted_free_unproved

package planted

const FreeUnproved = false
