// Command cox-gpuprobe asks NVIDIA's management library (NVML) which GPUs this
// machine has and prints the answer as one JSON object on standard output
// (package agent/discover/probe).
//
// It is a program of its own so that a broken driver or library takes down
// this process and nothing else, and so that the main program need not be
// linked for loading C libraries. It takes no arguments, changes nothing, and
// needs no privileges. $COX_NVML names another library than
// libnvidia-ml.so.1.
//
// Exit status: 0 with a report; 1 where NVML cannot be asked, with the reason
// in the object's "error"; anything else, or death by a signal, means that
// the library crashed, and the output is not to be relied on.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

func main() {
	os.Exit(run(os.Getenv("COX_NVML")))
}

// run prints the report and gives the exit status.
func run(library string) int {
	report := makeReport(library)
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		fmt.Fprintf(os.Stderr, "cox-gpuprobe: write the report: %v\n", err)
		return 1
	}
	if report.Error != nil {
		return 1
	}
	return 0
}

// makeReport makes the report.
func makeReport(library string) probe.Report {
	lib, err := loadLibrary(library)
	if err != nil {
		return probe.Report{Version: probe.Version, GPUs: []probe.GPU{}, Error: err}
	}
	return collectReport(lib)
}
