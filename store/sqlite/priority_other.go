//go:build !linux

package sqlite

// lowerPriority does nothing: elsewhere a priority is that of the whole process.
func lowerPriority() {}
