package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// bench is one run.
type bench struct {
	cox    *coxSide
	slurm  *slurmSide
	rounds int
	small  bool // a tenth of the sizes, to try the bench itself
	work   string

	labScripts string // folder of fleet.sh and down.sh
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "shells" {
		runShells() // the floor, as a process of its own
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "fleet" {
		if err := fleetServer(os.Args[2], os.Args[3]); err != nil {
			exitOn(err)
		}
		return
	}
	var (
		coxDir  = flag.String("cox", "", "folder with cox and cox-slurm")
		lab     = flag.String("lab", "", "folder of a running Slurm (test/bench/lab/up.sh); empty: ours alone")
		only    = flag.String("only", "abcdefghi", "parts to run")
		scripts = flag.String("scripts", "test/bench/lab", "folder with the scripts that start a Slurm")
		rounds  = flag.Int("rounds", 5, "rounds of each part")
		small   = flag.Bool("small", false, "a tenth of all sizes")
	)
	flag.Parse()
	work, err := os.MkdirTemp("", "cox-bench.")
	if err != nil {
		exitOn(err)
	}
	b := &bench{rounds: *rounds, small: *small, labScripts: *scripts, work: work, cox: &coxSide{bin: *coxDir, dir: work}}
	if *lab != "" {
		b.slurm = newSlurm(*lab)
	}
	code := 0
	func() {
		defer os.RemoveAll(work)
		defer b.cox.stop()
		defer func() {
			if r := recover(); r != nil {
				fmt.Fprintln(os.Stderr, "bench:", r)
				code = 1
			}
		}()
		b.printSetup()
		for _, part := range *only {
			f := map[rune]func(){'a': b.benchProcesses, 'b': b.benchLatency, 'c': b.benchThroughput, 'd': b.benchSubmissions, 'e': b.benchQueue, 'f': b.benchRestart, 'g': b.benchFleets, 'h': b.benchArrays, 'i': b.benchSteps}[part]
			if f == nil {
				panic("there is no part " + string(part))
			}
			f()
		}
	}()
	os.Exit(code)
}

// scaledSize is n, or a tenth of it in a small run.
func (b *bench) scaledSize(n int) int {
	if b.small {
		return n / 10
	}
	return n
}

// printSetup prints what the figures were taken on.
func (b *bench) printSetup() {
	load, _ := os.ReadFile("/proc/loadavg")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	model := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, l := range strings.Split(string(info), "\n") {
			if name, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	fmt.Printf("Machine: %d CPUs (%s), Linux %s, %s, load average before %s; %s. %d rounds, median [range].\n\n",
		runtime.NumCPU(), model, strings.TrimSpace(string(kernel)), runtime.Version(), strings.Fields(string(load))[0], time.Now().UTC().Format("2006-01-02 15:04 MST"), b.rounds)
	if b.slurm != nil {
		out, _ := b.slurm.runCommand("sbatch", "--version")
		fmt.Printf("Against: %s, eight slurmd on this machine, slurmdbd with MariaDB, tuned (test/bench/lab/slurm.conf.in).\n\n", strings.TrimSpace(out))
	}
}

func exitOn(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}
