package study

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Service is a service of a study.
type Service struct {
	Name string
	GPUs int // of a replica, at most a machine's
	Load Load
}

// How services are run. They are assumptions of the model.
const (
	Objective    = 10 * time.Second // a request that waits longer is a miss
	Patience     = time.Minute      // a request that would wait longer is not served
	ReplicaStart = 2 * time.Minute  // until a replica serves
	Utilization  = 0.85             // of the replicas, that their number aims at
	Cooldown     = 5 * time.Minute  // fewer replicas only after it
	loadOver     = 60 * time.Second // over which the load is measured
)

// replica is a copy of a service on a machine.
type replica struct {
	on     *host
	ready  time.Duration // when it serves
	leaves bool          // it ends once its replacement serves
}

// serving is a service while a study runs.
type serving struct {
	*Service
	replicas []*replica
	wanted   int
	pending  int // replicas without a place
	backlog  float64
	recent   []float64 // work of the last ticks
	asked    []asked   // numbers of replicas recommended within the cool-down

	requests, misses, worked float64
}

type asked struct {
	at time.Duration
	n  int
}

// servingGPUs is the GPUs that serve.
func (s *serving) servingGPUs(now time.Duration) (gpus float64) {
	for _, r := range s.replicas {
		if r.ready <= now {
			gpus += float64(s.GPUs)
		}
	}
	return gpus
}

// serveTick serves a tick. What comes before the counted time is not counted.
func (s *serving) serveTick(now time.Duration, counted bool) {
	i := int(now / Tick)
	n, work := s.Load.Count[i], s.Load.Work[i]
	gpus := s.servingGPUs(now)
	before := s.backlog
	most := math.Max(gpus, float64(s.GPUs)) * Patience.Seconds()
	taken := math.Min(work, math.Max(0, most-before+gpus*Tick.Seconds()))
	done := math.Min(before+taken, gpus*Tick.Seconds())
	s.backlog = before + taken - done
	if counted && n > 0 {
		wait := math.Inf(1)
		if gpus > 0 {
			wait = (before + s.backlog) / 2 / gpus
		}
		s.requests += n
		switch {
		case wait > Objective.Seconds():
			s.misses += n
		case work > 0:
			s.misses += n * (1 - taken/work)
		}
		s.worked += done
	}
	if s.recent = append(s.recent, work); len(s.recent) > int(loadOver/Tick) {
		s.recent = s.recent[1:]
	}
}

// scaleTick sets the number wanted, as Kubernetes' HorizontalPodAutoscaler does: up at once, down to the
// largest number recommended within the cool-down.
func (s *serving) scaleTick(now time.Duration) {
	sum := s.backlog
	for _, w := range s.recent {
		sum += w
	}
	n := max(1, int(math.Ceil(sum/(float64(len(s.recent))*Tick.Seconds())/Utilization/float64(s.GPUs))))
	s.asked = slices.DeleteFunc(s.asked, func(a asked) bool { return now-a.at >= Cooldown || a.n <= n })
	s.asked = append(s.asked, asked{now, n})
	s.wanted = s.asked[0].n
}

// host is a machine that runs replicas.
type host struct {
	*node
	free int
	runs map[*serving]int // replicas
}

// placeTick brings the replicas to the number wanted: new ones on the fullest machine that takes them,
// old ones away from the emptiest.
func (r *run) placeTick(s *serving) {
	s.replicas = slices.DeleteFunc(s.replicas, func(x *replica) bool {
		if !x.leaves || s.readyReplicas(r.now) < min(s.wanted, s.steadyReplicas()) {
			return false
		}
		r.endReplica(s, x)
		return true
	})
	for s.steadyReplicas() > s.wanted {
		at := -1
		for i, x := range s.replicas {
			if !x.leaves && (at < 0 || x.on.free > s.replicas[at].on.free) {
				at = i
			}
		}
		r.endReplica(s, s.replicas[at])
		s.replicas = slices.Delete(s.replicas, at, at+1)
	}
	s.pending = 0
	for s.steadyReplicas() < s.wanted {
		h := r.hostFor(s.GPUs)
		if h == nil {
			s.pending = s.wanted - s.steadyReplicas()
			return
		}
		h.free -= s.GPUs
		h.runs[s]++
		s.replicas = append(s.replicas, &replica{on: h, ready: r.now + ReplicaStart})
	}
}

// steadyReplicas is how many replicas there are that do not leave.
func (s *serving) steadyReplicas() (n int) {
	for _, x := range s.replicas {
		if !x.leaves {
			n++
		}
	}
	return n
}

// readyReplicas is how many of those serve.
func (s *serving) readyReplicas(now time.Duration) (n int) {
	for _, x := range s.replicas {
		if !x.leaves && x.ready <= now {
			n++
		}
	}
	return n
}

func (r *run) endReplica(s *serving, x *replica) {
	x.on.free += s.GPUs
	if x.on.runs[s]--; x.on.runs[s] == 0 {
		delete(x.on.runs, s)
	}
}

// hostFor is the fullest machine of the services that takes so many GPUs; nil: none.
func (r *run) hostFor(gpus int) *host {
	var fits []*host
	for _, h := range r.hosts {
		if h.owner == Services && h.to == "" && h.free >= gpus {
			fits = append(fits, h)
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return slices.MinFunc(fits, func(a, b *host) int { return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.name, b.name)) })
}
