//go:build !linux

package ownlimit

import "github.com/coxswain-sched/coxswain/model/rlimit"

// Read returns nothing: limits of another system mean nothing on Linux, where jobs run.
func Read() []rlimit.Limit { return nil }
