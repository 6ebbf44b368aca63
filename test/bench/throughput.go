package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// benchThroughput is part c.
func (b *bench) benchThroughput() {
	n := b.scaledSize(2000)
	t := table{title: fmt.Sprintf("(c) %d × true, first submission to last end", n)}
	single, array, cpuSingle, cpuArray := b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples()
	b.cox.startFresh()
	var floor, floorCPU sample
	for range b.rounds {
		took, used := b.shellFloor(n)
		floor.addFigure(float64(n) / took.Seconds())
		floorCPU.addFigure(float64(used) / 1e6 / float64(n))
		for _, s := range b.presentSides() {
			before, begin := s.usedCPU(), time.Now()
			b.submitAll(s, n, func(int) work { return work{script: "true\n", plain: true} })
			awaitEmpty(s)
			single[s.sideName()].addFigure(float64(n) / time.Since(begin).Seconds())
			cpuSingle[s.sideName()].addFigure(float64(s.usedCPU()-before) / 1e6 / float64(n))

			before, begin = s.usedCPU(), time.Now()
			out, err := runOf(s, "sbatch", "-o", "/dev/null", "-a", fmt.Sprintf("1-%d", n), "--wrap", "true")
			if err != nil {
				panic(s.sideName() + ": " + out)
			}
			awaitEmpty(s)
			array[s.sideName()].addFigure(float64(n) / time.Since(begin).Seconds())
			cpuArray[s.sideName()].addFigure(float64(s.usedCPU()-before) / 1e6 / float64(n))
		}
	}
	t.addBySide("jobs a second, submitted one by one by 16 clients", single)
	t.addBySide("CPU a job of all daemons and what they start, ms", cpuSingle)
	t.addBySide("jobs a second, one array", array)
	t.addBySide("CPU a task, ms", cpuArray)
	t.addRow("floor: this machine starting as many shells in a loop, a second", floor, nil)
	t.addRow("floor: CPU a shell, ms", floorCPU, nil)
	t.printTable()
}

// drainPoll is how often a queue is looked at; each look costs the side about what one
// squeue costs.
const drainPoll = 100 * time.Millisecond

// awaitEmpty waits until no job is left.
func awaitEmpty(s side) {
	deadline := time.Now().Add(10 * time.Minute)
	for {
		out, err := runOf(s, "squeue", "-h", "-o", "%i %t", "-t", "PD,R,CG,CF")
		if err == nil && strings.TrimSpace(out) == "" {
			return
		}
		if time.Now().After(deadline) {
			panic(s.sideName() + ": jobs do not end: " + out)
		}
		time.Sleep(drainPoll)
	}
}

// shellFloor starts n shells that end at once, one after another on each CPU, which is the
// least that n scripts can cost here.
func (b *bench) shellFloor(n int) (wall, cpu time.Duration) {
	self, err := os.Executable()
	mustSucceed(err)
	r := runProcess(self, []string{"shells", fmt.Sprint(n)}, userEnvironment())
	return r.wall, r.cpu
}
