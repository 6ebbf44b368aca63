package step

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// inputWindow is how much input may be on its way to one node.
const inputWindow = 256 << 10

// window bounds what is on its way to a node.
type window struct {
	mu   sync.Mutex
	more *sync.Cond
	room int
}

// newWindow is an empty one.
func newWindow() *window {
	w := &window{room: inputWindow}
	w.more = sync.NewCond(&w.mu)
	return w
}

// take waits until a number of bytes may be sent.
func (w *window) take(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.room < n {
		w.more.Wait()
	}
	w.room -= n
}

// give makes room again.
func (w *window) give(n int) {
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
		st, name := c.plan.prep.Programs[i].Stdin, c.plan.options[i].input
		switch {
		case st.Kind == streamOne:
			wanted, rank = true, st.Rank
		case st.Kind == streamSrun:
			wanted = true
			if name == "" || name == "all" {
				continue
			}
			f, err := os.Open(c.expand(name))
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
			for _, r := range c.nodes {
				r.window.take(n)
				_ = r.link.send(frame{kind: mStdin, rank: rank, body: buf[:n]})
			}
		}
		if err != nil {
			break
		}
	}
	c.broadcast(frame{kind: mStdin, rank: rank})
}

// expand expands the % patterns of a file that srun itself opens.
func (c *client) expand(name string) string {
	n := fileNames(c.plan.alloc, &c.info)
	n.Node = c.plan.alloc.Nodes[c.info.Parts[0].Node].Name
	return slurmfmt.ExpandName(name, n)
}

// foregroundGroup is the process group in the foreground of a terminal.
func foregroundGroup(f *os.File) (int, error) { return unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP) }

// ownGroup is this process's group.
func ownGroup() int { return unix.Getpgrp() }
