package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queue is part e.
func (b *bench) queue() {
	b.pending("held", b.size(10000), true, b.sides())
	b.pending("waiting for nodes", b.size(10000), false, b.sides())
	b.pending("held", b.size(100000), true, []side{b.cox})
}

// pending measures a queue of n jobs.
func (b *bench) pending(what string, n int, held bool, sides []side) {
	t := table{title: fmt.Sprintf("(e) %s jobs that wait (%s)", number(float64(n)), what)}
	squeue, json, one, cancel, memory, cpu, whole := b.samples(), b.samples(), b.samples(), b.samples(), b.samples(), b.samples(), b.samples()
	for round := range b.rounds {
		if round >= 3 && n > 10000 {
			break
		}
		for _, s := range sides {
			if s.name() == "cox" {
				b.cox.fresh() // so that memory is that of this queue
			}
			base := s.memory()
			if !held {
				block(s)
			}
			b.submitAll(s, n, func(i int) work { return work{held: held, script: "# " + strconv.Itoa(i) + "\ntrue\n"} })
			settle(s)
			memory[s.name()].add(float64(s.memory()-base) / float64(n) / 1024)
			whole[s.name()].add(float64(s.memory()) / (1 << 20))
			used := s.used()
			squeue[s.name()].ms(timed(s, "squeue"))
			cpu[s.name()].add(float64(s.used()-used) / 1e6)
			json[s.name()].ms(timed(s, "squeue", "--json"))
			one[s.name()].ms(timed(s, "squeue", "-j", anyJob(s)))
			cancel[s.name()].ms(cancelAll(s))
		}
	}
	t.both("squeue, ms", squeue)
	t.both("CPU of the controller for it, ms", cpu)
	t.both("squeue --json, ms", json)
	t.both("squeue -j ONE, ms", one)
	t.both("scancel of all, until squeue is empty, ms", cancel)
	t.both("memory of the controller, MiB", whole)
	t.both("memory of the controller a job, KiB (Slurm's keeps some of earlier rounds)", memory)
	t.print()
}

// block takes all nodes, so that what comes after waits.
func block(s side) {
	out, err := runOf(s, "sbatch", "-o", "/dev/null", "--exclusive", "-N", strconv.Itoa(nodes), "--wrap", "sleep 3600")
	if err != nil {
		panic(s.name() + ": " + out)
	}
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if out, _ := runOf(s, "squeue", "-h", "-t", "R", "-o", "%i"); strings.TrimSpace(out) != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic(s.name() + ": the job that takes all nodes did not start")
}

// settle waits until a side does little.
func settle(s side) {
	for range 60 {
		before := s.used()
		time.Sleep(500 * time.Millisecond)
		if s.used()-before < 50*time.Millisecond {
			return
		}
	}
}

// timed is the least of three runs of a command, its output dropped.
func timed(s side, name string, args ...string) time.Duration {
	best := time.Hour
	for range 3 {
		r := spawn(s.command(name), args, s.environ())
		if r.code != 0 {
			panic(fmt.Sprintf("%s: %s %v ended with %d", s.name(), name, args, r.code))
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
	if s.name() == "Slurm" {
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
	clear(s)
	return took
}
