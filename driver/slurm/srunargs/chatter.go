package srunargs

import (
	"bytes"
	"io"
)

// Chatter leaves out what srun says of a command by itself: that its one task ended with an exit code,
// which the caller gets anyway, and that the cluster binds no tasks to CPUs, which nobody asked for. It
// is for one goroutine; Flush passes on what it has held.
type Chatter struct {
	To   io.Writer
	Node string

	held   []byte // the beginning of a line that may be srun's
	within bool   // of a line that is not
}

// Write is io.Writer's.
func (c *Chatter) Write(p []byte) (int, error) {
	var out []byte
	for rest := p; len(rest) > 0; {
		if c.within {
			n := bytes.IndexByte(rest, '\n') + 1
			if n == 0 {
				n = len(rest)
			} else {
				c.within = false
			}
			out, rest = append(out, rest[:n]...), rest[n:]
			continue
		}
		c.held, rest = append(c.held, rest[0]), rest[1:]
		switch over, is := c.matches(); {
		case over && is:
			c.held = c.held[:0]
		case !is:
			out, c.within = append(out, c.held...), c.held[len(c.held)-1] != '\n'
			c.held = c.held[:0]
		}
	}
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := c.To.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// matches reports whether what is held may be such a line, and whether it is all of it.
func (c *Chatter) matches() (over, is bool) {
	line, whole := bytes.CutSuffix(c.held, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	for _, begin := range []string{"srun: error: " + c.Node + ": task 0: Exited with exit code ", "srun: cluster configuration lacks support for cpu binding"} {
		n := min(len(line), len(begin))
		if string(line[:n]) != begin[:n] {
			continue
		}
		rest := bytes.TrimLeft(line[n:], "0123456789")
		switch {
		case len(rest) > 0, whole && len(line) < len(begin):
		default:
			return whole, true
		}
	}
	return false, false
}

// Flush passes on what may have become the line.
func (c *Chatter) Flush() {
	if len(c.held) > 0 {
		_, _ = c.To.Write(c.held)
		c.held = nil
	}
}
