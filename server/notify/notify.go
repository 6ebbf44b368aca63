// Package notify tells people and programs what becomes of jobs: by the mail that jobs ask for
// (sbatch --mail-type, --mail-user), and by webhooks, those of the site and those of jobs.
//
// Two parts. Decide is pure: from a job before and after a change it says which
// events have happened, as sbatch names them. A Notifier is told of every change,
// keeps what arrays and time limits need to be remembered, and sends messages through one outlet.
// Mail has the form of Slurm's and leaves by a command (mail -s SUBJECT ADDRESS, the
// text on standard input) or to an SMTP relay. A webhook gets a POST of a Payload.
//
// Guarantees: Job never waits, neither for a message nor for the network; at most
// Config.Workers messages are on their way at once, each within Config.Timeout; what
// does not fit into the queue is dropped, counted and logged. No text of a job can
// add a header, a recipient, an option or a command: control characters are replaced,
// and an address that is no plain address is not written to. A webhook that a job names reaches
// only the addresses that WebhookPolicy allows, whatever its name resolves to.
//
// BEGIN, END and FAIL of an array come once for the array as a whole, or once for
// each task with ARRAY_TASKS. REQUEUE and the TIME_LIMIT events come for each task.
// STAGE_OUT never happens: there are no burst buffers.
//
// What it does not do: it keeps nothing on disk. Messages that are queued when the process
// dies are lost. A mail that failed is logged, not sent again; a webhook is tried again
// (webhookRetries). After a restart, Seen tells it of the jobs that are there.
package notify

