package killtest

import (
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// harm is what was done to supervisors: what they had may be lost.
type harm struct {
	mu   sync.Mutex
	refs map[engine.Ref]bool
	pids map[int]bool // of supervisors
	jobs map[job.ID]bool
}

func newHarm() *harm {
	return &harm{refs: map[engine.Ref]bool{}, pids: map[int]bool{}, jobs: map[job.ID]bool{}}
}

// note is told of supervisors that stand still.
func (h *harm) note(state string, sups []supervisor) {
	jobs := launched(state)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range sups {
		h.pids[s.pid] = true
		if ref, ok := s.sits(); ok {
			h.refs[ref] = true
			h.jobs[jobs[ref]] = true
		}
	}
}

// hit stops some supervisors, notes what they have, and returns those that stand.
func (h *harm) hit(s *server, rnd *rand.Rand, most int) []supervisor {
	all := supervisors(s.state)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out []supervisor
	for _, v := range all[:min(most, len(all))] {
		if freeze(v.pid) {
			out = append(out, v)
		}
	}
	h.note(s.state, out)
	return out
}

func signalAll(sups []supervisor, sig unix.Signal) {
	for _, v := range sups {
		_ = unix.Kill(v.pid, sig) // it may be gone
	}
}

const everyone = 1 << 20

// outrages are what is done to a server and its supervisors. Each leaves a server that
// runs, or has been started.
var outrages = []struct {
	name string
	do   func(s *server, h *harm, rnd *rand.Rand)
}{
	{"the server is killed", func(s *server, _ *harm, _ *rand.Rand) {
		s.kill()
		s.start()
	}},
	{"the server is killed again and again", func(s *server, _ *harm, rnd *rand.Rand) {
		for range 3 {
			s.kill()
			s.start()
			time.Sleep(ms(rnd.IntN(150))) // any moment will do
		}
	}},
	{"a supervisor is killed", func(s *server, h *harm, rnd *rand.Rand) {
		signalAll(h.hit(s, rnd, 1), unix.SIGKILL)
	}},
	{"all supervisors are killed", func(s *server, h *harm, rnd *rand.Rand) {
		signalAll(h.hit(s, rnd, everyone), unix.SIGKILL)
	}},
	{"the server and then supervisors are killed", func(s *server, h *harm, rnd *rand.Rand) {
		s.kill()
		signalAll(h.hit(s, rnd, 2), unix.SIGKILL)
		s.start()
	}},
	{"the server and all supervisors are killed at once", func(s *server, h *harm, rnd *rand.Rand) {
		freeze(s.pid())
		sups := h.hit(s, rnd, everyone)
		signalAll(sups, unix.SIGKILL)
		s.kill()
		s.start()
	}},
	{"the server is stopped", func(s *server, _ *harm, rnd *rand.Rand) {
		freeze(s.pid())
		time.Sleep(stopFor(rnd))
		s.signal(unix.SIGCONT)
	}},
	{"supervisors are stopped", func(s *server, h *harm, rnd *rand.Rand) {
		sups := h.hit(s, rnd, 2)
		time.Sleep(stopFor(rnd))
		signalAll(sups, unix.SIGCONT)
	}},
	{"supervisors are killed while the server is stopped", func(s *server, h *harm, rnd *rand.Rand) {
		freeze(s.pid())
		signalAll(h.hit(s, rnd, 2), unix.SIGKILL)
		time.Sleep(ms(rnd.IntN(200)))
		s.signal(unix.SIGCONT)
	}},
	{"the server is killed while supervisors are stopped", func(s *server, h *harm, rnd *rand.Rand) {
		sups := h.hit(s, rnd, 2)
		s.kill()
		s.start()
		time.Sleep(ms(rnd.IntN(1000)))
		signalAll(sups, unix.SIGCONT)
	}},
}

// stopFor is how long something stands still: the length is what is tried.
func stopFor(rnd *rand.Rand) time.Duration {
	if long {
		return time.Minute
	}
	return ms(500 + rnd.IntN(2500))
}
