//go:build planted_launch_again

package planted

const LaunchAgain = true
