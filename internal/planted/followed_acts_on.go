//go:build planted_followed_acts

package planted

const FollowedActs = true
