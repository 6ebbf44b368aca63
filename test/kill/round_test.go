package killtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// Rounds in all, side by side, and submissions in each.
const (
	shortRounds = 40
	longRounds  = 500
	abreast     = 2
	perRound    = 22
)

func TestRounds(t *testing.T) {
	rounds := shortRounds
	if long {
		rounds = longRounds
	}
	t.Logf("seed %d (COX_KILL_SEED)", seed)
	for lane := range abreast {
		t.Run(fmt.Sprintf("lane%d", lane), func(t *testing.T) {
			t.Parallel()
			runLane(t, uint64(lane), rounds/abreast)
		})
	}
}

// runLane runs rounds one after the other on one server.
func runLane(t *testing.T, lane uint64, rounds int) {
	dir := t.TempDir()
	s := newServer(t, filepath.Join(dir, "state"), "--nodes", "4", "--gpus-per-node", "2")
	for i := range rounds {
		r := &round{
			t: t, s: s, h: newHarm(), dir: filepath.Join(dir, fmt.Sprintf("r%d", i)), number: i,
			rnd: rand.New(rand.NewPCG(seed, lane<<32|uint64(i))),
		}
		r.run()
		if t.Failed() {
			t.Fatalf("seed %d, lane %d, round %d: %s", seed, lane, i, r.story)
		}
		_ = os.RemoveAll(r.dir)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	got, err := sqlite.Verify(t.Context(), s.state)
	if err != nil {
		t.Errorf("the store: %v", err)
	}
	t.Logf("lane %d verified: %+v", lane, got)
}

// round is one round of work and outrages.
type round struct {
	t       *testing.T
	s       *server
	h       *harm
	dir     string
	number  int
	rnd     *rand.Rand
	works   []*work
	story   string
	began   time.Time
	from    time.Time     // of the history that is asked for
	moved   bool          // the clock is no help
	full    bool          // refusals for want of room are no defect
	release chan struct{} // closed when held work may be released; nil: at any time
	// outrage is what happens; nil: what the seed chooses.
	outrage func(*rand.Rand)
	seen    int // devices that were compared
	again   int // attempts after the first
}

func (r *round) prefix() string { return fmt.Sprintf("r%d-", r.number) }

func (r *round) run() {
	r.began = time.Now()
	if !r.moved {
		r.from = r.began
	}
	for _, d := range []string{"lock", "said", "out"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.works == nil {
		r.works = draw(r.rnd, r.prefix(), perRound)
	}
	for _, w := range r.works {
		w.wait, w.gap = ms(r.rnd.IntN(500)), ms(r.rnd.IntN(60))
	}
	o := outrages[r.rnd.IntN(len(outrages))]
	at, harmRnd := ms(r.rnd.IntN(700)), rand.New(rand.NewPCG(r.rnd.Uint64(), 0))
	look := ms(r.rnd.IntN(700))
	r.story = fmt.Sprintf("at %s: %s", at, o.name)
	if r.outrage != nil {
		r.story = fmt.Sprintf("at %s: %s", at, r.t.Name())
	}

	var all sync.WaitGroup
	all.Go(func() {
		time.Sleep(at) // the moment is what is tried
		if r.outrage != nil {
			r.outrage(harmRnd)
			return
		}
		o.do(r.s, r.h, harmRnd)
	})
	all.Go(func() { // what happens to the server's view between the acts
		time.Sleep(look)
		r.watch()
	})
	r.submit()
	all.Wait()
	r.s.ready()
	r.settle()
	r.judge()
	accepted, silent := 0, 0
	for _, w := range r.works {
		if w.acked {
			accepted++
		} else {
			silent++
		}
	}
	r.t.Logf("round %d, %s: %d accepted, %d without an answer, %d attempts harmed, %d made again, %d devices seen, %d descriptors, %.1f s",
		r.number, r.story, accepted, silent, len(r.h.refs), r.again, r.seen, r.s.descriptors(), time.Since(r.began).Seconds())
}

// submit hands everything in from a few clients, each of which waits for a server
// that is down before it goes on with its next piece. A chain belongs to one client.
func (r *round) submit() {
	var units [][]*work
	for _, w := range r.works {
		if w.after == nil {
			units = append(units, nil)
		}
		units[len(units)-1] = append(units[len(units)-1], w)
	}
	next := make(chan []*work)
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for unit := range next {
				for _, w := range unit {
					if w.after != nil && !w.after.acked {
						continue // nothing to depend on
					}
					r.hand(&clients, w)
				}
			}
		})
	}
	for _, u := range units {
		next <- u
		time.Sleep(u[0].gap) // so that something happens amid submissions
	}
	close(next)
	clients.Wait()
}

