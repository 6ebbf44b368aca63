package srun

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// client is srun while its step lives.
type client struct {
	plan  *plan
	stdio step.Stdio
	info  step.Info
	head  *wire.Link // to the allocator; its end releases the step's resources
	watch *watchers
	nodes []*remote
	print *outputPrinter
	pmi   *pmiServer

	exchange *pmix.Exchange

	ends chan taskEnd

	began   time.Time
	exits   exitSummary
	worst   int          // highest exit code so far
	last    job.ExitCode // of the task that has it
	ended   int          // tasks
	killing bool
	restore func() // gives srun's terminal back, with --pty
	files   []*os.File
}

// remote is one node of the step.
type remote struct {
	node   int
	name   string
	link   *wire.Link
	ranks  []int
	ended  int          // tasks
	early  []wire.Frame // what came before all tasks were held: complaints of tasks
	window *stdinWindow
	pmix   *pmix.Sender // to its PMIx server
	joiner pmix.Joiner  // of what that says
}

// taskEnd is something that a node says about the end of tasks.
type taskEnd struct {
	from *remote
	rank int // -1: the node is over
	how  wire.Ending
	err  error // the node is lost

	abort bool // the task asked for the end of the step
	lost  bool // … by going away where the others wait for it
}

// newClient prepares to run a step.
func newClient(p *plan, stdio step.Stdio) *client {
	out, err := &outputFile{w: stdio.Out}, &outputFile{w: stdio.Err}
	if p.prep.Terminal != nil {
		*p.prep.Terminal = windowOf(stdio.In)
	}
	if stdio.Out == stdio.Err {
		out = err
	}
	return &client{plan: p, stdio: stdio, ends: make(chan taskEnd), restore: func() {}, print: &outputPrinter{out: out, err: err, ranks: make(map[int]*taskOutput)}}
}

// sayLine prints a line of srun's own.
func (c *client) sayLine(format string, v ...any) {
	c.print.err.write(fmt.Appendf(nil, "srun: "+format+"\n", v...))
}

// stepID is the step's name for people.
func (c *client) stepID() string { return fmt.Sprintf("StepId=%s.%d", c.plan.alloc.Job, c.info.Step) }

// run runs the step; the results are srun's exit code, and the end that gave it.
func (c *client) run() (int, job.ExitCode, error) {
	if err := c.createStep(); err != nil {
		return 0, job.ExitCode{}, err
	}
	defer c.close()
	c.watch = c.serveWatchers()
	if err := c.openOutputs(); err != nil {
		return 0, job.ExitCode{}, err
	}
	if err := c.holdTasks(); err != nil {
		return 0, job.ExitCode{}, err
	}
	stop := c.catchSignals()
	defer stop()
	c.restore = c.useTerminal()
	defer c.restore()
	for _, r := range c.nodes {
		if c.plan.first.show.verbose > 0 {
			c.sayLine("launching %s on host %s, %d tasks: [%s]", c.stepID(), r.name, len(r.ranks), step.FormatInts(r.ranks))
		}
		if err := r.link.Send(wire.Frame{Kind: wire.MsgGo}); err != nil {
			return 0, job.ExitCode{}, fmt.Errorf("start on %s: %w", r.name, err)
		}
	}
	c.began = time.Now()
	if err := c.feedInput(); err != nil {
		return 0, job.ExitCode{}, err
	}
	go c.copyTyped(c.watch) // ends with the connection to the first node
	for _, r := range c.nodes {
		go c.listenToNode(r) // ends with its connection, which close closes
	}
	c.awaitEnd()
	return c.worst, c.last, nil
}

// createStep gets the step from the allocator, waiting for others if need be.
func (c *client) createStep() error {
	a := c.plan.alloc
	unable := func(why any) error { return fmt.Errorf("Unable to create step for job %s: %v", a.Job, why) }
	l, err := wire.Dial(a, 0)
	if err != nil {
		return unable(fmt.Sprintf("the supervisor of %s does not answer: %v", a.Nodes[0].Name, err))
	}
	c.head = l
	if err := l.SendJSON(wire.MsgCreate, c.plan.request); err != nil {
		return unable(err)
	}
	waited := false
	for {
		f, err := l.Receive()
		if err != nil {
			return unable("Job/step already completing or completed")
		}
		switch f.Kind {
		case wire.MsgBusy:
			waited = true
			if !c.plan.first.show.quiet {
				c.sayLine("Job %s step creation temporarily disabled, retrying (%s)", a.Job, f.Body)
				hint := time.AfterFunc(hintAfter, func() { c.sayLine("%s", c.plan.waitHint()) })
				defer hint.Stop()
			}
		case wire.MsgRefused:
			return unable(string(f.Body))
		case wire.MsgCreated:
			if err := f.Decode(&c.info); err != nil {
				return unable(err)
			}
			if waited && !c.plan.first.show.quiet {
				c.sayLine("Step created for %s", c.stepID())
			}
			return nil
		}
	}
}

// hintAfter is how long a step waits before srun says what would let it start.
const hintAfter = 2 * time.Second

