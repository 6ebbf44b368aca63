package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// watch prints how busy the GPUs are until standard input ends, and gives the exit status.
func watch(library string, every time.Duration) int {
	lib, failure := loadLibrary(library)
	if failure == nil {
		if st := lib.init(); st != success {
			failure = &probe.Error{Kind: probe.NoDriver, Text: "NVML does not start: " + st.String()}
		}
	}
	out := json.NewEncoder(os.Stdout)
	if failure != nil {
		_ = out.Encode(probe.Load{Version: probe.Version, GPUs: []probe.GPULoad{}, Error: failure})
		return 1
	}
	defer lib.shutdown()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := out.Encode(readLoad(lib)); err != nil {
			fmt.Fprintf(os.Stderr, "cox-gpuprobe: write the load: %v\n", err)
			return 1
		}
		select {
		case <-tick.C:
		case <-ended:
			return 0
		}
	}
}

// readLoad asks every GPU once. One that does not answer is left out.
func readLoad(l *nvml) probe.Load {
	load := probe.Load{Version: probe.Version, GPUs: []probe.GPULoad{}}
	var n uint32
	if l.count(&n) != success {
		return load
	}
	c := &collector{nvml: l}
	for i := range n {
		var d device
		if c.byIndex(i, &d) != success {
			continue
		}
		g := probe.GPULoad{Busy: -1}
		g.UUID = readText(func(b *byte, n uint32) status { return c.uuid(d, b, n) })
		var memory probe.GPU
		if c.readMemory(d, &memory) == success {
			g.UsedBytes, g.MemoryBytes = memory.UsedBytes, memory.MemoryBytes
		}
		var u utilization
		if c.busy != nil && c.busy(d, &u) == success && u.gpu <= 100 {
			g.Busy = int(u.gpu)
		}
		if g.UUID != "" {
			load.GPUs = append(load.GPUs, g)
		}
	}
	return load
}
