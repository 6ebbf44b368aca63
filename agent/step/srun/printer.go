package srun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// longestLine is how much of a line is kept back until its end comes.
const longestLine = 64 << 10

// outputPrinter prints the output of tasks, whole lines at a time so that those of
// different tasks do not mix. A task's output comes from one goroutine.
type outputPrinter struct {
	out   *outputFile
	err   *outputFile // also srun's own words
	ranks map[int]*taskOutput
}

// taskOutput is one task's output.
type taskOutput struct {
	to         [3]*outputFile // by descriptor
	label      string
	unbuffered bool // unbuffered
	part       [3][]byte
	mid        [3]bool // the last thing printed of an unbuffered stream was no whole line
}

// outputFile is a file or terminal that several tasks write to.
type outputFile struct {
	mu  sync.Mutex
	w   io.Writer
	bad bool // it takes nothing any more
}

// write writes unless the reader has gone away.
func (s *outputFile) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad || len(b) == 0 {
		return
	}
	if _, err := s.w.Write(b); err != nil {
		s.bad = true
	}
}

// printOutput prints what came from a task.
func (p *outputPrinter) printOutput(rank, fd int, b []byte) {
	v := p.ranks[rank]
	if v == nil || fd < 1 || fd > 2 {
		return
	}
	if v.unbuffered {
		v.to[fd].write(v.labelLines(b, &v.mid[fd]))
		return
	}
	i := bytes.LastIndexByte(b, '\n') + 1
	if i == 0 {
		if v.part[fd] = append(v.part[fd], b...); len(v.part[fd]) < longestLine {
			return
		}
		i, b, v.part[fd] = len(v.part[fd]), v.part[fd], nil
	}
	lines := b[:i]
	if len(v.part[fd]) > 0 {
		lines = append(v.part[fd], lines...)
	}
	v.part[fd] = append([]byte(nil), b[i:]...)
	mid := false
	v.to[fd].write(v.labelLines(lines, &mid))
}

// flushRank prints what is left of a task's last line; a labelled one is made whole.
func (p *outputPrinter) flushRank(rank int) {
	v := p.ranks[rank]
	if v == nil {
		return
	}
	for fd := 1; fd <= 2; fd++ {
		b := v.part[fd]
		if v.label != "" && len(b) > 0 {
			b = append(b, '\n')
		}
		v.part[fd] = nil
		mid := false
		v.to[fd].write(v.labelLines(b, &mid))
	}
}

// labelLines puts the label before every line. mid says whether the text goes on a
// line that has its label, and is updated.
func (v *taskOutput) labelLines(b []byte, mid *bool) []byte {
	if v.label == "" || len(b) == 0 {
		return b
	}
	var out bytes.Buffer
	for line := range bytes.SplitAfterSeq(b, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if !*mid {
			out.WriteString(v.label)
		}
		out.Write(line)
		*mid = line[len(line)-1] != '\n'
	}
	return out.Bytes()
}

// openOutputs opens srun's output files and says which task's output goes where.
func (c *client) openOutputs() error {
	width := len(fmt.Sprint(c.info.Tasks - 1))
	open := make(map[string]*outputFile)
	for _, p := range c.info.Parts {
		o := c.plan.options[p.Component]
		to := [3]*outputFile{1: c.print.out, 2: c.print.err}
		for fd, name := range map[int]string{1: o.streams.output, 2: o.streams.err} {
			s, err := c.openSink(fd, name, c.plan.prep.Programs[p.Component], o.streams.appends, open)
			if err != nil {
				return err
			}
			if s != nil {
				to[fd] = s
				if fd == 1 && o.streams.err == "" {
					to[2] = s
				}
			}
		}
		for _, rank := range p.Ranks {
			v := &taskOutput{to: to, unbuffered: o.streams.unbuffered}
			if o.streams.label {
				v.label = fmt.Sprintf("%*d: ", width, rank)
			}
			c.print.ranks[rank] = v
		}
	}
	return nil
}

// openSink opens one output file of srun, each name once; nil if srun prints that
// output, or the nodes write it.
func (c *client) openSink(fd int, name string, prog wire.Program, appends bool, open map[string]*outputFile) (*outputFile, error) {
	st := prog.Stdout
	if fd == 2 {
		st = prog.Stderr
	}
	if name == "" || name == "all" || st.Kind != wire.StreamSrun {
		return nil, nil
	}
	name = c.expandName(name)
	if s := open[name]; s != nil {
		return s, nil
	}
	f, err := openOutput(map[int]string{1: "stdout", 2: "stderr"}[fd], name, appends)
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, f)
	open[name] = &outputFile{w: f}
	return open[name], nil
}

// isTerminalOfOthers reports whether reading the file would stop us: it is a
// terminal, and other processes are in its foreground.
func isTerminalOfOthers(f *os.File) bool {
	group, err := foregroundGroup(f)
	return err == nil && group != ownGroup()
}
