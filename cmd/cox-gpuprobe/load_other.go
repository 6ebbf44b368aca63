//go:build !linux

package main

import (
	"runtime"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

func loadLibrary(string) (*nvml, *probe.Error) {
	return nil, &probe.Error{Kind: probe.Unsupported, Text: "NVML is not asked on " + runtime.GOOS}
}
