package report

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Kind says what a report is about.
type Kind string

// The kinds.
const (
	Usage      Kind = "usage"      // hours asked for, allocated and used
	Waits      Kind = "waits"      // how long jobs waited, by their size
	Fairness   Kind = "fairness"   // shares against use
	Efficiency Kind = "efficiency" // what was held and not used
	Cost       Kind = "cost"       // by the site's price list, with budgets
)

// Kinds lists every kind.
func Kinds() []Kind { return []Kind{Usage, Waits, Fairness, Efficiency, Cost} }

// Key is what jobs are grouped by.
type Key string

// The keys.
const (
	ByAccount Key = "account"
	ByUser    Key = "user"
	ByQOS     Key = "qos"
	ByPool    Key = "pool"
	ByService Key = "service"
)

// Keys lists every key.
func Keys() []Key { return []Key{ByAccount, ByUser, ByQOS, ByPool, ByService} }

// ParseKind reads a kind; fault.Invalid: there is none of that name.
func ParseKind(text string) (Kind, error) {
	if k := Kind(text); slices.Contains(Kinds(), k) {
		return k, nil
	}
	return "", fault.New(fault.Invalid, "there is no report %q", text).Advise("reports: %s", joinWords(Kinds()))
}

// ParseKeys reads what a report groups by; nothing is ByAccount. fault.Invalid: a key is unknown, is
// there twice, or makes no sense for the kind.
func ParseKeys(kind Kind, texts []string) ([]Key, error) {
	if len(texts) == 0 {
		return []Key{ByAccount}, nil
	}
	var out []Key
	for _, text := range texts {
		k := Key(text)
		switch {
		case !slices.Contains(Keys(), k):
			return nil, fault.New(fault.Invalid, "a report cannot be by %q", text).Advise("write one or several of %s", joinWords(Keys()))
		case slices.Contains(out, k):
			return nil, fault.New(fault.Invalid, "%s is named twice in what a report is by", text).Advise("name each once")
		case kind == Fairness && k != ByAccount && k != ByUser:
			return nil, fault.New(fault.Invalid, "a report of fairness cannot be by %s: accounts and users alone have shares", text).Advise("write account or account,user")
		}
		out = append(out, k)
	}
	return out, nil
}

// Query says what a report is about.
type Query struct {
	Kind     Kind
	By       []Key
	From, To time.Time // the window: From inclusive, To exclusive
	Now      time.Time // until when what runs has run
	Scope    string    // whose jobs: ScopeAll, or ScopeOwn

	Prices  account.Prices // of Cost
	Shares  []Share        // of Fairness, in the order of the tree
	Devices map[string]int // of Efficiency by pool alone: devices that each pool has now; nil: not known
}

// Whose jobs a report counts.
const (
	ScopeAll = "all" // of everybody
	ScopeOwn = "own" // of the user who asked
)

// Share is how an account, or a user in one, stands.
type Share struct {
	Account, User string // User empty: the account itself
	Parent        string // the account above; empty above the root
	Depth         int
	Raw           int64    // as the rules say
	Norm          float64  // its part of what it and its siblings have
	UsedPart      float64  // its part of what everybody has used, decayed
	Factor        *float64 // fair-share factor of a user
}

func joinWords[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}
