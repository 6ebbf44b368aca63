//go:build planted_launch_first

package planted

const LaunchFirst = true
