package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// benchQueue is part e.
func (b *bench) benchQueue() {
	b.benchPending("held", b.scaledSize(10000), true, b.presentSides())
	b.benchPending("waiting for nodes", b.scaledSize(10000), false, b.presentSides())
	b.benchPending("held", b.scaledSize(100000), true, []side{b.cox})
}

// benchPending measures a queue of n jobs.
func (b *bench) benchPending(what string, n int, held bool, sides []side) {
	t := table{title: fmt.Sprintf("(e) %s jobs that wait (%s)", formatNumber(float64(n)), what)}
	squeue, json, one, cancel, memory, cpu, whole := b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples()
	for round := range b.rounds {
		if round >= 3 && n > 10000 {
			break
		}
		for _, s := range sides {
			if s.sideName() == "cox" {
				b.cox.startFresh() // so that memory is that of this queue
			}
			base := s.usedMemory()
			if !held {
				blockNodes(s)
			}
			b.submitAll(s, n, func(i int) work { return work{held: held, script: "# " + strconv.Itoa(i) + "\ntrue\n"} })
			awaitIdle(s)
			memory[s.sideName()].addFigure(float64(s.usedMemory()-base) / float64(n) / 1024)
			whole[s.sideName()].addFigure(float64(s.usedMemory()) / (1 << 20))
			used := s.usedCPU()
			squeue[s.sideName()].addDuration(leastOfThree(s, "squeue"))
			cpu[s.sideName()].addFigure(float64(s.usedCPU()-used) / 1e6)
			json[s.sideName()].addDuration(leastOfThree(s, "squeue", "--json"))
			one[s.sideName()].addDuration(leastOfThree(s, "squeue", "-j", anyJob(s)))
			cancel[s.sideName()].addDuration(cancelAll(s))
		}
	}
	t.addBySide("squeue, ms", squeue)
	t.addBySide("CPU of the controller for it, ms", cpu)
	t.addBySide("squeue --json, ms", json)
	t.addBySide("squeue -j ONE, ms", one)
	t.addBySide("scancel of all, until squeue is empty, ms", cancel)
	t.addBySide("memory of the controller, MiB", whole)
	t.addBySide("memory of the controller a job, KiB (Slurm's keeps some of earlier rounds)", memory)
	t.printTable()
}

// blockNodes takes all nodes, so that what comes after waits.
func blockNodes(s side) {
	out, err := runOf(s, "sbatch", "-o", "/dev/null", "--exclusive", "-N", strconv.Itoa(nodes), "--wrap", "sleep 3600")
	if err != nil {
		panic(s.sideName() + ": " + out)
	}
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if out, _ := runOf(s, "squeue", "-h", "-t", "R", "-o", "%i"); strings.TrimSpace(out) != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic(s.sideName() + ": the job that takes all nodes did not start")
}

// awaitIdle waits until a side does little.
func awaitIdle(s side) {
	for range 60 {
		before := s.usedCPU()
		time.Sleep(500 * time.Millisecond)
		if s.usedCPU()-before < 50*time.Millisecond {
			return
		}
	}
}

// leastOfThree is the least of three runs of a command, its output dropped.
func leastOfThree(s side, name string, args ...string) time.Duration {
	best := time.Hour
	for range 3 {
		r := runProcess(s.commandPath(name), args, s.userEnviron())
		if r.code != 0 {
			panic(fmt.Sprintf("%s: %s %v ended with %d", s.sideName(), name, args, r.code))
		}
		best = min(best, r.wall)
	}
	return best
}

// anyJob is the number of a job that waits.
func anyJob(s side) string {
	out, _ := runOf(s, "squeue", "-h", "-t", "PD", "-o", "%A")
	id, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(id)
}

// cancelAll cancels by user, and waits until no job waits any more.
func cancelAll(s side) time.Duration {
	begin := time.Now()
	user := "root"
	if s.sideName() == "Slurm" {
		user = "nobody" // who slurmrestd submits as
	}
	runOf(s, "scancel", "-u", user)
	for {
		out, err := runOf(s, "squeue", "-h", "-t", "PD", "-o", "%i")
		if err == nil && strings.TrimSpace(out) == "" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(begin)
	clearJobs(s)
	return took
}
