package decide

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/service"
)

// goal is how many replicas of a revision are wanted.
type goal struct {
	revision uint32
	count    int
}

// allowances are how many replicas more may exist, and how many fewer be ready, than are wanted.
func (p *plan) allowances() (surge, unavailable int) {
	u := &p.spec.Update
	if u.InPlace {
		return 0, max(u.Unavailable, 1)
	}
	surge, unavailable = max(u.Surge, 0), max(u.Unavailable, 0)
	if surge == 0 && unavailable == 0 {
		surge = 1 // with neither nothing could ever be replaced
	}
	return surge, unavailable
}

// goals are the replicas wanted, the revision that is to serve in the end first.
func (p *plan) goals() []goal {
	r, want := p.doc.Rollout, p.doc.Want
	target := p.doc.Target()
	if r == nil || r.From == 0 || target == r.From {
		return []goal{{target, want}}
	}
	switch r.Phase {
	case service.Rolling:
		if share, ok := p.canaryShare(); ok {
			n := p.canaryReplicas(share)
			return []goal{{r.To, n}, {r.From, want - n}}
		}
	case service.Paused, service.Halted: // everything stays as it is
		fresh := min(want, p.countSlots(r.To))
		return []goal{{r.To, fresh}, {r.From, max(want-fresh, min(p.countSlots(r.From), want))}}
	}
	return []goal{{target, want}}
}

func (p *plan) countSlots(revision uint32) int { return len(p.keepers(revision)) }

// addSlots adds the replicas that are missing, as far as the surge allows.
func (p *plan) addSlots() {
	surge, _ := p.allowances()
	for _, g := range p.goals() {
		for len(p.keepers(g.revision)) < g.count && (planted.SurgeIgnored || p.countExisting() < p.doc.Want+surge) {
			p.newSlot(g.revision, p.isSpare(g.revision, nil))
		}
	}
}

// isSpare reports whether a replica of a revision is above the least that is wanted, so that it gets
// the QOS of those.
func (p *plan) isSpare(revision uint32, but *replica) bool {
	spec := &p.doc.Revision(revision).Spec
	if spec.SpareQOS == "" {
		return false
	}
	base := 0
	for _, r := range p.keepers(revision) {
		if !r.slot.Spare && r != but {
			base++
		}
	}
	return base >= spec.Replicas.Min
}

// removeSlots removes replicas that are not wanted, as far as enough others are ready.
func (p *plan) removeSlots() {
	surge, unavailable := p.allowances()
	for _, s := range p.surplus() {
		ready, least := p.countReady(), p.doc.Want-unavailable
		if s.moving && surge > 0 {
			least = p.doc.Want // its replacement comes first
		}
		switch {
		case s.isReady() && ready-1 < least && !planted.ReadyGivenUp:
			continue
		case s.isUnknown() && ready < least: // it may serve, and others that are unknown may not
			continue
		case !s.isReady() && s.replaced && len(p.replicas)-p.countUncertain()-least-p.countUnreadyKept() < 1:
			continue
		}
		p.removeSlot(s.replica)
	}
}

// surplus is a replica that is not wanted.
type surplus struct {
	*replica
	replaced bool // another one takes its place, so while too few are ready it may still be of use
}

// surplus lists the replicas that are not wanted: the ones that serve least first.
func (p *plan) surplus() (out []surplus) {
	goals := p.goals()
	for _, g := range goals {
		keepers := p.keepers(g.revision)
		slices.SortStableFunc(keepers, compareWorth)
		for _, r := range keepers[min(g.count, len(keepers)):] {
			out = append(out, surplus{r, g.revision != p.doc.Target()})
		}
	}
	first := p.doc.Rollout != nil && p.doc.Rollout.From == 0
	for _, r := range p.replicas {
		i := slices.IndexFunc(goals, func(g goal) bool { return g.revision == r.slot.Revision })
		switch {
		case i < 0:
			out = append(out, surplus{r, !first && !r.isUncertain()})
		case r.isUncertain() && goals[i].count == 0:
			out = append(out, surplus{r, false})
		case r.moving:
			out = append(out, surplus{r, goals[i].count > 0})
		}
	}
	slices.SortStableFunc(out, func(a, b surplus) int { return compareWorth(b.replica, a.replica) })
	return out
}

func (p *plan) countUncertain() (n int) {
	for _, r := range p.replicas {
		if r.isUncertain() {
			n++
		}
	}
	return n
}

// countUnreadyKept counts the replicas that are wanted and not ready.
func (p *plan) countUnreadyKept() (n int) {
	for _, g := range p.goals() {
		keepers := p.keepers(g.revision)
		slices.SortStableFunc(keepers, compareWorth)
		for _, r := range keepers[:min(g.count, len(keepers))] {
			if !r.isReady() {
				n++
			}
		}
	}
	return n
}

// compareWorth orders replicas by what they are worth, the best first: those that serve, then those
// that run, those that wait, those that are not submitted; of alike ones those that are not spare, then
// the lower index.
func compareWorth(a, b *replica) int {
	return cmp.Or(cmp.Compare(progress(b), progress(a)), cmp.Compare(spareRank(a), spareRank(b)), compareReplicas(a, b))
}

func progress(r *replica) int {
	switch {
	case r.isReady():
		return 4
	case r.isUnknown():
		return 3
	case r.job != nil && r.job.State.Holds() && !r.job.Ending:
		return 2
	case r.job != nil:
		return 1
	}
	return 0
}

func spareRank(r *replica) int {
	if r.slot.Spare {
		return 1
	}
	return 0
}
