package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// How long output is waited for: after a task's exit, so that its last words come
// before its exit code although a child of it may keep the pipe open; and after the
// end of the step, when nothing should hold the pipe any more.
const (
	drainAtExit = 50 * time.Millisecond
	drainAtEnd  = time.Second
)

// task is one task of a step on this node.
type task struct {
	step   *nodeStep
	held   *barrier.Held
	state  TaskState // guarded by mu once it is held, but for Step, Rank and PID
	log    *os.File
	logged int // bytes in log
	logMu  sync.Mutex

	in *stdinFeed // standard input from srun; nil: none

	terminal *os.File      // our end of its terminal, which in closes; nil: it has none
	pipes    [3]*os.File   // read ends of its output, by descriptor
	files    [3]*os.File   // output files, by descriptor; the step's
	pumped   chan struct{} // closed when its output ended
	pmi      *os.File      // our end of its PMI connection; nil: none

	mu       sync.Mutex
	gone     bool          // it ended; its pid is nobody's
	executed chan struct{} // made when the barrier opens, closed when the program runs or cannot
	reason   string        // why its program could not be executed
}

// startTask spawns one task, held. The task is returned with an error if a process exists.
func (s *nodeStep) startTask(part, local int) (*task, error) {
	info, p := &s.prep.Info, &s.prep.Info.Parts[part]
	prog := &s.prep.Programs[p.Component]
	rank := p.Ranks[local]
	t := &task{step: s, state: TaskState{Step: info.Step, Name: stepName(&s.prep, p.Component), Rank: rank}, pumped: make(chan struct{})}
	args := prog.Args
	if own, ok := prog.PerRank[rank]; ok {
		args = own
	}
	h := &barrier.Hold{
		Args: args, Env: env.Task(s.node.cfg.Alloc, &s.prep, part, local, s.node.cfg.Own), Dir: prog.Dir,
		Umask: s.prep.Umask, Limits: s.prep.Limits, Errno: true,
		Step: info.Step, Rank: rank, Local: local,
	}
	if s.pmix != nil {
		h.Env = s.pmix.addTo(h.Env, rank)
	}
	spawner := s.node.cfg.Spawner
	if s.place != nil {
		spawner, h.Env, h.Dir = s.place.Spawner, s.place.Env(h.Env), s.place.dirOf(prog)
		if s.place.Args != nil {
			var err error
			if h.Args, err = s.place.Args(h.Args, h.Env); err != nil {
				return nil, err
			}
		}
	}
	given, err := t.openStreams(h, prog, part, local)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		err = fmt.Errorf("task %d cannot be started: no file descriptor is left on this node: %w; run fewer tasks on it, or raise the server's limit of open files", rank, err)
	}
	defer func() {
		for _, f := range given {
			_ = f.Close()
		}
	}()
	if err != nil {
		t.close()
		return nil, err
	}
	t.held, err = h.Start(spawner, s.node.cfg.TaskInit)
	if t.held == nil {
		t.close()
		return nil, err
	}
	t.state.PID = t.held.PID
	t.startCopying()
	return t, err
}

// stepName is what a step is called: as srun was told, or by its program.
func stepName(p *wire.Preparation, component int) string {
	if args := p.Programs[component].Args; p.Info.Name == "" && len(args) > 0 {
		return filepath.Base(args[0])
	}
	return p.Info.Name
}

// openStreams opens what the task's descriptors lead to. The files returned are the
// task's own ends, to be closed here once it has them.
func (t *task) openStreams(h *barrier.Hold, prog *wire.Program, part, local int) (given []*os.File, err error) {
	if dir := t.step.node.cfg.LogDir; dir != "" {
		t.state.Log = filepath.Join(dir, fmt.Sprintf("%d.%d.log", t.state.Step, t.state.Rank))
		if t.log, err = os.OpenFile(t.state.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600); err != nil {
			return nil, fmt.Errorf("rank log: %w", err)
		}
		if o := t.step.node.cfg.Owner; o != nil {
			if err := t.log.Chown(int(o.UID), int(o.GID)); err != nil {
				return nil, fmt.Errorf("rank log: %w", err)
			}
		}
	}
	if t.hasTerminal() {
		given, err = t.openTerminal(h)
	} else {
		given, err = t.openFiles(h, prog, part, local)
	}
	if err != nil {
		return given, err
	}
	if t.step.prep.PMI {
		theirs, err := t.openPMI(h)
		if err != nil {
			return given, err
		}
		given = append(given, theirs)
	}
	return given, nil
}

// openFiles opens what the descriptors of a task without a terminal lead to.
func (t *task) openFiles(h *barrier.Hold, prog *wire.Program, part, local int) (given []*os.File, err error) {
	give := func(i int, f *os.File) {
		h.Files[i] = f
		given = append(given, f)
	}
	in, err := t.openInput(prog.Stdin, part, local)
	if err != nil {
		return given, err
	}
	give(0, in)
	for fd, st := range map[int]wire.Stream{1: prog.Stdout, 2: prog.Stderr} {
		if st.Kind == wire.StreamJoin {
			continue
		}
		w, err := t.openOutput(fd, st, part, local)
		if err != nil {
			return given, err
		}
		give(fd, w)
	}
	if prog.Stderr.Kind == wire.StreamJoin {
		h.Files[2] = h.Files[1]
	}
	return given, nil
}

// discardsStream reports whether a stream of this task leads nowhere.
func (t *task) discardsStream(st wire.Stream) bool {
	return st.Kind == wire.StreamNone || st.Kind == wire.StreamOne && st.Rank != t.state.Rank
}

