//go:build planted_usage_lost

package planted

const UsageLost = true
