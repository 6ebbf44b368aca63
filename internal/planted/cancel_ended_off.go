//go:build !planted_cancel_ended

package planted

const CancelEnded = false
