package srun

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// stdinWindow bounds what is on its way to a node.
type stdinWindow struct {
	mu   sync.Mutex
	more *sync.Cond
	room int
}

// newWindow is an empty one.
func newWindow() *stdinWindow {
	w := &stdinWindow{room: wire.InputWindow}
	w.more = sync.NewCond(&w.mu)
	return w
}

// takeRoom waits until a number of bytes may be sent.
func (w *stdinWindow) takeRoom(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.room < n {
		w.more.Wait()
	}
	w.room -= n
}

// giveRoom makes room again.
func (w *stdinWindow) giveRoom(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room += n
	w.more.Broadcast()
}

// feedInput starts to pass srun's standard input on to the tasks.
func (c *client) feedInput() error {
	in, rank := c.stdio.In, -1
	wanted := false
	for i := range c.plan.prep.Programs {
		st, name := c.plan.prep.Programs[i].Stdin, c.plan.options[i].streams.input
		switch {
		case st.Kind == wire.StreamOne:
			wanted, rank = true, st.Rank
		case st.Kind == wire.StreamSrun:
			wanted = true
			if name == "" || name == "all" {
				continue
			}
			f, err := os.Open(c.expandName(name))
			if err != nil {
				return fmt.Errorf("Could not open stdin file: %w", err)
			}
			c.files = append(c.files, f)
			in = f
		}
	}
	if wanted {
		go c.copyInput(in, rank) // ends with the input, or with the process
	}
	return nil
}

// copyInput reads to the end of the input and tells the tasks of it.
func (c *client) copyInput(in *os.File, rank int) {
	buf := make([]byte, 32<<10)
	for in != nil && !isTerminalOfOthers(in) {
		n, err := in.Read(buf)
		if n > 0 {
			c.sendInput(rank, buf[:n])
		}
		if err != nil {
			break
		}
	}
	c.broadcastFrame(wire.Frame{Kind: wire.MsgStdin, Rank: rank})
}

// expandName expands the % patterns of a file that srun itself opens.
func (c *client) expandName(name string) string {
	n := step.FileNames(c.plan.alloc, &c.info)
	n.Node = c.plan.alloc.Nodes[c.info.Parts[0].Node].Name
	return slurmfmt.ExpandName(name, n)
}

// foregroundGroup is the process group in the foreground of a terminal.
func foregroundGroup(f *os.File) (int, error) { return unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP) }

// ownGroup is this process's group.
func ownGroup() int { return unix.Getpgrp() }
