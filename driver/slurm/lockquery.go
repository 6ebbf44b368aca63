package slurm

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// lockQuery is what an attempt's nodes are asked where their locks are on them alone: by a job
// on each, of the same user, whose exit status is the answer. That an attempt is fenced on a
// node, or that nothing of it lives where it began, stays true. The attempt's goroutine alone
// has it.
type lockQuery struct {
	nodes  map[string]*queryJob
	looked time.Time // when the jobs were looked at last
	began  time.Time
	due    time.Time // when there is more to do: it is not looked at before
}

// isTooEarly reports whether it is too early to look again.
func (q *lockQuery) isTooEarly() bool { return q != nil && time.Now().Before(q.due) }

// queryJob is one node that is asked.
type queryJob struct {
	id      uint32    // of the job; 0: it was not taken
	comment string    // of the job, which no other has
	sent    time.Time // when it was handed over last
	times   int       // how often
	answer  *script.Answer
	heard   time.Time // when that was
	why     string    // it has none
	bad     bool      // its directory of locks cannot be used
}

// nodeAnswers is what the nodes of an attempt say, all together.
type nodeAnswers struct {
	known bool // all have answered
	lives bool // … or one on which it lives
	began bool
	done  bool // the script said its last word
	exit  int  // that
	why   string

	lockless bool // a node's directory of locks cannot be used
}

// lockQuerier asks the nodes of attempts.
type lockQuerier struct {
	cfg        *Config
	cluster    string // the name under which this driver's jobs are known in Slurm
	controller *controller
	owners     *owners
}

// query asks nodes of an attempt, and says what they have said so far. Each turn of the
// attempt's looks again.
func (l *lockQuerier) query(a *attempt, nodes []string) (nodeAnswers, error) {
	if len(nodes) == 0 || len(nodes) > mostProbed {
		return nodeAnswers{why: fmt.Sprintf("of %d nodes none is asked (at most %d are)", len(nodes), mostProbed)}, nil
	}
	if a.check.locks == nil {
		a.check.locks = &lockQuery{nodes: map[string]*queryJob{}, began: time.Now()}
	}
	q := a.check.locks
	if err := l.collectAnswers(q); err != nil {
		return nodeAnswers{}, err
	}
	for _, n := range nodes {
		if q.nodes[n] == nil {
			q.nodes[n] = &queryJob{}
		}
		p := q.nodes[n]
		again := p.id == 0 && (p.answer == nil || p.answer.Lives)
		pause := min(l.cfg.Settle/2<<min(p.times, 10), probeAgain*l.cfg.Settle)
		if p.times == 0 || again && time.Since(p.sent) > pause {
			if err := l.askNode(a, n, p); err != nil {
				return nodeAnswers{}, err
			}
		}
	}
	if !q.isTooEarly() { // one wake-up at a time, and the fewer the longer it takes
		pause := max(min(time.Since(q.began)/10, l.cfg.Settle), l.cfg.Settle/20, 10*time.Millisecond)
		q.due = time.Now().Add(pause)
		time.AfterFunc(pause, a.wakeUp)
	}
	return q.sumAnswers(nodes), nil
}

// sumAnswers is what nodes have said. What one has said before the script ended on another is asked
// again: its tasks may have begun there since.
func (q *lockQuery) sumAnswers(nodes []string) nodeAnswers {
	w := nodeAnswers{known: true}
	var over time.Time // when the script was known to have ended
	for _, n := range nodes {
		if p := q.nodes[n]; p.answer != nil && p.answer.Began {
			over = p.heard
		}
	}
	for _, n := range nodes {
		p := q.nodes[n]
		if p.answer != nil && !p.answer.Began && p.sent.Before(over) { // until then something could begin there
			p.answer, p.times = nil, 0
		}
		if p.answer == nil {
			w.lockless = w.lockless || p.bad
			w.known, w.why = false, n+" has not answered yet"
			if p.why != "" {
				w.why = n + ": " + p.why
			}
			continue
		}
		w.lives = w.lives || p.answer.Lives
		w.began = w.began || p.answer.Began
		if p.answer.Done {
			w.done, w.exit = true, p.answer.Exit
		}
	}
	if w.lives {
		w.known, w.done = true, false
	}
	return w
}