// waitHint says what would let a step start beside others.
func (p *plan) waitHint() string {
	switch {
	case !p.request.Exact:
		return "still waiting: other steps have these nodes whole; with --exact a step takes only what it asks for, with --overlap it shares"
	case !p.request.Components[0].Devices.Requested():
		return "still waiting: a step takes all GPUs of its nodes unless it says how many, by --gpus or --gres=none"
	}
	return "still waiting: other steps hold what this one asks for; with --overlap it shares"
}

// holdTasks connects to every node of the step and waits until all tasks are held.
func (c *client) holdTasks() error {
	a := c.plan.alloc
	prep := c.plan.prep
	prep.Info = c.info
	for _, p := range c.info.Parts {
		i := slices.IndexFunc(c.nodes, func(r *remote) bool { return r.node == p.Node })
		if i < 0 {
			i = len(c.nodes)
			c.nodes = append(c.nodes, &remote{node: p.Node, name: a.Nodes[p.Node].Name, window: newWindow()})
		}
		c.nodes[i].ranks = append(c.nodes[i].ranks, p.Ranks...)
	}
	c.pmi = newPMIServer(&c.info, c.answerPMI, c.abortPMI, func(text string) { c.sayLine("%s", text) })
	c.exchange = c.newExchange()
	body := wire.MustJSON(prep)
	failed := make(chan error, len(c.nodes))
	for _, r := range c.nodes {
		go func() { failed <- r.prepareNode(a, body, c.print.err.write) }()
	}
	var errs []error
	for range c.nodes {
		errs = append(errs, <-failed)
	}
	return joinNodeErrors(errs)
}

// prepareNode makes a node hold its tasks.
func (r *remote) prepareNode(a *step.Alloc, body []byte, notice func([]byte)) error {
	l, err := wire.Dial(a, r.node)
	if err != nil {
		return fmt.Errorf("%s: its supervisor does not answer: %w", r.name, err)
	}
	r.link, r.pmix = l, &pmix.Sender{Link: l}
	if err := l.Send(wire.Frame{Kind: wire.MsgPrepare, Body: body}); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	for {
		f, err := l.Receive()
		switch {
		case err != nil:
			return fmt.Errorf("%s: its supervisor went away: %w", r.name, err)
		case f.Kind == wire.MsgHeld:
			return nil
		case f.Kind == wire.MsgRefused:
			return fmt.Errorf("%s: %s", r.name, f.Body)
		case f.Kind == wire.MsgNotice: // that the node pulls an image, which may take minutes
			notice(f.Body)
			continue
		}
		r.early = append(r.early, f)
	}
}

// listenToNode takes what a node says, to its end.
func (c *client) listenToNode(r *remote) {
	for _, f := range r.early {
		c.handleFrame(r, f)
	}
	for {
		f, err := r.link.Receive()
		if err != nil {
			c.ends <- taskEnd{from: r, rank: -1, err: err}
			return
		}
		if f.Kind == wire.MsgOver {
			c.ends <- taskEnd{from: r, rank: -1}
			return
		}
		c.handleFrame(r, f)
	}
}

// handleFrame takes one thing that a node says: output is printed, ends are passed on.
func (c *client) handleFrame(r *remote, f wire.Frame) {
	c.watch.repeatFrame(f)
	switch f.Kind {
	case wire.MsgOutput:
		c.print.printOutput(f.Rank, f.Number, f.Body)
	case wire.MsgStdinAck:
		r.window.giveRoom(f.Number)
	case wire.MsgPMI:
		if f.Number == wire.PMI2 {
			c.pmi.handlePMI2(f.Rank, string(f.Body))
		} else {
			c.pmi.handleCommand(f.Rank, string(f.Body))
		}
	case wire.MsgPMIx:
		c.handlePMIx(r, f)
	case wire.MsgNotice:
		c.print.err.write(f.Body)
	case wire.MsgTrouble:
		c.sayLine("error: %s: %s", r.name, f.Body)
	case wire.MsgExit:
		e := taskEnd{from: r, rank: f.Rank}
		if err := f.Decode(&e.how); err != nil {
			e.how.Text = err.Error()
		}
		c.print.flushRank(f.Rank)
		c.ends <- e
	}
}

// answerPMI sends an answer to a task.
func (c *client) answerPMI(rank int, bytes string) {
	for _, r := range c.nodes {
		if slices.Contains(r.ranks, rank) {
			_ = r.link.Send(wire.Frame{Kind: wire.MsgPMI, Rank: rank, Body: []byte(bytes)})
		}
	}
}

// abortPMI ends the step because a task asked for it.
func (c *client) abortPMI(rank, code int, text string) {
	c.ends <- taskEnd{rank: rank, abort: true, how: wire.Ending{Exit: job.ExitCode{Status: code & 0xff}, Text: text}}
}

