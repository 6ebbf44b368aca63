//go:build !planted_lost_submit

package planted

const LostSubmit = false
