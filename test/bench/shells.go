package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// shells starts as many shells as its argument says.
func shells() {
	n, err := strconv.Atoi(os.Args[2])
	must(err)
	script, err := os.CreateTemp("", "cox-floor.")
	must(err)
	defer os.Remove(script.Name())
	_, err = script.WriteString("#!/bin/sh\ntrue\n")
	must(err)
	must(script.Close())
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for next.Add(1) <= int64(n) {
				spawn("/bin/sh", []string{script.Name()}, os.Environ())
			}
		}()
	}
	wg.Wait()
}
