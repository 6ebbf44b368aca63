//go:build !planted_not_undone

package planted

const NotUndone = false
