package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// server is one process of the control plane.
type server struct {
	name     string
	control  *control.Control // nil: it is still opening
	services *services        // nil: it has none
	epoch    uint64           // 0: it does not lead yet
	gone     chan struct{}    // closed when it is killed
	dead     bool             // guarded by World.mu, written by the scheduler
	writing  int              // writes of the journal that are not answered; guarded by World.mu
	failed   bool             // its last write failed, or it has not looked at the world yet
	asked    int              // requests without an answer
}

type opening struct {
	s   *server
	ctl *control.Control
	err error
}

// openServer starts a server beside those that live.
func (w *World) openServer() {
	w.born++
	s := &server{name: fmt.Sprintf("s%02d", w.born), gone: make(chan struct{})}
	w.servers = append(w.servers, s)
	w.addStory("%s is started", s.name)
	cfg := control.Config{
		Store: &disk{Store: w.store, w: w, s: s},
		Pools: []pools.Pool{{Pool: fleet.Pool{Name: "main", Engine: "fake"}, Engine: &driver{w: w, s: s}, Elastic: true}}, Clock: wall{w, s}, Who: s.name,
		Grace: 10 * time.Second, Keep: 2 * time.Minute, Project: 5 * time.Second,
	}
	go func() {
		ctl, err := control.Open(context.Background(), cfg)
		w.mu.Lock()
		w.opened = append(w.opened, opening{s, ctl, err})
		w.mu.Unlock()
		if err == nil {
			<-ctl.Done()
			w.mu.Lock()
			w.ended = append(w.ended, s)
			w.mu.Unlock()
		}
	}()
}

// reopenServer starts a server after a while, if none lives then.
func (w *World) reopenServer(after time.Duration) {
	w.gateAfter(nil, "a server is started", after, func(string) {
		if len(w.servers) == 0 {
			w.openServer()
		}
	})
}

// newestLeader is the newest server that is open; nil: none is.
func (w *World) newestLeader() *server {
	var best *server
	for _, s := range w.servers {
		if s.control != nil && (best == nil || s.epoch > best.epoch) {
			best = s
		}
	}
	return best
}

// killServer ends a server as kill -9 does: nothing that it does from now on is seen by
// anybody. It runs in the scheduler's goroutine.
func (w *World) killServer(s *server, why string) {
	w.mu.Lock()
	if s.dead {
		w.mu.Unlock()
		return
	}
	s.dead = true
	close(s.gone)
	w.mu.Unlock()
	s.stopServices()
	w.noteDead(s, why)
	if s.control != nil {
		go func() { _ = s.control.Close() }()
	}
}

// noteDead notes that a server is no more.
func (w *World) noteDead(s *server, why string) {
	w.servers = slices.DeleteFunc(w.servers, func(o *server) bool { return o == s })
	w.machine.endWatches(s)
	if s.epoch > 0 {
		w.tellFact(model.Closed{Epoch: s.epoch, Why: why})
	}
	if len(w.servers) == 0 {
		d := w.dice.streamFor("restart", s.name)
		w.reopenServer(d.durationBetween(10*time.Millisecond, 3*time.Second))
	}
}

