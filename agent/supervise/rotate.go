package supervise

import (
	"cmp"
	"os"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/logfile"
	"github.com/coxswain-sched/coxswain/model/job"
)

// rotatedOutput is an output file of a job that serves: the program writes into a pipe, and the supervisor
// into the file, which it rotates.
type rotatedOutput struct {
	file *logfile.File
	from *os.File      // the read end of the pipe
	done chan struct{} // closed when everything was copied; nil: nothing is
}

// rotateOutputs has the output files of a job that serves be rotated. Anything else than a file of a
// file system is left as it is. The caller has opened them, as the job's user.
func (p *program) rotateOutputs(l *attempt.Launch) error {
	serve := l.Job.Spec.Serve
	if serve == nil {
		return nil
	}
	size, keep := cmp.Or(serve.Log.Size, job.LogSize), cmp.Or(serve.Log.Keep, job.LogKeep)
	wrap := func(i int, name string) error {
		info, err := p.stdio[i].Stat()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		from, to, err := os.Pipe()
		if err != nil {
			return err
		}
		p.rotated = append(p.rotated, &rotatedOutput{file: logfile.Wrap(p.stdio[i], name, size, keep, p.user.runAsUser), from: from})
		p.stdio[i] = to
		return nil
	}
	joined := p.stdio[2] == p.stdio[1]
	if err := wrap(1, p.files[0]); err != nil {
		return err
	}
	if joined {
		p.stdio[2] = p.stdio[1]
		return nil
	}
	return wrap(2, p.files[len(p.files)-1])
}

// rotatesErrors reports whether standard error is a file that is rotated.
func (p *program) rotatesErrors() bool {
	return len(p.rotated) > 0 && (p.stdio[2] == p.stdio[1] || len(p.rotated) == 2)
}

// copyOutputs begins to copy what the program writes. Wake is called when everything of a file was.
func (p *program) copyOutputs(wake func()) {
	for _, o := range p.rotated {
		o.done = make(chan struct{})
		go func() {
			buf := make([]byte, 64<<10)
			for err := error(nil); err == nil; {
				var n int
				n, err = o.from.Read(buf)
				_, _ = o.file.Write(buf[:n]) // on a full disk it is lost, as the program would lose it
			}
			_ = o.from.Close()
			close(o.done)
			wake()
		}()
	}
}

// outputCopied reports whether everything that the program wrote is in its files. Nothing of it lives.
func (p *program) outputCopied() bool {
	if p == nil {
		return true
	}
	for _, o := range p.rotated {
		if o.done == nil {
			continue
		}
		select {
		case <-o.done:
		default:
			return false
		}
	}
	return true
}

// closeRotated closes the files and what was never copied.
func (p *program) closeRotated() {
	for _, o := range p.rotated {
		if o.done == nil {
			_ = o.from.Close()
		}
		_ = o.file.Close()
	}
}
