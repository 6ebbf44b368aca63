package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stepsARound is how many steps a round has: 1,000 of Slurm's last a minute, and 300 tell the same.
const stepsARound = 300

// benchSteps is part i: a batch script starts steps one after another and says how long they took.
func (b *bench) benchSteps() {
	b.cox.startFresh()
	steps := b.scaledSize(stepsARound)
	t := table{title: fmt.Sprintf("(i) %d × srun true, one after another in one allocation, ms a step", steps)}
	mustSucceed(os.Chmod(b.work, 0o777))
	script, result := filepath.Join(b.work, "steps.sh"), filepath.Join(b.work, "steps.took")
	mustSucceed(os.WriteFile(script, fmt.Appendf(nil, `#!/bin/bash
began=$(date +%%s%%N)
for ((i = 0; i < %d; i++)); do srun true || exit; done
echo $(($(date +%%s%%N) - began)) >%s
`, steps, result), 0o755))
	for _, n := range []string{"1", "4"} {
		took := b.newSamples()
		for range b.rounds {
			for _, s := range b.presentSides() {
				_ = os.Remove(result)
				r := runProcess(s.commandPath("sbatch"), []string{"-W", "-N" + n, "-n" + n, "-o", "/dev/null", script}, s.userEnviron())
				text, err := os.ReadFile(result)
				if err != nil {
					panic(fmt.Sprintf("%s: the steps on %s nodes did not end well: %+v", s.sideName(), n, r))
				}
				all, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
				mustSucceed(err)
				took[s.sideName()].addFigure(all / 1e6 / float64(steps))
			}
		}
		t.addBySide("nodes of the allocation and of each step: "+n, took)
	}
	t.printTable()
}