func (r *round) hand(all *sync.WaitGroup, w *work) {
	w.sent = true
	switch w.submit(r.t.Context(), r.s, r.dir); {
	case w.acked && (w.cancel || w.held):
		all.Go(func() { r.meddle(w) })
	case !w.acked && r.full && fault.KindOf(w.err) == fault.Exhausted:
	case !w.acked && fault.KindOf(w.err) != fault.Unavailable:
		r.t.Errorf("%s is refused: %v", w.name, w.err)
	case !w.acked:
		r.wait()
	}
}

// meddle cancels or releases a job, and asks again until there is an answer.
func (r *round) meddle(w *work) {
	if r.release != nil {
		<-r.release
	}
	time.Sleep(w.wait) // the moment is what is tried
	ch := &api.Change{Verb: api.VerbRelease, Select: api.Select{IDs: []string{fmt.Sprint(w.id)}}}
	if w.cancel {
		ch.Verb, ch.Grace = api.VerbCancel, &w.grace
	}
	for end := time.Now().Add(patience); ; {
		_, err := r.s.c.Change(r.t.Context(), ch)
		switch kind := fault.KindOf(err); {
		case err == nil || kind != fault.Unavailable && kind != fault.Exhausted:
			return // what came of it is judged at the end
		case kind == fault.Exhausted:
			time.Sleep(pollEvery)
		}
		if time.Now().After(end) {
			r.t.Errorf("%s %s: no answer: %v", ch.Verb, w.name, err)
			return
		}
		if !r.wait() {
			return
		}
	}
}

// wait waits until the server answers again.
func (r *round) wait() bool {
	err := r.s.answers()
	if err != nil {
		r.t.Error(err)
	}
	return err == nil
}

// settle waits until nothing of the round is alive.
func (r *round) settle() {
	for end := time.Now().Add(patience); ; time.Sleep(2 * pollEvery) {
		live, err := r.live()
		r.releaseUnanswered()
		if err == nil && len(live) == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Errorf("after %s: %v live: %+v", patience, err, live)
			return
		}
	}
}

// releaseUnanswered lets work run that was submitted held, if nobody knows whether it
// was: the server may have it.
func (r *round) releaseUnanswered() {
	for _, w := range r.works {
		if w.sent && w.held && !w.acked {
			_, _ = r.s.c.Change(r.t.Context(), &api.Change{Verb: api.VerbRelease, Select: api.Select{Names: []string{w.name}}})
		}
	}
}

// jobsNow are the jobs that the server has in memory, as far as it answers.
func (r *round) jobsNow() (out []api.Job) {
	for j, err := range r.s.c.Jobs(r.t.Context(), client.Query{Select: api.Select{States: []string{"all"}}}) {
		if err != nil {
			return nil
		}
		out = append(out, j)
	}
	return out
}

// live are the jobs that have not ended, as a person reads them.
func (r *round) live() (out []string, err error) {
	for j, err := range r.s.c.Jobs(r.t.Context(), client.Query{}) {
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("%s %s %s %v attempt %d: %s", j.Name, j.Spec.Name, j.State, j.Flags, j.Attempt, j.Message)
		if j.Why != nil {
			text += fmt.Sprintf(" %+v", *j.Why)
		}
		out = append(out, text)
	}
	return out, nil
}
