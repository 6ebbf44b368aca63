package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// ran is how a process ran.
type ran struct {
	wall, cpu time.Duration
	code      int
	rss       int64 // the most memory it had, bytes
}

// runProcess runs a process and waits for it, its output dropped.
func runProcess(path string, args, env []string) ran {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	mustSucceed(err)
	defer null.Close()
	begin := time.Now()
	pid, err := syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Dir: "/tmp"})
	mustSucceed(err)
	var st syscall.WaitStatus
	var use syscall.Rusage
	for {
		_, err = syscall.Wait4(pid, &st, 0, &use)
		if err != syscall.EINTR {
			break
		}
	}
	mustSucceed(err)
	return ran{time.Since(begin), time.Duration(use.Utime.Nano() + use.Stime.Nano()), st.ExitStatus(), use.Maxrss << 10}
}

// benchProcesses is part a.
func (b *bench) benchProcesses() {
	b.cox.startFresh()
	each := b.scaledSize(200)
	commands := [][]string{{"sbatch", "-H", "-o", "/dev/null", "--wrap", "true"}, {"squeue"}, {"sinfo"}}
	t := table{title: fmt.Sprintf("(a) Commands as processes, one after another (%d a round), ms", each)}
	for _, argv := range commands {
		p50, p99, cpu := map[string]*sample{}, map[string]*sample{}, map[string]*sample{}
		for _, s := range b.presentSides() {
			p50[s.sideName()], p99[s.sideName()], cpu[s.sideName()] = &sample{}, &sample{}, &sample{}
		}
		for range b.rounds {
			for _, s := range b.presentSides() {
				path, env := s.commandPath(argv[0]), s.userEnviron()
				var walls []time.Duration
				var used time.Duration
				for range each {
					r := runProcess(path, argv[1:], env)
					if r.code != 0 {
						panic(fmt.Sprintf("%s: %v ended with %d", s.sideName(), argv, r.code))
					}
					walls = append(walls, r.wall)
					used += r.cpu
				}
				slices.Sort(walls)
				p50[s.sideName()].addDuration(walls[each/2])
				p99[s.sideName()].addDuration(walls[each*99/100])
				cpu[s.sideName()].addDuration(used / time.Duration(each))
				if argv[0] == "sbatch" {
					clearJobs(s)
				}
			}
		}
		t.addBySide(argv[0]+", p50", p50)
		t.addBySide(argv[0]+", p99", p99)
		t.addBySide(argv[0]+", CPU of the process", cpu)
	}
	t.printTable()
}

// addBySide adds a figure by the names of the sides.
func (t *table) addBySide(what string, by map[string]*sample) {
	var ours, theirs sample
	if s := by["cox"]; s != nil {
		ours = *s
	}
	if s := by["Slurm"]; s != nil {
		theirs = *s
	}
	t.addRow(what, ours, theirs)
}

// newSamples are one figure of each side.
func (b *bench) newSamples() map[string]*sample {
	out := map[string]*sample{}
	for _, s := range b.presentSides() {
		out[s.sideName()] = &sample{}
	}
	return out
}