// askNode hands over the job that asks a node. The scheduler's own errors are no answer: it is
// handed over again later.
func (l *lockQuerier) askNode(a *attempt, node string, p *queryJob) error {
	p.times++
	p.id, p.sent, p.comment = 0, time.Now(), "cox-probe:"+l.cluster+":"+a.ref.String()+":"+randomWord()[:8]
	s := &site.Submission{
		Script: a.guard.Ask("COX_ATTEMPT=" + a.guard.Dir + ":" + a.guard.Ref.String()),
		Env:    []string{"PATH=/usr/bin:/bin"}, Dir: "/", User: a.user,
	}
	own := []string{
		"--job-name=cox-probe", "--comment=" + p.comment, "--nodelist=" + node, "--nodes=1", "--ntasks=1", "--mem=1M", "--time=5",
		"--output=/dev/null", "--no-requeue",
	}
	s.Options = append(append(slices.Clone(l.cfg.Options), l.cfg.sbatchSettings().OwnershipOptions(a.order.Job)...), own...)
	id, err := l.controller.submit(s)
	if err != nil && fault.KindOf(err) != fault.Unavailable { // its partition is gone, or its reservation
		s.Options = own
		id, err = l.controller.submit(s)
	}
	if fault.KindOf(err) == fault.Unavailable || l.controller.ctx.Err() != nil {
		return err
	}
	if p.id, p.why = id, ""; err != nil {
		p.why = "it cannot be asked: " + err.Error()
	}
	return nil
}

// collectAnswers looks at the jobs that ask.
func (l *lockQuerier) collectAnswers(q *lockQuery) error {
	var ids []uint32
	for _, p := range q.nodes {
		if p.id != 0 && (p.answer == nil || p.answer.Lives) {
			ids = append(ids, p.id)
		}
	}
	if len(ids) == 0 || time.Since(q.looked) < l.cfg.Settle/20 {
		return nil
	}
	q.looked = time.Now()
	slices.Sort(ids)
	ctx, cancel := l.controller.callContext()
	defer cancel()
	all, err := l.cfg.Site.Jobs(ctx, ids)
	if err != nil {
		return err
	}
	for _, p := range q.nodes {
		if p.id == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(j site.Job) bool { return j.ID == p.id && j.Comment == p.comment })
		switch {
		case i < 0: // slurmctld lost it, or knows it no more
			p.id, p.why = 0, "Slurm lost the job that asks it"
		case !all[i].State.Final():
			p.why = "the job that asks it waits (" + all[i].Reason + ")"
		default:
			p.readAnswer(&all[i])
		}
	}
	return nil
}

// readAnswer reads the answer of a job that has ended.
func (p *queryJob) readAnswer(j *site.Job) {
	p.id, p.bad = 0, j.State == site.Failed && j.Exit.Status == script.ExitLockless
	answer, ok := script.Read(j.Exit.Status)
	if !ok || j.State != site.Failed || j.Exit.Signal != 0 {
		if p.bad {
			p.why = "its directory of locks cannot be used"
			return
		}
		p.why = fmt.Sprintf("the job that asks it ended as %s with exit code %d", j.State, j.Exit.Status)
		return
	}
	p.answer, p.heard, p.why = &answer, time.Now(), ""
}

// cancel ends the jobs that ask and are not wanted any more.
func (l *lockQuerier) cancel(a *attempt) {
	if a.check.locks == nil || l.controller.ctx.Err() != nil {
		return
	}
	for _, p := range a.check.locks.nodes {
		if p.id == 0 {
			continue
		}
		ctx, cancel := l.controller.callContext()
		all, err := l.cfg.Site.Jobs(ctx, []uint32{p.id})
		if err == nil && slices.ContainsFunc(all, func(j site.Job) bool { return j.ID == p.id && j.Comment == p.comment && !j.State.Final() }) {
			err = l.owners.siteToChange(a.user).End(ctx, p.id)
		}
		cancel()
		if err != nil {
			l.cfg.Log.Warn("slurm: a job that asks a node is left", "attempt", a.ref.String(), "job", p.id, "error", err)
		}
	}
}
