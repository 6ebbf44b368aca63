package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// benchFleets is part g: fleets of nodes that are not there. Slurm's are CLOUD nodes that
// stay CONFIGURING, ours belong to an engine in memory whose nodes never get ready.
// Everything before the launch is real on both sides: the request, the record on disk,
// the decision, what squeue says.
func (b *bench) benchFleets() {
	b.benchFleet("(g) 10,000 jobs of one GPU on 1,000 nodes of 8", b.scaledSize(1000), b.scaledSize(10000), 1, 1)
	b.benchFleet("(g) 1,250 jobs of 8 whole nodes on 10,000 nodes", b.scaledSize(10000), b.scaledSize(1250), 8, 8)
}

func (b *bench) benchFleet(title string, nodes, jobs, each, gpus int) {
	fits := min(jobs, nodes*8/(each*gpus))
	t := table{title: fmt.Sprintf("%s: %s fit", title, formatNumber(float64(fits)))}
	rate, starts, took, cpu := b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples()
	for range b.rounds {
		for _, s := range b.fleetSides(nodes) {
			defer b.endFleet(s) // if a round fails; else it has been done
			f := *b
			if c, ok := s.(*coxSide); ok {
				f.cox = c
			} else {
				f.slurm = s.(*slurmSide)
			}
			before, begin := s.usedCPU(), time.Now()
			submitting, _ := f.submitAll(s, jobs, func(int) work {
				return work{script: "true\n", plain: true, nodes: each, gpus: gpus}
			})
			f.awaitAllocated(s, fits)
			all := time.Since(begin)
			rate[s.sideName()].addFigure(float64(jobs) / submitting.Seconds())
			starts[s.sideName()].addFigure(float64(fits) / all.Seconds())
			took[s.sideName()].addFigure(all.Seconds())
			cpu[s.sideName()].addFigure(float64(s.usedCPU()-before) / 1e6 / float64(jobs))
			b.endFleet(s)
		}
	}
	t.addBySide(fmt.Sprintf("submissions a second, %d clients", clients), rate)
	t.addBySide("from the first submission until all that fits is allocated, s", took)
	t.addBySide("allocated a second in that time", starts)
	t.addBySide("CPU of the daemons a job, ms", cpu)
	t.printTable()
}

// awaitAllocated waits until so many jobs have their nodes.
func (b *bench) awaitAllocated(s side, want int) {
	deadline := time.Now().Add(20 * time.Minute)
	for {
		out, err := runOf(s, "squeue", "-h", "-o", "%i", "-t", "R,CF")
		if n := strings.Count(out, "\n"); err == nil && n >= want {
			if n > want {
				panic(fmt.Sprintf("%s: %d jobs are allocated and %d fit: this is another workload", s.sideName(), n, want))
			}
			return
		}
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("%s: %d of %d jobs are allocated", s.sideName(), strings.Count(out, "\n"), want))
		}
		time.Sleep(2 * drainPoll)
	}
}

// fleetSides starts both sides with so many nodes.
func (b *bench) fleetSides(nodes int) []side {
	self, err := os.Executable()
	mustSucceed(err)
	c := &coxSide{bin: b.cox.bin, dir: filepath.Join(b.work, "fleet"), serve: func(state string) []string {
		return []string{self, "fleet", state, fmt.Sprint(nodes)}
	}}
	mustSucceed(os.MkdirAll(c.dir, 0o755))
	c.startFresh()
	out := []side{c}
	if b.slurm != nil {
		lab := filepath.Join(filepath.Dir(b.slurm.lab), "fleet")
		if text, err := exec.Command(filepath.Join(b.labScripts, "fleet.sh"), lab, fmt.Sprint(nodes)).CombinedOutput(); err != nil {
			panic(fmt.Sprintf("fleet.sh: %v\n%s", err, text))
		}
		out = append(out, newSlurm(lab))
	}
	return out
}

func (b *bench) endFleet(s side) {
	switch s := s.(type) {
	case *coxSide:
		s.stop() // twice does nothing
	case *slurmSide:
		_ = exec.Command(filepath.Join(b.labScripts, "down.sh"), s.lab).Run()
		s.group.removeGroup()
		_ = os.RemoveAll(s.lab)
	}
}
