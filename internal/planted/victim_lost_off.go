//go:build !planted_victim_lost

package planted

const VictimLost = false
