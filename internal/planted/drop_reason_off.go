//go:build !planted_drop_reason

package planted

const DropReason = false
