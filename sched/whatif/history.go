package whatif

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// History knows how long jobs really took. Of each kind of job the last few are
// kept, by what tells most first: the same user, name and size; the same user and
// name; the same user and size; the same user; anybody. Digits in a name do not
// count: train-12 is like train-13. The last two only say which part of its limit a
// job uses.
//
// It is bounded, and not safe for concurrent use.
type History struct {
	kinds map[kind]*samples
	clock uint64
}

// kind is a set of jobs that are taken to be alike.
type kind struct{ user, name, size string }

const (
	samplesKept = 32
	kindsKept   = 8192
	enough      = 3 // samples of one kind before it is believed
	enoughOfAll = 20
	unknownRun  = time.Hour // of a job without a limit of which nothing is known
)

// samples are the last run times of a kind, and which part of the limit they were, in
// thousandths.
type samples struct {
	took []time.Duration
	part []int
	next int
	used uint64 // when it was last added to
}

// NewHistory returns a history of nothing.
func NewHistory() *History { return &History{kinds: map[kind]*samples{}} }

// Add notes a job that ended by itself or by its limit.
func (h *History) Add(name string, spec *job.Spec, took time.Duration) {
	if took <= 0 {
		return
	}
	for _, k := range kindsOf(name, spec) {
		h.add(k, took, spec.TimeLimit)
	}
}

func (h *History) add(k kind, took, limit time.Duration) {
	h.clock++
	s := h.kinds[k]
	if s == nil {
		if len(h.kinds) >= kindsKept {
			h.forgetOldest()
		}
		s = &samples{}
		h.kinds[k] = s
	}
	part := 1000
	if limit > 0 {
		part = int(min(took, limit) / max(limit/1000, 1))
	}
	if len(s.took) < samplesKept {
		s.took, s.part = append(s.took, took), append(s.part, part)
	} else {
		s.took[s.next], s.part[s.next] = took, part
	}
	s.next, s.used = (s.next+1)%samplesKept, h.clock
}

// forgetOldest drops the half of the kinds that were not added to for longest.
func (h *History) forgetOldest() {
	type aged struct {
		k    kind
		used uint64
	}
	all := make([]aged, 0, len(h.kinds))
	for k, s := range h.kinds {
		all = append(all, aged{k, s.used})
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Compare(a.used, b.used) })
	for _, a := range all[:len(all)/2] {
		delete(h.kinds, a.k)
	}
}

// Took estimates how long a job takes of which elapsed is over: the median of those
// like it that took longer, at most its limit. The name of the job is apart: jobs that
// are otherwise alike may share a specification.
func (h *History) Took(name string, spec *job.Spec, elapsed time.Duration) time.Duration {
	est := h.guessRunTime(name, spec, elapsed)
	if est <= elapsed { // it has outlived all that is known
		est = elapsed + max(elapsed/2, time.Minute)
	}
	if spec.TimeLimit > 0 {
		est = min(est, max(spec.TimeLimit, elapsed+1))
	}
	return est
}

func (h *History) guessRunTime(name string, spec *job.Spec, elapsed time.Duration) time.Duration {
	kinds := kindsOf(name, spec)
	for _, k := range kinds[:3] {
		if m, ok := h.medianOf(k, elapsed); ok {
			return m
		}
	}
	if spec.TimeLimit <= 0 {
		return max(unknownRun, 2*elapsed)
	}
	for i, k := range kinds[3:] {
		s := h.kinds[k]
		if need := []int{2 * enough, enoughOfAll}[i]; s == nil || len(s.part) < need {
			continue
		}
		parts := slices.Clone(s.part)
		slices.Sort(parts)
		if d := spec.TimeLimit / 1000 * time.Duration(parts[len(parts)/2]); d > elapsed {
			return d
		}
	}
	return spec.TimeLimit
}

// medianOf is that of the run times of a kind that are longer than elapsed; false if
// too few are known.
func (h *History) medianOf(k kind, elapsed time.Duration) (time.Duration, bool) {
	s := h.kinds[k]
	if s == nil || len(s.took) < enough {
		return 0, false
	}
	var longer []time.Duration
	for _, d := range s.took {
		if d > elapsed {
			longer = append(longer, d)
		}
	}
	if len(longer) == 0 {
		return 0, false
	}
	slices.Sort(longer)
	return longer[len(longer)/2], true
}

// Limits takes every job to use its whole limit, as the core does.
func Limits(_ job.ID, spec *job.Spec, elapsed time.Duration) time.Duration {
	if spec.TimeLimit > 0 {
		return max(spec.TimeLimit, elapsed+1)
	}
	return max(unknownRun, 2*elapsed) + 1
}

func kindsOf(name string, s *job.Spec) [5]kind {
	name = plainName(name)
	user, size := s.Owner.User, sizeOf(s)
	return [5]kind{{user, name, size}, {user, name, ""}, {user, "", size}, {user, "", ""}, {}}
}

// plainName is a name without its digits.
func plainName(name string) string {
	return "n" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// sizeOf is the part of a request that tells small jobs from large ones.
func sizeOf(s *job.Spec) string {
	nodes := 0
	for i := range s.Groups {
		nodes += max(s.Groups[i].Nodes.Min, 1)
	}
	return strconv.Itoa(nodes) + "x" + strconv.Itoa(devicesAsked(s)) + "@" + strconv.FormatInt(int64(s.TimeLimit/time.Minute), 10)
}

// Len is how many kinds of job are known.
func (h *History) Len() int { return len(h.kinds) }