// collectFacts tells the model what goroutines left behind, in an order that does not
// depend on which of them was faster. It reports whether there was anything.
func (w *World) collectFacts() bool {
	w.mu.Lock()
	opened, ended, heard, later := w.opened, w.ended, w.heard, w.later
	w.opened, w.ended, w.heard, w.later = nil, nil, nil, nil
	w.mu.Unlock()
	slices.SortFunc(opened, func(a, b opening) int { return cmp.Compare(a.s.name, b.s.name) })
	for _, o := range opened {
		w.isOpen(o)
	}
	slices.SortFunc(heard, func(a, b answered) int { return cmp.Compare(a.n, b.n) })
	for _, a := range heard {
		w.noteAnswer(a)
	}
	for _, f := range later {
		w.tellFact(f)
	}
	slices.SortFunc(ended, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	for _, s := range ended {
		if s.dead {
			continue
		}
		s.stopServices()
		err := s.control.Close()
		w.addStory("%s has ended: %v", s.name, err)
		if fault.KindOf(err) != fault.Conflict {
			w.addBroken("%s ended by itself: %v", s.name, err)
		}
		w.mu.Lock()
		s.dead = true
		close(s.gone)
		w.mu.Unlock()
		w.noteDead(s, "it ended")
	}
	return len(opened)+len(ended)+len(heard)+len(later) > 0
}

func (w *World) isOpen(o opening) {
	s := o.s
	switch {
	case o.err == nil && s.dead:
		go func() { _ = o.ctl.Close() }()
	case o.err == nil:
		s.control = o.ctl
		w.addStory("%s is open", s.name)
		w.tellFact(model.Opened{Epoch: s.epoch})
		w.startServices(s)
	case s.dead:
	default:
		w.addStory("%s does not open: %v", s.name, o.err)
		if k := fault.KindOf(o.err); k != fault.Conflict && k != fault.Unavailable && !errors.Is(o.err, errIO) && !errors.Is(o.err, errSense) {
			w.addBroken("%s does not open: %v", s.name, o.err)
		}
		w.mu.Lock()
		s.dead = true
		close(s.gone)
		w.mu.Unlock()
		w.noteDead(s, "it did not open")
	}
}

// showPublished shows the model what the newest leader publishes.
func (w *World) showPublished(whole bool) {
	s := w.newestLeader()
	if s == nil {
		return
	}
	f := w.publishedBy(s, whole || w.out.Events%8 == 0)
	if v := w.model.Tell(f); len(v) > 0 {
		w.addStory("    %s", f)
		for _, b := range v {
			w.addStory("!!! %s", b)
		}
		w.out.Broken = append(w.out.Broken, v...)
	}
}

// publishedBy is what a server publishes now, with its nodes or without.
func (w *World) publishedBy(s *server, nodes bool) model.Sight {
	f := model.Sight{Epoch: s.epoch, Idle: w.isIdle(s)}
	s.control.Scan(query.Filter{}, func(v *state.View) bool {
		j := model.Job{
			ID: v.Job.ID, State: v.Job.State, Flags: v.Job.Flags, Attempt: v.Job.Attempt, Ref: v.Ref,
			Claims: v.Claims, Why: v.Why,
		}
		if a := v.Job.Array; a != nil {
			j.Array, j.Limit = a.Job, a.MaxRunning
		}
		f.Jobs = append(f.Jobs, j)
		return true
	})
	if !nodes {
		return f
	}
	f.Controllers = map[string]string{}
	for _, kind := range []string{controllerKind, service.ControllerKind} {
		for _, c := range s.control.Controllers(kind) {
			f.Controllers[c.Name] = string(c.Document)
		}
	}
	if list, _ := s.control.Shares(context.Background()); list != nil {
		f.Used = map[string]float64{}
		for i := range list {
			if list[i].User == "" {
				f.Used[list[i].Account] = list[i].Wall
			}
		}
	}
	views, err := s.control.NodeViews(context.Background())
	if err != nil {
		panic(err) // it asks nobody
	}
	for _, v := range views {
		f.Nodes = append(f.Nodes, model.Node{Name: v.Node.Name, State: v.Node.State, Used: v.Used, Held: v.Held})
	}
	return f
}

// isIdle reports whether a server has done everything that it was told.
func (w *World) isIdle(s *server) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.writing == 0 && !s.failed && s.asked == 0
}

// tearDown takes everything down, so that no goroutine is left in the bubble.
func (w *World) tearDown() {
	for _, s := range slices.Clone(w.servers) {
		w.mu.Lock()
		if !s.dead {
			s.dead = true
			close(s.gone)
		}
		w.mu.Unlock()
		s.stopServices()
		if s.control != nil {
			_ = s.control.Close()
		}
	}
	w.machine.close()
}

// errIO is what a disk says of a write that failed, or did not.
var errIO = errors.New("input/output error")