// openInput opens the task's end of its standard input.
func (t *task) openInput(st wire.Stream, part, local int) (*os.File, error) {
	switch {
	case t.discardsStream(st):
		return os.Open(os.DevNull)
	case st.Kind == wire.StreamFile:
		f, err := t.step.node.cfg.Open(t.fileName(st, part, local), os.O_RDONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("Could not open stdin file: %w", err)
		}
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.in = newFeed(w)
	t.step.node.serving.Go(t.in.run)
	return r, nil
}

// openOutput opens the task's end of its standard output or error.
func (t *task) openOutput(fd int, st wire.Stream, part, local int) (*os.File, error) {
	if t.discardsStream(st) {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if st.Kind == wire.StreamFile {
		f, err := t.step.outputFile(t.fileName(st, part, local), st.Append)
		if err != nil {
			return nil, fmt.Errorf("Could not open %s file: %w", map[int]string{1: "stdout", 2: "stderr"}[fd], err)
		}
		t.files[fd] = f
	}
	r, w, err := os.Pipe()
	t.pipes[fd] = r
	return w, err
}

// fileName expands the % patterns of a file's name for the task. A relative name is
// relative to the task's directory.
func (t *task) fileName(st wire.Stream, part, local int) string {
	a, info := t.step.node.cfg.Alloc, &t.step.prep.Info
	p := &info.Parts[part]
	n := step.FileNames(a, info)
	n.Node, n.NodeRank, n.Rank = a.Nodes[p.Node].Name, part, p.Ranks[local]
	name := slurmfmt.ExpandName(st.File, n)
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.step.prep.Programs[p.Component].Dir, name)
	}
	return name
}

// startCopying starts the goroutines that carry the task's output on.
func (t *task) startCopying() {
	var all sync.WaitGroup
	for fd, r := range t.pipes {
		if r != nil {
			all.Go(func() { t.copyOutput(r, fd) })
		}
	}
	t.step.node.serving.Go(func() {
		all.Wait()
		close(t.pumped)
	})
	if t.pmi != nil {
		t.step.node.serving.Go(t.carryPMI)
	}
}

// copyOutput copies one descriptor's output to the rank log and then to its file or to
// srun, until its end. Output that nobody takes any more still goes to the log.
func (t *task) copyOutput(r *os.File, fd int) {
	buf := make([]byte, 32<<10)
	file := t.files[fd]
	failed := false
	for {
		n, err := r.Read(buf)
		if n > 0 {
			t.appendLog(buf[:n])
			switch {
			case file == nil:
				_ = t.step.link.Send(wire.Frame{Kind: wire.MsgOutput, Rank: t.state.Rank, Number: fd, Body: buf[:n]})
			case !failed:
				if _, err := file.Write(buf[:n]); err != nil {
					failed = true
					text := fmt.Sprintf("task %d: %v; its output from here on is lost", t.state.Rank, err)
					_ = t.step.link.Send(wire.Frame{Kind: wire.MsgTrouble, Body: []byte(text)})
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// rankLogMost bounds the copy of a rank's output, which lies on the disk of the state
// directory.
const rankLogMost = 16 << 20

// appendLog appends to the rank log, as far as it goes.
func (t *task) appendLog(b []byte) {
	if t.log == nil {
		return
	}
	t.logMu.Lock()
	defer t.logMu.Unlock()
	switch room := rankLogMost - t.logged; {
	case room <= 0:
		return
	case len(b) > room:
		b = append(slices.Clone(b[:room]), "\n[this copy ends here, at 16 MiB; the job's own output goes on]\n"...)
	}
	n, _ := t.log.Write(b)
	t.logged += n
}

// openBarrier opens the task's barrier.
func (t *task) openBarrier() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.held.Go() != nil {
		return
	}
	t.state.Started, t.state.Running = time.Now(), true
	t.executed = make(chan struct{})
	t.step.node.serving.Go(func() {
		defer close(t.executed)
		if err := t.held.Executed(); err != nil {
			t.mu.Lock()
			t.reason = err.Error()
			t.mu.Unlock()
		}
	})
}

// setEnded enters how the task ended and returns why its program could not be
// executed, if so.
func (t *task) setEnded(e barrier.Exit) (reason string) {
	t.mu.Lock()
	t.gone = true
	t.state.Running, t.state.Ended = false, time.Now()
	t.state.Exit, t.state.OOM = job.ExitCode{Status: e.Status, Signal: e.Signal}, e.OOM
	t.state.Used = e.Used
	executed := t.executed
	t.mu.Unlock()
	if executed != nil {
		<-executed
	}
	return t.reason
}

// signalGroup sends a signal to the task's process group while the task lives.
func (t *task) signalGroup(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.gone {
		_ = syscall.Kill(-t.held.PID, sig)
	}
}

// awaitOutput waits for the end of the task's output, but not for longer.
func (t *task) awaitOutput(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-t.pumped:
	case <-late.C:
	}
}

// close releases what the task held open here.
func (t *task) close() {
	if t.held != nil {
		t.held.Close()
	}
	for _, p := range t.pipes {
		if p != nil {
			_ = p.Close()
		}
	}
	if t.in != nil {
		t.in.close()
	}
	if t.pmi != nil {
		_ = t.pmi.Close()
	}
	if t.held != nil { // else nothing was ever copied
		<-t.pumped
	}
	if t.log != nil {
		_ = t.log.Close()
	}
}
