//go:build !planted_early_number

package planted

const EarlyNumber = false
