package step

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// client is srun while its step lives.
type client struct {
	plan  *plan
	stdio Stdio
	info  Info
	head  *link // to the arbiter; its end releases the step's resources
	nodes []*remote
	print *printer
	pmi   *pmiServer
	ends  chan end

	began   time.Time
	notes   notes
	worst   int // highest exit code so far
	ended   int // tasks
	killing bool
	files   []*os.File
}

// remote is one node of the step.
type remote struct {
	node   int
	name   string
	link   *link
	ranks  []int
	ended  int     // tasks
	early  []frame // what came before all tasks were held: complaints of tasks
	window *window
}

// end is something that a node says about the end of tasks.
type end struct {
	from *remote
	rank int // -1: the node is over
	how  ending
	err  error // the node is lost

	abort bool // the task asked for the end of the step
}

// newClient prepares to run a step.
func newClient(p *plan, stdio Stdio) *client {
	out, err := &sink{w: stdio.Out}, &sink{w: stdio.Err}
	if stdio.Out == stdio.Err {
		out = err
	}
	return &client{plan: p, stdio: stdio, ends: make(chan end), print: &printer{out: out, err: err, ranks: make(map[int]*voice)}}
}

// say prints a line of srun's own.
func (c *client) say(format string, v ...any) {
	c.print.err.write(fmt.Appendf(nil, "srun: "+format+"\n", v...))
}

// id is the step's name for people.
func (c *client) id() string { return fmt.Sprintf("StepId=%s.%d", c.plan.alloc.Job, c.info.Step) }

// run runs the step; the result is srun's exit code.
func (c *client) run() (int, error) {
	if err := c.create(); err != nil {
		return 0, err
	}
	defer c.close()
	if err := c.openOutputs(); err != nil {
		return 0, err
	}
	if err := c.hold(); err != nil {
		return 0, err
	}
	stop := c.catchSignals()
	defer stop()
	for _, r := range c.nodes {
		if c.plan.first.verbose > 0 {
			c.say("launching %s on host %s, %d tasks: [%s]", c.id(), r.name, len(r.ranks), ints(r.ranks))
		}
		if err := r.link.send(frame{kind: mGo}); err != nil {
			return 0, fmt.Errorf("start on %s: %w", r.name, err)
		}
	}
	c.began = time.Now()
	if err := c.feedInput(); err != nil {
		return 0, err
	}
	for _, r := range c.nodes {
		go c.listen(r) // ends with its connection, which close closes
	}
	return c.await(), nil
}

// create gets the step from the arbiter, waiting for others if need be.
func (c *client) create() error {
	a := c.plan.alloc
	unable := func(why any) error { return fmt.Errorf("Unable to create step for job %s: %v", a.Job, why) }
	l, err := dial(a, 0)
	if err != nil {
		return unable(fmt.Sprintf("the supervisor of %s does not answer: %v", a.Nodes[0].Name, err))
	}
	c.head = l
	if err := l.sendJSON(mCreate, c.plan.request); err != nil {
		return unable(err)
	}
	waited := false
	for {
		f, err := l.receive()
		if err != nil {
			return unable("Job/step already completing or completed")
		}
		switch f.kind {
		case mBusy:
			waited = true
			if !c.plan.first.quiet {
				c.say("Job %s step creation temporarily disabled, retrying (%s)", a.Job, f.body)
				hint := time.AfterFunc(hintAfter, func() { c.say("%s", c.plan.hint()) })
				defer hint.Stop()
			}
		case mRefused:
			return unable(string(f.body))
		case mCreated:
			if err := f.decode(&c.info); err != nil {
				return unable(err)
			}
			if waited && !c.plan.first.quiet {
				c.say("Step created for %s", c.id())
			}
			return nil
		}
	}
}

// hintAfter is how long a step waits before srun says what would let it start.
const hintAfter = 2 * time.Second

// hint says what would let a step start beside others.
func (p *plan) hint() string {
	switch {
	case !p.request.Exact:
		return "still waiting: other steps have these nodes whole; with --exact a step takes only what it asks for, with --overlap it shares"
	case !p.request.Components[0].Devices.asked():
		return "still waiting: a step takes all GPUs of its nodes unless it says how many, by --gpus or --gres=none"
	}
	return "still waiting: other steps hold what this one asks for; with --overlap it shares"
}

