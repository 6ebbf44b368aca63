//go:build planted_replay_forgets

package planted

const ReplayForgets = true
