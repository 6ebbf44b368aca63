//go:build !planted_drain_ignored

package planted

const DrainIgnored = false