// hold connects to every node of the step and waits until all tasks are held.
func (c *client) hold() error {
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
	c.pmi = newPMIServer(&c.info, c.answerPMI, c.abortPMI)
	body := mustJSON(prep)
	failed := make(chan error, len(c.nodes))
	for _, r := range c.nodes {
		go func() { failed <- r.prepare(a, body) }()
	}
	var errs []error
	for range c.nodes {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

// prepare makes a node hold its tasks.
func (r *remote) prepare(a *Alloc, body []byte) error {
	l, err := dial(a, r.node)
	if err != nil {
		return fmt.Errorf("%s: its supervisor does not answer: %w", r.name, err)
	}
	r.link = l
	if err := l.send(frame{kind: mPrepare, body: body}); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	for {
		f, err := l.receive()
		switch {
		case err != nil:
			return fmt.Errorf("%s: its supervisor went away: %w", r.name, err)
		case f.kind == mHeld:
			return nil
		case f.kind == mRefused:
			return fmt.Errorf("%s: %s", r.name, f.body)
		}
		r.early = append(r.early, f)
	}
}

// listen takes what a node says, to its end.
func (c *client) listen(r *remote) {
	for _, f := range r.early {
		c.hear(r, f)
	}
	for {
		f, err := r.link.receive()
		if err != nil {
			c.ends <- end{from: r, rank: -1, err: err}
			return
		}
		if f.kind == mOver {
			c.ends <- end{from: r, rank: -1}
			return
		}
		c.hear(r, f)
	}
}

// hear takes one thing that a node says: output is printed, ends are passed on.
func (c *client) hear(r *remote, f frame) {
	switch f.kind {
	case mOutput:
		c.print.output(f.rank, f.number, f.body)
	case mStdinAck:
		r.window.give(f.number)
	case mPMI:
		c.pmi.command(f.rank, string(f.body))
	case mTrouble:
		c.say("error: %s: %s", r.name, f.body)
	case mExit:
		e := end{from: r, rank: f.rank}
		if err := f.decode(&e.how); err != nil {
			e.how.Text = err.Error()
		}
		c.print.flush(f.rank)
		c.ends <- e
	}
}

// answerPMI sends an answer to a task.
func (c *client) answerPMI(rank int, line string) {
	for _, r := range c.nodes {
		if slices.Contains(r.ranks, rank) {
			_ = r.link.send(frame{kind: mPMI, rank: rank, body: []byte(line + "\n")})
		}
	}
}

// abortPMI ends the step because a task asked for it.
func (c *client) abortPMI(rank, code int, text string) {
	c.ends <- end{rank: rank, abort: true, how: ending{Exit: job.ExitCode{Status: code & 0xff}, Text: text}}
}

// await follows the step to its end.
func (c *client) await() int {
	left := len(c.nodes)
	var soon, waited, limit <-chan time.Time
	if at := c.plan.deadline(c.began); !at.IsZero() {
		limit = time.After(time.Until(at))
	}
	for left > 0 {
		select {
		case e := <-c.ends:
			if e.abort {
				c.aborted(e)
				continue
			}
			if e.rank < 0 {
				left--
				c.lost(e)
				continue
			}
			c.taskEnded(e)
			if soon == nil {
				soon = time.After(noteDelay)
			}
			if c.ended == 1 && c.plan.first.wait > 0 {
				waited = time.After(c.plan.first.wait)
			}
		case <-soon:
			soon = nil
			c.tell(nil)
		case <-waited:
			waited = nil
			c.say("First task exited %ds ago", int(c.plan.first.wait.Seconds()))
			c.terminate()
		case <-limit:
			limit = nil
			c.say("error: %s: time limit of the step reached", c.id())
			c.terminate()
		}
	}
	c.tell(nil)
	if c.head.send(frame{kind: mDone}) == nil {
		_, _ = c.head.receive() // closed once the resources are free for the next step
	}
	return c.worst
}

// lost notes a node that went away before its tasks had ended.
func (c *client) lost(e end) {
	if e.err == nil {
		return
	}
	c.worst = max(c.worst, exitError)
	c.tell(nil)
	c.say("error: Node failure on %s", e.from.name)
	c.terminate()
}

// taskEnded notes the end of a task.
func (c *client) taskEnded(e end) {
	c.ended++
	e.from.ended++
	if !c.felled(e) {
		c.worst = max(c.worst, e.how.Exit.Shell())
	}
	c.notes.add(e)
	if e.from.ended == len(e.from.ranks) {
		c.tell(e.from)
	}
	if !e.how.Exit.OK() && c.plan.first.killOnBadExit == 1 && !c.killing {
		c.tell(nil)
		c.terminate()
	}
}

// aborted ends the step for a task that asked for it, by MPI_Abort.
func (c *client) aborted(e end) {
	c.say("error: task %d aborts the step with code %d %s", e.rank, e.how.Exit.Status, e.how.Text)
	c.worst = max(c.worst, e.how.Exit.Status, exitError)
	c.terminate()
}

// felled reports whether a task ended by the signal that we sent it because of
// another's bad end. It does not count for the exit code: the one that failed
// first does. (Slurm's srun reports the signal, 143, and so hides the cause.)
func (c *client) felled(e end) bool {
	s := syscall.Signal(e.how.Exit.Signal)
	return c.killing && c.worst > 0 && (s == syscall.SIGTERM || s == syscall.SIGKILL)
}

// terminate ends every task, once.
func (c *client) terminate() {
	if c.killing || c.ended == c.info.Tasks {
		return
	}
	c.killing = true
	c.say("Terminating %s", c.id())
	c.broadcast(frame{kind: mKill})
}

// broadcast sends a frame to every node. A node that is gone is met elsewhere.
func (c *client) broadcast(f frame) {
	for _, r := range c.nodes {
		_ = r.link.send(f)
	}
}

// tell prints what is known of ended tasks, of one node if one is given.
func (c *client) tell(of *remote) {
	for _, line := range c.notes.take(of, c.plan.first.verbose > 0) {
		c.say("%s", line)
	}
}

// close ends the connections, and with them what may still live of the step.
func (c *client) close() {
	for _, r := range c.nodes {
		if r.link != nil {
			r.link.close()
		}
	}
	c.head.close()
	for _, f := range c.files {
		_ = f.Close()
	}
}

// exitText is how srun words the end of a task.
func exitText(e ending) string {
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
