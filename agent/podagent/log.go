package podagent

import (
	"io"
	"os"
	"time"
)

// lookEach is how often the job's output is looked for. The kernel's own notice would be
// sooner and is not to be had on every file system that a pod may have mounted.
const lookEach = 200 * time.Millisecond

// logCopier carries what the program writes into its files on to the container's log.
type logCopier struct {
	pairs []*followedLog
	end   chan struct{}
	done  chan struct{}
}

// followedLog is one file of them.
type followedLog struct {
	from *os.File
	at   int64 // bytes that were carried on
	to   io.Writer
}

// newEcho follows files from their present end. One that is no regular file is not
// followed.
func newEcho(out, errs string) *logCopier {
	e := &logCopier{end: make(chan struct{}), done: make(chan struct{})}
	e.addFile(out, os.Stdout)
	if errs != out {
		e.addFile(errs, os.Stderr)
	}
	go e.run()
	return e
}

func (e *logCopier) addFile(name string, to io.Writer) {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		return
	}
	e.pairs = append(e.pairs, &followedLog{f, st.Size(), to})
}

func (e *logCopier) run() {
	defer close(e.done)
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-e.end:
			over = true
		}
		for _, p := range e.pairs {
			p.copyNew()
		}
	}
	for _, p := range e.pairs {
		_ = p.from.Close()
	}
}

// copyNew copies what is new. A file that is shorter than it was was begun anew.
func (p *followedLog) copyNew() {
	st, err := p.from.Stat()
	if err != nil {
		return
	}
	if st.Size() < p.at {
		p.at = 0
	}
	if st.Size() > p.at {
		n, _ := io.Copy(p.to, io.NewSectionReader(p.from, p.at, 1<<62))
		p.at += n
	}
}

// close carries on what is left. Nobody writes any more.
func (e *logCopier) close() {
	if e == nil {
		return
	}
	close(e.end)
	<-e.done
}
