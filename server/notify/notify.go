// Package notify sends the mail that jobs ask for (sbatch --mail-type, --mail-user).
//
// Two parts. Decide is pure: from a job before and after a change it says which
// events have happened, as sbatch names them. A Notifier is told of every change,
// keeps what arrays and time limits need to be remembered, composes the mails in the
// form that Slurm's have, and sends them by a command (mail -s SUBJECT ADDRESS, the
// text on standard input) or to an SMTP relay.
//
// Guarantees: Job never waits, neither for a mail nor for the network; at most
// Config.Workers mails are on their way at once, each within Config.Timeout; what
// does not fit into the queue is dropped, counted and logged. No text of a job can
// add a header, a recipient, an option or a command: control characters are replaced,
// and an address that is no plain address is not written to.
//
// BEGIN, END and FAIL of an array come once for the array as a whole, or once for
// each task with ARRAY_TASKS. REQUEUE and the TIME_LIMIT events come for each task.
// STAGE_OUT never happens: there are no burst buffers.
//
// What it does not do: it keeps nothing on disk. Mail that is queued when the process
// dies is lost, and a failed mail is logged, not sent again. After a restart, Seen
// tells it of the jobs that are there.
package notify

import (
	"context"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Config says how mail leaves, by Command or by SMTP. Zero counts and times have
// the defaults that stand beside them.
type Config struct {
	Command []string // program and arguments; called with -s SUBJECT ADDRESS…
	SMTP    SMTP
	Domain  string // appended to names without "@"; empty: they stay as they are

	Workers int           // mails on their way at once; 4
	Queue   int           // mails that wait; 1024
	Timeout time.Duration // for one mail; 30 s
}

// Enabled reports whether mail can be sent at all.
func (c Config) Enabled() bool { return len(c.Command) > 0 || c.SMTP.Addr != "" }

// validate fills in defaults.
func (c *Config) validate() error {
	switch {
	case len(c.Command) > 0 && c.SMTP.Addr != "":
		return fault.New(fault.Invalid, "mail leaves by a command or by a relay, not by both").Advise("configure one of them")
	case len(c.Command) > 0 && c.Command[0] == "":
		return fault.New(fault.Invalid, "the mail command has no name").Advise("name a program such as mail")
	}
	if c.SMTP.Addr != "" {
		if err := c.SMTP.validate(); err != nil {
			return err
		}
	}
	if c.Workers <= 0 {
		c.Workers = 4
	}
	if c.Queue <= 0 {
		c.Queue = 1024
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	return nil
}

// Stats counts mails since the start.
type Stats struct {
	Sent    uint64
	Failed  uint64 // tried, and not taken by the command or the relay
	Dropped uint64 // the queue was full, or it was closed
}

// sender is how one mail leaves.
type sender interface {
	send(ctx context.Context, m *message) error
}

// Notifier sends mail. All methods may be called from any goroutine, and on nil,
// where they do nothing.
type Notifier struct {
	config Config
	log    *slog.Logger
	sender sender

	mu     sync.Mutex
	arrays map[job.ID]*array // of arrays that are written about as a whole
	limits limits
	stats  Stats
	closed bool

	queue   chan occasion
	stop    context.CancelFunc // ends mails on their way
	context context.Context
	workers sync.WaitGroup
}

// New starts a notifier, or returns nil if mail is not configured.
func New(c Config, log *slog.Logger) (*Notifier, error) {
	if !c.Enabled() {
		return nil, nil
	}
	return newNotifier(c, nil, log)
}

// newNotifier starts a notifier that sends by s, or as the configuration says.
func newNotifier(c Config, s sender, log *slog.Logger) (*Notifier, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	n := &Notifier{config: c, log: log, sender: s, arrays: map[job.ID]*array{}, queue: make(chan occasion, c.Queue)}
	switch {
	case s != nil:
	case c.SMTP.Addr != "":
		n.sender = relay{c.SMTP}
	default:
		n.sender = command{argv: c.Command}
	}
	n.context, n.stop = context.WithCancel(context.Background())
	n.limits.jobs = map[job.ID]*limit{}
	n.limits.fire = n.limitReached
	for range c.Workers {
		n.workers.Go(n.sendQueue)
	}
	return n, nil
}

// Job takes note of a change and queues the mails that it calls for. Jobs that ask
// for no mail cost nothing.
func (n *Notifier) Job(c Change) {
	if n == nil || !c.isWanted() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, e := range Decide(c) {
		n.queueEvent(c.After, e)
	}
	n.followLimit(c.After)
}

// Seen takes note of a job as it is, without mail: for each job that asks for mail
// and is there when the process starts.
func (n *Notifier) Seen(j *job.Job) {
	if n == nil || j.Spec == nil || j.Spec.Mail == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.followLimit(j)
	if a := n.arrayOf(j); a != nil {
		a.noteTask(j)
	}
}

// queueEvent queues a mail about one event, or about the array that it completes.
func (n *Notifier) queueEvent(j *job.Job, e Event) {
	if a := n.arrayOf(j); a != nil && e.ofArray() {
		e, summary, ok := a.addEvent(j, e)
		if a.allEnded() {
			delete(n.arrays, j.Array.Job)
		}
		if ok && wantsMail(j.Spec.Mail, e) {
			n.enqueueMail(occasion{*j, e, summary})
		}
		return
	} else if a != nil {
		a.noteTask(j)
	}
	if e, ok := requestedEvent(j.Spec.Mail, e); ok {
		n.enqueueMail(occasion{*j, e, nil})
	}
}

// arrayOf returns the state of a task's array, nil if each task is for itself.
func (n *Notifier) arrayOf(j *job.Job) *array {
	if j.Array == nil || wantsMail(j.Spec.Mail, ArrayTasks) {
		return nil
	}
	a := n.arrays[j.Array.Job]
	if a == nil {
		a = newArray(j.Array)
		n.arrays[j.Array.Job] = a
	}
	return a
}

// occasion is a mail that is yet to be written: composing it is the worker's.
type occasion struct {
	job     job.Job
	event   Event
	summary *summary // of an array as a whole
}

// enqueueMail queues a mail or drops it.
func (n *Notifier) enqueueMail(o occasion) {
	select {
	case n.queue <- o:
	default:
		n.dropMail(&o.job)
	}
}

// dropMail counts a mail that is not sent. The 1st, 2nd, 4th, 8th … is logged.
func (n *Notifier) dropMail(j *job.Job) {
	n.stats.Dropped++
	if bits.OnesCount64(n.stats.Dropped) == 1 {
		n.log.Warn("mail: the queue is full, mails are dropped", "dropped", n.stats.Dropped, "queue", cap(n.queue), "job", j.Name())
	}
}

func (n *Notifier) sendQueue() {
	for o := range n.queue {
		if n.context.Err() != nil { // closing takes too long
			n.count(&n.stats.Dropped)
			continue
		}
		m := composeMail(&o.job, o.event, o.summary, n.config.Domain)
		if len(m.bad) > 0 {
			n.log.Warn("mail: not an address", "job", m.job, "address", m.bad)
		}
		if len(m.to) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(n.context, n.config.Timeout)
		err := n.sender.send(ctx, m)
		cancel()
		if err != nil {
			n.log.Warn("mail: not sent", "job", m.job, "event", string(m.event), "to", m.to, "err", err)
			n.count(&n.stats.Failed)
			continue
		}
		n.count(&n.stats.Sent)
	}
}

func (n *Notifier) count(of *uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*of++
}

// Stats returns the counts so far.
func (n *Notifier) Stats() Stats {
	if n == nil {
		return Stats{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// Close takes no more changes, waits until the queue is empty or ctx ends, and then
// ends what is still on its way. It returns ctx's error if mails were given up.
func (n *Notifier) Close(ctx context.Context) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		n.limits.stop()
		close(n.queue)
	}
	n.mu.Unlock()
	done := make(chan struct{})
	go func() { n.workers.Wait(); close(done) }()
	select {
	case <-done:
		n.stop()
		return nil
	case <-ctx.Done():
		n.stop()
		<-done
		return ctx.Err()
	}
}