import (
	"context"
	"errors"
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
	PerUser int           // that wait for jobs of one user, of which one is on its way at once; 0: no bound
	PerHost int           // on their way at once to one host, of an outlet that has hosts; 0: no bound
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

// Stats counts messages since the start.
type Stats struct {
	Sent    uint64
	Failed  uint64 // tried as often as it is, and not taken
	Retried uint64 // tries after the first one
	Dropped uint64 // the queue was full, or it was closed
}

// outlet is where messages go. Its methods may be called at once.
type outlet interface {
	// events are those that it is told of for a job, nil for none; only Types counts.
	events(j *job.Job) *job.Mail
	// deliver sends one message. sent is false if there was nobody to send it to. An error that
	// wraps errLater is worth another try.
	deliver(ctx context.Context, o *occasion) (sent bool, err error)
}

// errLater marks a failure that may pass.
var errLater = errors.New("may be tried again")

// Notifier sends messages through one outlet. All methods may be called from any goroutine, and on nil,
// where they do nothing.
type Notifier struct {
	config Config
	log    *slog.Logger
	outlet outlet
	pauses []time.Duration // before the tries after the first one

	mu     sync.Mutex
	retry  map[*time.Timer]struct{}
	arrays map[job.ID]*array // of arrays that are written about as a whole
	limits limits
	stats  Stats
	users  map[string]*userTurn // who has messages, with Config.PerUser
	hosts  map[string]*hostTurn // to which messages go, with Config.PerHost
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
	switch {
	case s != nil:
	case c.SMTP.Addr != "":
		s = relay{c.SMTP}
	default:
		s = command{argv: c.Command}
	}
	return startNotifier(c, &mailOutlet{sender: s, domain: c.Domain, log: log}, nil, log), nil
}

// startNotifier starts a notifier for an outlet. Counts and times of the configuration are set.
func startNotifier(c Config, to outlet, pauses []time.Duration, log *slog.Logger) *Notifier {
	n := &Notifier{
		config: c, log: log, outlet: to, pauses: pauses, arrays: map[job.ID]*array{}, users: map[string]*userTurn{}, hosts: map[string]*hostTurn{}, retry: map[*time.Timer]struct{}{}, queue: make(chan occasion, c.Queue),
	}
	n.context, n.stop = context.WithCancel(context.Background())
	n.limits.jobs = map[job.ID]*limit{}
	n.limits.fire = n.limitReached
	for range c.Workers {
		n.workers.Go(n.sendQueue)
	}
	return n
}

// Job takes note of a change and queues the mails that it calls for. Jobs that ask
// for no mail cost nothing.
func (n *Notifier) Job(c Change) {
	if n == nil || c.After == nil || !n.Wants(c.After) {
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

// Wants reports whether anybody is to hear of the job.
func (n *Notifier) Wants(j *job.Job) bool {
	return n != nil && j.Spec != nil && n.outlet.events(j) != nil
}

// Seen takes note of a job as it is, without mail: for each job that asks for mail
// and is there when the process starts.
func (n *Notifier) Seen(j *job.Job) {
	if !n.Wants(j) {
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
	wanted := n.outlet.events(j)
	if a := n.arrayOf(j); a != nil && e.ofArray() {
		e, summary, ok := a.addEvent(j, e, wanted)
		if a.allEnded() {
			delete(n.arrays, j.Array.Job)
		}
		if ok && wantsEvent(wanted, e) {
			n.enqueueMessage(occasion{job: *j, event: e, summary: summary, at: time.Now()})
		}
		return
	} else if a != nil {
		a.noteTask(j)
	}
	if e, ok := requestedEvent(wanted, e); ok {
		n.enqueueMessage(occasion{job: *j, event: e, at: time.Now()})
	}
}

// arrayOf returns the state of a task's array, nil if each task is for itself.
func (n *Notifier) arrayOf(j *job.Job) *array {
	if j.Array == nil || wantsEvent(n.outlet.events(j), ArrayTasks) {
		return nil
	}
	a := n.arrays[j.Array.Job]
	if a == nil {
		a = newArray(j.Array)
		n.arrays[j.Array.Job] = a
	}
	return a
}

// occasion is a message that is yet to be written: composing it is the worker's.
type occasion struct {
	job     job.Job
	event   Event
	summary *summary    // of an array as a whole
	nodes   *NodeChange // it is about nodes, and about no job
	at      time.Time   // when it was noticed
	tried   int         // how often it was sent in vain
}

// enqueueMessage queues a message or drops it.
func (n *Notifier) enqueueMessage(o occasion) {
	if !n.countWaiting(&o) {
		n.dropMessage(&o.job)
		return
	}
	select {
	case n.queue <- o:
	default:
		n.uncountWaiting(&o)
		n.dropMessage(&o.job)
	}
}

// dropMessage counts a message that is not sent. The 1st, 2nd, 4th, 8th … is logged.
func (n *Notifier) dropMessage(j *job.Job) {
	n.stats.Dropped++
	if bits.OnesCount64(n.stats.Dropped) == 1 {
		n.log.Warn("the queue is full, messages are dropped", "dropped", n.stats.Dropped, "queue", cap(n.queue), "job", j.Name())
	}
}

func (n *Notifier) sendQueue() {
	for o := range n.queue {
		for turn := n.takeTurn(&o); turn; turn = n.nextInTurn(&o) {
			n.sendMessage(o)
		}
	}
}

// sendMessage sends a message, or has it tried later.
func (n *Notifier) sendMessage(o occasion) {
	if n.context.Err() != nil { // closing takes too long
		n.count(&n.stats.Dropped)
		return
	}
	release, ok := n.takeHost(&o)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(n.context, n.config.Timeout)
	sent, err := n.outlet.deliver(ctx, &o)
	cancel()
	release(err)
	switch {
	case errors.Is(err, errLater) && n.tryLater(o):
	case err != nil:
		n.log.Warn("not sent", "job", o.job.Name(), "event", string(o.event), "tries", o.tried+1, "err", err)
		n.count(&n.stats.Failed)
	case sent:
		n.count(&n.stats.Sent)
	}
}

// tryLater queues a message again after a pause; false: it was tried often enough, or is given up.
func (n *Notifier) tryLater(o occasion) bool {
	if o.tried >= len(n.pauses) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pause := n.pauses[o.tried]
	o.tried++
	if !n.sendAfter(o, pause) {
		return false
	}
	n.stats.Retried++
	return true
}

// sendAfter queues a message again after a pause; false: too many wait for that, or it is given up.
// n.mu is held.
func (n *Notifier) sendAfter(o occasion, pause time.Duration) bool {
	if n.closed || len(n.retry) >= n.config.Queue {
		return false
	}
	var t *time.Timer
	t = time.AfterFunc(pause, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if _, waits := n.retry[t]; waits { // else it was given up
			delete(n.retry, t)
			n.enqueueMessage(o)
		}
	})
	n.retry[t] = struct{}{}
	return true
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
		for t := range n.retry {
			t.Stop()
			delete(n.retry, t)
			n.stats.Dropped++
		}
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