// awaitEnd follows the step to its end.
func (c *client) awaitEnd() {
	left := len(c.nodes)
	var soon, waited, limit <-chan time.Time
	if at := c.plan.stepDeadline(c.began); !at.IsZero() {
		limit = time.After(time.Until(at))
	}
	for left > 0 {
		select {
		case e := <-c.ends:
			if e.abort {
				c.taskAborted(e)
				continue
			}
			if e.rank < 0 {
				left--
				c.nodeLost(e)
				continue
			}
			c.taskEnded(e)
			if soon == nil {
				soon = time.After(summaryDelay)
			}
			if c.ended == 1 && c.plan.first.end.wait > 0 {
				waited = time.After(c.plan.first.end.wait)
			}
		case <-soon:
			soon = nil
			c.printEnds(nil)
		case <-waited:
			waited = nil
			c.sayLine("First task exited %ds ago", int(c.plan.first.end.wait.Seconds()))
			c.terminateStep(engine.OnRequest)
		case <-limit:
			limit = nil
			c.sayLine("error: %s: time limit of the step reached", c.stepID())
			c.terminateStep(engine.ForTimeLimit)
		}
	}
	c.printEnds(nil)
	if c.head.Send(wire.Frame{Kind: wire.MsgDone}) == nil {
		<-c.watch.over // closed once the resources are free for the next step
	}
}

// nodeLost notes a node that went away before its tasks had ended.
func (c *client) nodeLost(e taskEnd) {
	if e.err == nil {
		return
	}
	c.countExit(job.ExitCode{Status: exitError})
	c.printEnds(nil)
	c.sayLine("error: Node failure on %s", e.from.name)
	c.terminateStep(engine.ForNodeFailure)
}

// taskEnded notes the end of a task.
func (c *client) taskEnded(e taskEnd) {
	if e.rank == 0 {
		c.restore() // before anything is said of its end
	}
	c.ended++
	e.from.ended++
	if !c.endedByUs(e) {
		c.countExit(e.how.Exit)
	}
	c.exits.addExit(e)
	if e.from.ended == len(e.from.ranks) {
		c.printEnds(e.from)
	}
	if !e.how.Exit.OK() && c.plan.first.end.killOnBadExit == 1 && !c.killing {
		c.printEnds(nil)
		c.terminateStep(engine.OnRequest)
	}
}

// countExit lets an end count for the exit code.
func (c *client) countExit(e job.ExitCode) {
	if code := e.Shell(); code > c.worst {
		c.worst, c.last = code, e
	}
}

// taskAborted ends the step for a task that asked for it, by MPI_Abort.
func (c *client) taskAborted(e taskEnd) {
	switch {
	case e.lost && c.killing:
		return // the others go in the same way
	case e.lost:
		c.sayLine("error: task %d left the MPI program without MPI_Finalize", e.rank)
	case e.rank < 0: // not a task: a node
		c.sayLine("error: %s", e.how.Text)
	default:
		c.sayLine("error: task %d aborts the step with code %d %s", e.rank, e.how.Exit.Status, e.how.Text)
	}
	c.countExit(job.ExitCode{Status: max(e.how.Exit.Status, exitError)})
	c.terminateStep(engine.OnRequest)
}

// endedByUs reports whether a task ended by the signal that we sent it because of
// another's bad end. It does not count for the exit code: the one that failed
// first does. (Slurm's srun reports the signal, 143, and so hides the cause.)
func (c *client) endedByUs(e taskEnd) bool {
	s := syscall.Signal(e.how.Exit.Signal)
	return c.killing && c.worst > 0 && (s == syscall.SIGTERM || s == syscall.SIGKILL)
}

// terminateStep ends every task, once.
func (c *client) terminateStep(why engine.Why) {
	if c.killing || c.ended == c.info.Tasks {
		return
	}
	c.killing = true
	c.sayLine("Terminating %s", c.stepID())
	c.broadcastFrame(wire.Frame{Kind: wire.MsgKill, Body: []byte(why)})
}

// broadcastFrame sends a frame to every node. A node that is gone is met elsewhere.
func (c *client) broadcastFrame(f wire.Frame) {
	for _, r := range c.nodes {
		_ = r.link.Send(f)
	}
}

// printEnds prints what is known of ended tasks, of one node if one is given.
func (c *client) printEnds(of *remote) {
	for _, line := range c.exits.takeLines(of, c.plan.first.show.verbose > 0) {
		c.sayLine("%s", line)
	}
}

// close ends the connections, and with them what may still live of the step.
func (c *client) close() {
	for _, r := range c.nodes {
		if r.link != nil {
			r.link.Close()
		}
	}
	c.head.Close()
	for _, f := range c.files {
		_ = f.Close()
	}
}

// exitText is how srun words the end of a task.
func exitText(e wire.Ending) string {
	switch {
	case e.OOM:
		return "Out Of Memory"
	case e.Exit.Signal != 0:
		return signalText(e.Exit)
	}
	return fmt.Sprintf("Exited with exit code %d", e.Exit.Status)
}

// signalText is the C library's name of a signal.
func signalText(e job.ExitCode) string {
	if text, ok := signalNames[e.Signal]; ok {
		return text
	}
	return fmt.Sprintf("Unknown signal %d", e.Signal)
}
