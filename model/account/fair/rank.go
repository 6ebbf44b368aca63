package fair

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Member is a node of the tree that is ranked: an account, or a user in one.
type Member struct {
	Parent int32 // smaller than its own number; -1: the root, which is member 0
	User   bool
	Shares account.Shares
	Usage  float64
}

// Standing is how a member stands among its siblings.
type Standing struct {
	Shares float64 // normalised: of what it and its siblings have; 1 at the root
	Usage  float64 // effective: of what the account above has used
	Level  float64 // Shares ∕ Usage; +Inf where nothing was used
	Factor float64 // of a user: his rank ∕ the number of users. 0 of an account
}

// Ties says what becomes of sibling accounts that are served alike.
type Ties bool

const (
	// Merged: their members are ranked together, as Slurm documents it.
	Merged Ties = false
	// Chained: one after the other; the first user of the later one has the rank of
	// the last user before him. This is what slurmctld does.
	Chained Ties = true
)

// Rank works out how everybody stands. Usage is compared in 1024ths of a second;
// less than one counts as none.
func Rank(members []Member, ties Ties) []Standing {
	r := ranking{members: members, ties: ties, out: make([]Standing, len(members))}
	r.measureLevels()
	r.rankMembers(r.below[0], false)
	return r.out
}

type ranking struct {
	members []Member
	ties    Ties
	below   [][]int32 // by account: who is compared there
	level   []ratio
	out     []Standing
	users   int64
	rank    int64 // of the last user
	next    int64 // of the next user who is not tied
}

// measureLevels finds out who is compared with whom, and the level of each.
func (r *ranking) measureLevels() {
	n := len(r.members)
	r.below, r.level = make([][]int32, n), make([]ratio, n)
	above := make([]int32, n) // the account where a member is compared
	used := make([]uint64, n)
	shares := make([]int64, n) // of all that are compared below an account
	peopled := r.accountsWithUsers()
	for i := range r.members {
		m := &r.members[i]
		used[i] = quantiseUsage(m.Usage)
		if i == 0 {
			continue
		}
		above[i] = m.Parent
		if p := m.Parent; p > 0 && r.members[p].Shares == account.ParentShares {
			above[i] = above[p] // its account has no shares of its own
		}
		if m.User {
			r.users++
		}
		if !m.User && m.Shares == account.ParentShares || !peopled[i] && r.ties == Merged {
			shares[above[i]] += ownShares(m)
			continue // nobody is ranked by it
		}
		r.below[above[i]] = append(r.below[above[i]], int32(i))
		shares[above[i]] += ownShares(m)
	}
	r.rank, r.next = r.users, r.users
	r.out[0] = Standing{Shares: 1, Usage: 1, Level: 1}
	for i := 1; i < n; i++ {
		a := above[i]
		r.level[i] = levelOf(&r.members[i], shares[a], used[i], used[a])
		r.out[i] = standingOf(&r.members[i], shares[a], r.members[a].Usage, r.level[i])
	}
}

// accountsWithUsers tells the accounts that have users somewhere below them.
func (r *ranking) accountsWithUsers() []bool {
	out := make([]bool, len(r.members))
	for i := len(r.members) - 1; i > 0; i-- {
		out[i] = out[i] || r.members[i].User
		if p := r.members[i].Parent; out[i] {
			out[p] = true
		}
	}
	return out
}

// ownShares is a member's shares among its siblings.
func ownShares(m *Member) int64 {
	switch m.Shares {
	case 0:
		return 1
	case account.ParentShares, account.NoShares:
		return 0
	}
	return max(int64(m.Shares), 0)
}

const grain = 1024

func quantiseUsage(usage float64) uint64 {
	q := float64(usage * grain)
	switch {
	case !(q >= 1):
		return 0
	case q >= 1<<62:
		return 1 << 62
	}
	return uint64(q)
}

func standingOf(m *Member, shares int64, usedAbove float64, level ratio) Standing {
	var s Standing
	if shares > 0 {
		s.Shares = float64(ownShares(m)) / float64(shares)
	}
	if usedAbove > 0 {
		s.Usage = min(m.Usage/usedAbove, 1)
	}
	switch {
	case level.infinite:
		s.Level = math.Inf(1)
	case s.Usage > 0:
		s.Level = s.Shares / s.Usage
	}
	return s
}

// rankMembers ranks the members of a list, best served last. tied: the first user has the
// rank of the one before him.
func (r *ranking) rankMembers(list []int32, tied bool) {
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(r.level[b].compareTo(r.level[a]), cmp.Compare(r.usersFirst(a), r.usersFirst(b)), cmp.Compare(a, b))
	})
	for i := 0; i < len(list); i++ {
		m := list[i]
		if i > 0 {
			tied = r.level[m].compareTo(r.level[list[i-1]]) == 0
		}
		if r.members[m].User {
			if !tied {
				r.rank = r.next
			}
			r.next--
			r.out[m].Factor = float64(r.rank) / float64(r.users)
			continue
		}
		children := slices.Clone(r.below[m])
		for r.ties == Merged && i+1 < len(list) && r.level[list[i+1]].compareTo(r.level[m]) == 0 {
			i++
			children = append(children, r.below[list[i]]...)
		}
		r.rankMembers(children, tied)
	}
}

// usersFirst puts users before accounts.
func (r *ranking) usersFirst(m int32) int {
	if r.members[m].User {
		return 0
	}
	return 1
}

// ratio is a level as an exact fraction of 128-bit numbers, so that whether two are
// tied does not depend on rounding.
type ratio struct {
	infinite bool
	num, den wide
}

type wide struct{ hi, lo uint64 }

func multiplyWide(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

// levelOf is (own ∕ all shares) ∕ (used ∕ used above).
func levelOf(m *Member, shares int64, used, above uint64) ratio {
	s := ownShares(m)
	switch {
	case m.User && m.Shares == account.ParentShares:
		return ratio{infinite: true}
	case s == 0:
		return ratio{den: wide{lo: 1}}
	case used == 0 || above == 0:
		return ratio{infinite: true}
	}
	return ratio{num: multiplyWide(uint64(s), above), den: multiplyWide(uint64(shares), used)}
}

func (a ratio) compareTo(b ratio) int {
	switch {
	case a.infinite && b.infinite:
		return 0
	case a.infinite:
		return 1
	case b.infinite:
		return -1
	}
	x, y := product256(a.num, b.den), product256(b.num, a.den)
	return slices.Compare(x[:], y[:])
}

// product256 is a·b in 256 bits, the highest word first.
func product256(a, b wide) [4]uint64 {
	h1, l1 := bits.Mul64(a.lo, b.lo)
	h2, l2 := bits.Mul64(a.lo, b.hi)
	h3, l3 := bits.Mul64(a.hi, b.lo)
	h4, l4 := bits.Mul64(a.hi, b.hi)
	w1, c1 := bits.Add64(h1, l2, 0)
	w1, c2 := bits.Add64(w1, l3, 0)
	w2, d1 := bits.Add64(h2, h3, c1)
	w2, d2 := bits.Add64(w2, l4, c2)
	return [4]uint64{h4 + d1 + d2, w2, w1, l1}
}
