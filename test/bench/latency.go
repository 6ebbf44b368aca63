package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// idle is the pause between two jobs, in which daemons finish what they do.
const idle = 400 * time.Millisecond

// benchLatency is part b: a job's first instruction opens a named pipe, at whose other end
// the bench waits.
func (b *bench) benchLatency() {
	b.cox.startFresh()
	each := b.scaledSize(20)
	t := table{title: fmt.Sprintf("(b) From the command to the job's first instruction, idle (%d a round), ms", each)}
	pipe := filepath.Join(b.work, "first")
	mustSucceed(syscall.Mkfifo(pipe, 0o666))
	mustSucceed(os.Chmod(pipe, 0o666))
	mustSucceed(os.Chmod(b.work, 0o755))
	script := filepath.Join(b.work, "first.sh")
	mustSucceed(os.WriteFile(script, []byte("#!/bin/sh\n: >"+pipe+"\n"), 0o755))
	for _, c := range []struct {
		what string
		argv []string
	}{
		{"sbatch", []string{"sbatch", "-o", "/dev/null", script}},
		{"srun", []string{"srun", "/bin/sh", script}},
	} {
		p50, worst := b.newSamples(), b.newSamples()
		for range b.rounds {
			for _, s := range b.presentSides() {
				var took sample
				for range each {
					took.addDuration(firstInstruction(s, c.argv, pipe))
					time.Sleep(idle)
				}
				p50[s.sideName()].addFigure(took.medianValue())
				worst[s.sideName()].addFigure(took.quantileAt(1))
			}
		}
		t.addBySide(c.what+" → running, p50", p50)
		t.addBySide(c.what+" → running, worst of a round", worst)
	}
	t.printTable()
}

// firstInstruction runs a command and returns how long it took until the job opened the pipe.
func firstInstruction(s side, argv []string, pipe string) time.Duration {
	opened := make(chan time.Time, 1)
	go func() {
		f, err := os.OpenFile(pipe, os.O_RDONLY, 0)
		if err == nil {
			opened <- time.Now()
			f.Close()
		}
	}()
	begin := time.Now()
	done := make(chan ran, 1)
	go func() { done <- runProcess(s.commandPath(argv[0]), argv[1:], s.userEnviron()) }()
	select {
	case at := <-opened:
		<-done
		return at.Sub(begin)
	case <-time.After(30 * time.Second):
		panic(fmt.Sprintf("%s: %v: the job did not start within 30 s", s.sideName(), argv))
	}
}
