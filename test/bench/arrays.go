package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// benchArrays is part h: one array as large as it may be, held and then cancelled, so that nothing
// runs: what it costs to wait for it and to see it. Ours alone.
func (b *bench) benchArrays() {
	n := b.scaledSize(100000) + 1
	cox := filepath.Join(b.cox.bin, "cox")
	run := func(args ...string) ran {
		r := runProcess(cox, args, b.cox.userEnviron())
		if args[0] != "wait" && r.code != 0 { // the exit code of a wait is that of the tasks
			panic(fmt.Sprintf("cox %v ended with %d", args, r.code))
		}
		return r
	}
	t := table{title: fmt.Sprintf("(h) One array of %s tasks, held and cancelled", formatNumber(float64(n)))}
	figures := []struct {
		what string
		args []string
	}{
		{"wait, all have ended", []string{"wait"}},
		{"show", []string{"show"}},
		{"show -o name", []string{"show", "-o", "name"}},
		{"why", []string{"why"}},
	}
	var submit, waiting, waitingCPU, memory sample
	took, cpu, rss := make([]sample, len(figures)), make([]sample, len(figures)), make([]sample, len(figures))
	for range b.rounds {
		b.cox.startFresh()
		submit.addFigure(run("submit", "--hold", "--array", "0-"+strconv.Itoa(n-1), "--", "true").wall.Seconds())
		out, err := exec.Command(cox, "--server", "unix://"+b.cox.socketPath(), "queue", "-o", "name").CombinedOutput()
		mustSucceed(err)
		array, _, _ := strings.Cut(string(out), "_")
		used, begin, ended := b.cox.usedCPU(), time.Now(), make(chan ran)
		go func() { ended <- run("wait", array) }()
		time.Sleep(time.Second) // until it waits
		run("cancel", array)
		<-ended
		waiting.addFigure((time.Since(begin) - time.Second).Seconds())
		waitingCPU.addFigure((b.cox.usedCPU() - used).Seconds())
		awaitIdle(b.cox)
		for i, f := range figures {
			used := b.cox.usedCPU()
			r := run(append(f.args, array)...)
			took[i].addFigure(r.wall.Seconds())
			cpu[i].addFigure((b.cox.usedCPU() - used).Seconds())
			rss[i].addFigure(float64(r.rss) / (1 << 20))
		}
		memory.addFigure(float64(b.cox.usedMemory()) / (1 << 20))
	}
	t.addRow("submit, s", submit, nil)
	t.addRow("cancel, until a wait that began before has ended, s", waiting, nil)
	t.addRow("CPU of the server for that, s", waitingCPU, nil)
	for i, f := range figures {
		t.addRow("cox "+f.what+", s", took[i], nil)
		t.addRow("CPU of the server for it, s", cpu[i], nil)
		t.addRow("memory of the command, MiB", rss[i], nil)
	}
	t.addRow("memory of the server then, MiB", memory, nil)
	t.printTable()
}
