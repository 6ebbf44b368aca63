package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// runShells starts as many shells as its argument says.
func runShells() {
	n, err := strconv.Atoi(os.Args[2])
	mustSucceed(err)
	script, err := os.CreateTemp("", "cox-floor.")
	mustSucceed(err)
	defer os.Remove(script.Name())
	_, err = script.WriteString("#!/bin/sh\ntrue\n")
	mustSucceed(err)
	mustSucceed(script.Close())
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for next.Add(1) <= int64(n) {
				runProcess("/bin/sh", []string{script.Name()}, os.Environ())
			}
		}()
	}
	wg.Wait()
}
