package srun

import (
	"fmt"
	"io"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// AllTasks is a filter of an Attachment that lets every task pass.
const AllTasks = -1

// Attachment follows a step that an srun elsewhere runs, as sattach does: from now on it
// prints the output that this srun gets, and passes input on.
type Attachment struct {
	Alloc *step.Alloc
	Step  int
	Stdio step.Stdio

	Label bool // put the task's number before each line

	// Input, Output and Error are the only task whose stream is connected, or AllTasks.
	Input, Output, Error int
}

// Run follows the step to its end, or until the process ends: the step goes on then. The
// result is the highest exit code of the tasks that ended meanwhile, 128 + signal for a task
// that a signal ended.
func (a *Attachment) Run() (code int, err error) {
	l, info, err := a.watchStep()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	print := a.newPrinter(info)
	taken := make(chan struct{}, 1)
	go a.copyInput(l, taken) // ends with the process, or with the input
	for {
		f, err := l.Receive()
		if err != nil {
			return code, fmt.Errorf("the first node of job %s went away, or the output of the step was read too slowly here: %w", a.Alloc.Job, err)
		}
		switch f.Kind {
		case wire.MsgOutput:
			filter := a.Output
			if f.Number == 2 {
				filter = a.Error
			}
			if filter == AllTasks || filter == f.Rank {
				print.printOutput(f.Rank, f.Number, f.Body)
			}
		case wire.MsgNotice:
			print.err.write(f.Body)
		case wire.MsgStdinAck:
			taken <- struct{}{}
		case wire.MsgExit:
			var how wire.Ending
			if err := f.Decode(&how); err != nil {
				return code, err
			}
			print.flushRank(f.Rank)
			code = max(code, how.Exit.Shell())
		case wire.MsgOver:
			return code, nil
		case wire.MsgRefused:
			return code, fmt.Errorf("%s", f.Body)
		}
	}
}

// Layout writes which tasks run where, as sattach --layout does.
func (a *Attachment) Layout(w io.Writer) error {
	l, info, err := a.watchStep()
	if err != nil {
		return err
	}
	l.Close()
	names := make([]string, len(info.Parts))
	for i, p := range info.Parts {
		names[i] = a.Alloc.Nodes[p.Node].Name
	}
	fmt.Fprintf(w, "Job step layout:\n  %d tasks, %d nodes (%s)\n\n", info.Tasks, len(names), hostlist.CompressInOrder(names))
	for i, p := range info.Parts {
		fmt.Fprintf(w, "  Node %d (%s), %d task(s): ", i, names[i], len(p.Ranks))
		for _, r := range p.Ranks {
			fmt.Fprintf(w, "%d ", r)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// watchStep begins to watch the step.
func (a *Attachment) watchStep() (*wire.Link, *step.Info, error) {
	l, err := wire.Dial(a.Alloc, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("the supervisor of %s does not answer: %w", a.Alloc.Nodes[0].Name, err)
	}
	if err = l.Send(wire.Frame{Kind: wire.MsgAttach, Number: a.Step}); err == nil {
		var f wire.Frame
		if f, err = l.Receive(); err == nil {
			info := new(step.Info)
			switch {
			case f.Kind == wire.MsgRefused:
				err = fmt.Errorf("%s", f.Body)
			default:
				if err = f.Decode(info); err == nil {
					return l, info, nil
				}
			}
		} else {
			err = fmt.Errorf("job %s has ended, or its supervisor cannot let others watch its steps yet", a.Alloc.Job)
		}
	}
	l.Close()
	return nil, nil, err
}

// newPrinter prints what tasks say to our own standard output and error.
func (a *Attachment) newPrinter(info *step.Info) *outputPrinter {
	out, err := &outputFile{w: a.Stdio.Out}, &outputFile{w: a.Stdio.Err}
	p := &outputPrinter{out: out, err: err, ranks: make(map[int]*taskOutput)}
	width := len(fmt.Sprint(info.Tasks - 1))
	for rank := range info.Tasks {
		v := &taskOutput{to: [3]*outputFile{1: out, 2: err}}
		if a.Label {
			v.label = fmt.Sprintf("%*d: ", width, rank)
		}
		p.ranks[rank] = v
	}
	return p
}

// copyInput passes input on, a piece at a time. The end of ours is not the end of the step's:
// its srun may still read.
func (a *Attachment) copyInput(l *wire.Link, taken <-chan struct{}) {
	buf := make([]byte, 32<<10)
	for a.Stdio.In != nil && !isTerminalOfOthers(a.Stdio.In) {
		n, err := a.Stdio.In.Read(buf)
		if n > 0 {
			if l.Send(wire.Frame{Kind: wire.MsgStdin, Rank: a.Input, Body: buf[:n]}) != nil {
				return
			}
			<-taken
		}
		if err != nil {
			return
		}
	}
}
