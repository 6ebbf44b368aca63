package fair

import (
	"math"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Rule says how a user's factor comes of shares and usage.
type Rule uint8

// The rules.
const (
	FairTree  Rule = iota // Rank
	Classic               // PriorityFlags=NO_FAIR_TREE
	Oblivious             // PriorityFlags=DEPTH_OBLIVIOUS
)

// Formula works out how everybody stands by Slurm's rules from before Fair Tree. The
// factor of an account or a user is 2 to the power of minus the usage that counts as a
// part of the shares. Shares are parts of the whole tree: those of an account times the
// part among its siblings. The usage that counts is a member's part of all usage; of
// what its account used beyond that it bears as much as it has shares there. With
// Oblivious that depends less on how deep the tree is: see obliviousUsage.
func Formula(members []Member, rule Rule) []Standing {
	out := make([]Standing, len(members))
	above, all := comparisonLevels(members)
	for i := range members {
		m, s := &members[i], &out[i]
		if i == 0 {
			*s = Standing{Shares: 1, Usage: 1, Level: 1, Factor: 0.5}
			continue
		}
		p := above[i]
		used := 0.0
		if whole := members[0].Usage; whole > 0 {
			used = min(m.Usage/whole, 1)
		}
		switch {
		case m.Shares == account.ParentShares && m.User:
			s.Shares, s.Usage = out[p].Shares, out[p].Usage
		case m.Shares == account.ParentShares:
			s.Shares, s.Usage = out[p].Shares, used
		default:
			part := 0.0
			if all[p] > 0 {
				part = float64(ownShares(m)) / float64(all[p])
			}
			s.Shares = float64(out[p].Shares * part)
			switch {
			case p == 0:
				s.Usage = used
			case rule == Oblivious:
				s.Usage = obliviousUsage(m, &members[p], &out[p], part)
			default:
				s.Usage = used + float64((out[p].Usage-used)*part)
			}
		}
		s.Level = math.Inf(1)
		if s.Usage > 0 {
			s.Level = s.Shares / s.Usage
		}
		if s.Shares > 0 {
			s.Factor = halfToThe(s.Usage / s.Shares)
		}
	}
	return out
}

// comparisonLevels are the account with whose members each is compared, and the shares of all
// that are compared in one.
func comparisonLevels(members []Member) (above []int32, all []int64) {
	above, all = make([]int32, len(members)), make([]int64, len(members))
	for i := 1; i < len(members); i++ {
		p := members[i].Parent
		for p > 0 && members[p].Shares == account.ParentShares {
			p = members[p].Parent
		}
		above[i] = p
		all[p] += ownShares(&members[i])
	}
	return above, all
}

// obliviousUsage is the usage that counts with Oblivious: how over-served the account is, times
// how over-served the member is within it, to a power that is smaller the further the
// account is from its share if one of the two is over-served and the other is not.
func obliviousUsage(m, account *Member, of *Standing, part float64) float64 {
	if of.Shares <= 0 || account.Usage <= 0 || part <= 0 {
		return 0
	}
	whole, within := of.Usage/of.Shares, m.Usage/account.Usage/part
	if whole <= 0 || within <= 0 {
		return 0
	}
	k, x, y := 1.0, logOf(whole), logOf(within)
	if x*y < 0 {
		x = float64(5 * x)
		k = 1 / (1 + float64(x*x))
	}
	return float64(float64(whole*expOf(float64(k*y))) * float64(of.Shares*part))
}

// halfToThe is 2 to the power of −x, to 40 digits behind the binary point.
func halfToThe(x float64) float64 {
	if x > 64 {
		return 0
	}
	return math.Round(expOf(float64(-x*math.Ln2))*(1<<40)) / (1 << 40)
}

// expOf is e to the power of x, by repeated products, so that it is the same on
// every machine, which math.Exp is not. |x| is at most some hundred.
func expOf(x float64) float64 {
	n := 0
	for ; math.Abs(x) > 1.0/16; n++ {
		x /= 2
	}
	sum, term := 1.0, 1.0
	for i := 1; i <= 12; i++ {
		term = float64(term * x / float64(i))
		sum += term
	}
	for range n {
		sum = float64(sum * sum)
	}
	return sum
}

// logOf is the natural one of x > 0, by the series of its area tangent.
func logOf(x float64) float64 {
	m, e := math.Frexp(x) // m in [½, 1)
	z := (m - 0.75) / (m + 0.75)
	square, power, sum := float64(z*z), z, 0.0
	for i := 1; i < 40; i += 2 {
		sum += float64(power / float64(i))
		power = float64(power * square)
	}
	const lnThreeQuarters = -0.28768207245178092743921900599382743
	return float64(2*sum) + lnThreeQuarters + float64(float64(e)*math.Ln2)
}
