// Command cox-gpuprobe asks NVIDIA's management library (NVML) which GPUs this
// machine has and prints the answer as one JSON object on standard output
// (package agent/discover/probe).
//
// It is a program of its own so that a broken driver or library takes down
// this process and nothing else, and so that the main program need not be
// linked for loading C libraries. It changes nothing and needs no privileges.
// With the arguments "watch SECONDS" it stays and prints how busy the GPUs are
// (probe.Load), one line at once and then every so many seconds, until its
// standard input ends. $COX_NVML names another library than
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
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "watch" {
		seconds, err := strconv.Atoi(os.Args[2])
		if err != nil || seconds < 1 {
			fmt.Fprintln(os.Stderr, "cox-gpuprobe: watch needs a number of seconds, for example: cox-gpuprobe watch 10")
			os.Exit(2)
		}
		os.Exit(watch(os.Getenv("COX_NVML"), time.Duration(seconds)*time.Second))
	}
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
