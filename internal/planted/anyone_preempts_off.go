//go:build !planted_anyone_preempts

package planted

const AnyonePreempts = false
