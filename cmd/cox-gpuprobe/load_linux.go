package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// places are where the library lies on systems that keep it off the
// loader's path: the loader's own first, then WSL and NixOS.
var places = []string{
	"libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
}

// loadLibrary opens the library, or the one named, and binds its functions.
func loadLibrary(library string) (*nvml, *probe.Error) {
	runtime.LockOSThread() // what dlerror says is the thread's own
	defer runtime.UnlockOSThread()
	tried := places
	if library != "" {
		tried = []string{library}
	}
	var handle uintptr
	var firstErr error
	for _, p := range tried {
		h, err := purego.Dlopen(p, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			handle = h
			break
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	if handle == 0 {
		return nil, &probe.Error{Kind: probe.NoLibrary, Text: oneLine(firstErr)}
	}
	lib := &nvml{}
	for _, s := range lib.symbols() {
		if err := bindSymbol(handle, s); err != nil {
			return nil, &probe.Error{Kind: probe.NoSymbol, Text: oneLine(err)}
		}
	}
	return lib, nil
}

// bindSymbol takes the first version of a function that the library has.
func bindSymbol(handle uintptr, s symbol) error {
	var missing error
	for _, v := range s.versions {
		address, err := purego.Dlsym(handle, v)
		if err == nil {
			purego.RegisterFunc(s.fn, address)
			return nil
		}
		missing = err
	}
	if s.needed {
		return fmt.Errorf("the library is too old or is not NVML: %w", missing)
	}
	return nil
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
