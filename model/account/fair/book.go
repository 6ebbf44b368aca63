package fair

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Usage is what an association or a QOS has used, decayed.
type Usage struct {
	Raw  float64   // billing units × seconds
	Wall float64   // seconds
	TRES []float64 // amounts × seconds, by the names of the book
}

// Use is what a job uses as long as it runs, and on whose account.
type Use struct {
	Assoc   int32     // as Join gave it; -1: nobody's
	QOS     int32     // its QOS by number in the policy; -1: none
	PartQOS int32     // its partition's
	Billing float64   // billing units
	Factor  float64   // of its QOS
	Part    bool      // of a job whose time is counted with the rest of it
	TRES    []float64 // amounts, by the names of the book; short ones are zero further on
}

// Book is the usage of a site.
//
// Invariant: an account has used what its users and the accounts below it were
// charged since it is there, decayed alike.
type Book struct {
	Names []string // what is counted beside billing, in ascending order

	tree    *account.Tree
	remains float64 // of usage, after a second
	period  string  // after which usage begins anew
	ties    Ties
	rule    Rule

	assoc   []Usage // by number of the tree; then guests
	guests  []guest
	joined  map[account.Ref]int32
	qos     []Usage
	lasting []bool // QOS whose usage does not decay
	names   []string

	at      int64 // second up to which it has decayed; 0: time has not begun
	charged int64 // second up to which running jobs are charged
	before  int64 // second up to which they were before that
	from    int64 // second before which nobody was charged; 0: not known
	reset   int64 // second at which usage begins anew; 0: never
}

// guest is a user of an account that is open to everybody.
type guest struct {
	account.Ref
	parent int32
}

// NewBook returns an empty book for a policy. names is what limits count; what is
// told of others is passed over.
func NewBook(p *account.Policy, tree *account.Tree, names []string) *Book {
	b := &Book{
		Names: names, tree: tree, remains: Remains(time.Duration(p.FairShare.HalfLife)), period: p.FairShare.Reset,
		ties: Ties(p.FairShare.Ties == "slurm"), joined: map[account.Ref]int32{},
		assoc: make([]Usage, len(tree.Nodes)), qos: make([]Usage, len(p.QOS)), lasting: make([]bool, len(p.QOS)),
	}
	switch flags := p.Priority.Flags; {
	case slices.Contains(flags, "depth_oblivious"):
		b.rule = Oblivious
	case slices.Contains(flags, "no_fair_tree"):
		b.rule = Classic
	}
	for i := range b.assoc {
		b.assoc[i].TRES = make([]float64, len(names))
	}
	for i := range p.QOS {
		b.names = append(b.names, p.QOS[i].Name)
		b.qos[i].TRES = make([]float64, len(names))
		b.lasting[i] = slices.Contains(p.QOS[i].Flags, "no_decay")
	}
	return b
}

// Join returns the number under which a user's jobs with an account are charged. In
// an account that is open to everybody he gets one of his own. -1: he has none.
func (b *Book) Join(name, user string) int32 {
	i := b.tree.Of(name, user)
	if i < 0 || b.tree.Nodes[i].Of != nil || user == "" {
		return i
	}
	ref := account.Ref{Account: b.tree.Nodes[i].Account, User: user}
	if n, ok := b.joined[ref]; ok {
		return n
	}
	n := int32(len(b.assoc))
	b.joined[ref] = n
	b.guests = append(b.guests, guest{ref, i})
	b.assoc = append(b.assoc, Usage{TRES: make([]float64, len(b.Names))})
	return n
}

// Find is Join that makes no new numbers: a guest who has none yet is found as the
// account.
func (b *Book) Find(name, user string) int32 {
	i := b.tree.Of(name, user)
	if i < 0 || b.tree.Nodes[i].Of != nil {
		return i
	}
	if n, ok := b.joined[account.Ref{Account: b.tree.Nodes[i].Account, User: user}]; ok {
		return n
	}
	return i
}

// QOS returns the number of a QOS; -1: there is none of that name.
func (b *Book) QOS(name string) int32 { return int32(slices.Index(b.names, name)) }

// Priority is the priority of an association: its own, or that of the nearest account
// above that has one.
func (b *Book) Priority(i int32) uint32 {
	for ; i >= 0; i = b.Parent(i) {
		if int(i) < len(b.tree.Nodes) && b.tree.Nodes[i].Priority != 0 {
			return b.tree.Nodes[i].Priority
		}
	}
	return 0
}

// DefaultQOS is the QOS of an association's jobs that name none: of the nearest
// account that says one; "": nobody does.
func (b *Book) DefaultQOS(i int32) string {
	for ; i >= 0; i = b.Parent(i) {
		if int(i) < len(b.tree.Nodes) && b.tree.Nodes[i].Source != nil && b.tree.Nodes[i].Source.Default != "" {
			return b.tree.Nodes[i].Source.Default
		}
	}
	return ""
}

// Parent is the account above a number; -1 above the root.
func (b *Book) Parent(i int32) int32 {
	if n := len(b.tree.Nodes); int(i) >= n {
		return b.guests[int(i)-n].parent
	}
	return b.tree.Nodes[i].Parent
}

// Ref names a number.
func (b *Book) Ref(i int32) account.Ref {
	if n := len(b.tree.Nodes); int(i) >= n {
		return b.guests[int(i)-n].Ref
	}
	return b.tree.Nodes[i].Ref
}

// Guest reports whether a number is a user whom the policy does not name.
func (b *Book) Guest(i int32) bool { return int(i) >= len(b.tree.Nodes) }

// Shares is what the policy gives a number among its siblings.
func (b *Book) Shares(i int32) account.Shares {
	if b.Guest(i) {
		return 1
	}
	return max(b.tree.Nodes[i].Shares, account.NoShares)
}

// Len is the number of accounts and users.
func (b *Book) Len() int { return len(b.assoc) }

// At is the second up to which usage has decayed.
func (b *Book) At() int64 { return b.at }

// Charged is up to which second running jobs were charged before they were last, and the
// second before which nobody was charged; 0: not known.
func (b *Book) Charged() (before, from int64) { return b.before, b.from }

// SetCharged says that again, after Restore.
func (b *Book) SetCharged(before, from int64) { b.before, b.from = min(before, b.charged), from }

// Reset is the second at which usage begins anew; 0: never.
func (b *Book) Reset() int64 { return b.reset }

// Used is what an account or user has used. It must not be written to.
func (b *Book) Used(i int32) *Usage { return &b.assoc[i] }

// UsedQOS is what the jobs of a QOS have used.
func (b *Book) UsedQOS(i int32) *Usage { return &b.qos[i] }

// Advance lets time pass up to a second: what was used decays, or begins anew. Then
// every running job has to be charged up to it, and Settle called. The first call
// begins time.
func (b *Book) Advance(now int64) {
	if b.at == 0 {
		b.beginAt(now)
		b.from = now
	}
	if now <= b.at {
		return
	}
	part := powerOf(b.remains, now-b.at)
	if b.reset != 0 && now >= b.reset {
		part = 0
		b.charged = max(b.charged, b.reset)
		b.reset = NextReset(b.period, now)
	}
	for i := range b.assoc {
		b.assoc[i].decayBy(part)
	}
	for i := range b.qos {
		if part == 0 || !b.lasting[i] {
			b.qos[i].decayBy(part)
		}
	}
	b.at = now
}

func (b *Book) beginAt(now int64) {
	b.at, b.charged, b.before, b.from = now, now, now, 0
	b.reset = NextReset(b.period, now)
}

func (u *Usage) decayBy(part float64) {
	if part == 0 {
		u.Raw, u.Wall = 0, 0
		clear(u.TRES)
		return
	}
	u.Raw, u.Wall = decayedUsage(u.Raw, part), decayedUsage(u.Wall, part)
	for i := range u.TRES {
		u.TRES[i] = decayedUsage(u.TRES[i], part)
	}
}

// Settle notes that all running jobs are charged up to where time stands.
func (b *Book) Settle() {
	if b.at > b.charged {
		b.before, b.charged = b.charged, b.at
	}
}

// Charge adds what a job used that began at a second and ran up to another one, as
// far as it was not charged before.
func (b *Book) Charge(u *Use, began, to int64) {
	b.chargeSpan(u, b.spanUntilNow(to-max(began, b.charged)))
}

// Late adds what a job used that began at a second, up to where running jobs are charged:
// nobody knew then that it ran. It is charged as it would have been then, so that Return takes
// back no more than that. What it used before usage began anew counts no more, nor does what it
// used before anybody was charged. It reports whether that was anything.
func (b *Book) Late(u *Use, began int64) bool {
	s := b.lateSpan(began)
	b.chargeSpan(u, s)
	return s != span{}
}

// Return takes back what a job, which began at a second, was charged for beyond the one at
// which it ended in truth: nobody knew then that it did. It reports whether that was
// anything.
func (b *Book) Return(u *Use, began, ended int64) bool {
	s := b.overchargedSpan(began, ended)
	b.chargeSpan(u, s)
	return s != span{}
}

// sinceReset is a second, or the one at which usage last began anew if that was later.
func (b *Book) sinceReset(second int64) int64 { return max(second, LastReset(b.period, b.at)) }

// span is a time in which a job runs; less than none is taken back.
type span struct {
	seconds int64
	weighed float64 // as they count where time stands
}

// spanUntilNow is so many seconds up to where time stands; none are nothing.
func (b *Book) spanUntilNow(seconds int64) span {
	if b.at == 0 || seconds <= 0 {
		return span{}
	}
	return span{seconds, decayedSeconds(b.remains, seconds)}
}

// lateSpan is the time from a second up to where running jobs are charged, for one that began then
// and was not.
func (b *Book) lateSpan(began int64) span {
	if b.at == 0 {
		return span{}
	}
	began = max(b.sinceReset(began), b.from)
	return b.spanInPieces(began, began, max(b.charged-b.before, 1)) // short ones count most: Return takes back no more
}

// overchargedSpan is the time between two seconds for which a job was charged that had ended at the
// second one; less than none.
func (b *Book) overchargedSpan(began, ended int64) span {
	began, ended = max(b.sinceReset(began), b.from), max(b.sinceReset(ended), b.from)
	s := b.spanInPieces(min(began, ended), ended, b.charged-b.before)
	return span{-s.seconds, -s.weighed}
}

// spanInPieces is the time from a second up to where running jobs are charged, of a job that is
// charged since began, in intervals of so many seconds: each counts as it has decayed since it
// began. What was charged last is known to have been so from Book.before on; what was charged
// before that is taken to have been in intervals as long as the last one. 0 and less: in one.
func (b *Book) spanInPieces(began, from, seconds int64) (s span) {
	over := b.charged - from
	if over <= 0 {
		return span{}
	}
	if seconds <= 0 {
		return span{over, float64(float64(over) * powerOf(b.remains, over))}
	}
	full := over / seconds
	part := over - full*seconds // of the interval in which it begins
	first := min(b.charged-began, (full+1)*seconds)
	return span{over, float64(float64(seconds)*powerSum(powerOf(b.remains, seconds), full)) + float64(float64(part)*powerOf(b.remains, first))}
}

func (b *Book) chargeSpan(u *Use, s span) {
	if s == (span{}) {
		return
	}
	for i := u.Assoc; i >= 0; i = b.Parent(i) {
		b.assoc[i].addUse(u, s.weighed)
	}
	for i, q := range [2]int32{u.QOS, u.PartQOS} {
		switch {
		case q < 0 || i == 1 && q == u.QOS:
		case b.lasting[q]:
			b.qos[q].addUse(u, float64(s.seconds))
		default:
			b.qos[q].addUse(u, s.weighed)
		}
	}
}

// Bill lists what Charge would add for one job, or Return take back if it ended before
// running jobs were charged last: to whom it is charged, and to its QOS. It leaves the
// accounts above out, which Add finds. What is taken back is less than nothing.
func (b *Book) Bill(u *Use, began, to int64) []Entry {
	if to < b.charged {
		return b.billSpan(u, b.overchargedSpan(began, to))
	}
	return b.billSpan(u, b.spanUntilNow(to-max(began, b.charged)))
}

// BillLate lists what Late and then Charge would add for one job that began at a second, up to
// another one, or what Return would leave of it.
func (b *Book) BillLate(u *Use, began, to int64) []Entry {
	return Merge(b.billSpan(u, b.lateSpan(began)), b.Bill(u, max(began, b.sinceReset(began)), to))
}

// billSpan lists what charge does.
func (b *Book) billSpan(u *Use, s span) (out []Entry) {
	if s == (span{}) {
		return nil
	}
	note := func(e Entry, seconds float64) {
		sum, sign := Usage{TRES: make([]float64, len(u.TRES))}, 1.0
		if seconds < 0 {
			sign = -1
		}
		sum.addUse(u, sign*seconds)
		e.Raw, e.Wall = sign*sum.Raw, sign*sum.Wall
		for i, n := range sum.TRES {
			if n != 0 {
				if e.TRES == nil {
					e.TRES = map[string]float64{}
				}
				e.TRES[b.Names[i]] = sign * n
			}
		}
		out = append(out, e)
	}
	if u.Assoc >= 0 {
		ref := b.Ref(u.Assoc)
		note(Entry{Account: ref.Account, User: ref.User}, s.weighed)
	}
	for i, q := range [2]int32{u.QOS, u.PartQOS} {
		switch {
		case q < 0 || i == 1 && q == u.QOS:
		case b.lasting[q]:
			note(Entry{QOS: b.names[q]}, float64(s.seconds))
		default:
			note(Entry{QOS: b.names[q]}, s.weighed)
		}
	}
	return out
}

// Add charges what Bill listed. What the policy does not have is passed over.
func (b *Book) Add(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		if e.QOS != "" {
			if u := b.usageOf(e); u != nil {
				u.addEntry(b.Names, e)
			}
			continue
		}
		b.usageOf(e) // a guest gets his number
		for n := b.Find(e.Account, e.User); n >= 0; n = b.Parent(n) {
			b.assoc[n].addEntry(b.Names, e)
		}
	}
}

// addEntry adds an entry.
func (u *Usage) addEntry(names []string, e *Entry) {
	u.Raw, u.Wall = addUsage(u.Raw, e.Raw), addUsage(u.Wall, e.Wall)
	for name, n := range e.TRES {
		if k, ok := slices.BinarySearch(names, name); ok {
			u.TRES[k] = addUsage(u.TRES[k], n)
		}
	}
}

// addUsage is usage with more of it, or with some taken back: never less than none.
func addUsage(usage, more float64) float64 { return min(max(usage+more, 0), most) }

// Merge adds entries to others of the same accounts, users and QOS.
func Merge(into, more []Entry) []Entry {
	for _, e := range more {
		i := slices.IndexFunc(into, func(o Entry) bool { return o.Account == e.Account && o.User == e.User && o.QOS == e.QOS })
		if i < 0 {
			e.TRES = maps.Clone(e.TRES)
			into = append(into, e)
			continue
		}
		o := &into[i]
		o.Raw, o.Wall = o.Raw+e.Raw, o.Wall+e.Wall
		for name, n := range e.TRES {
			if o.TRES == nil {
				o.TRES = map[string]float64{}
			}
			o.TRES[name] += n
		}
	}
	return into
}

func (u *Usage) addUse(by *Use, seconds float64) {
	wall := float64(seconds * by.Factor)
	if !by.Part {
		u.Wall = addUsage(u.Wall, wall)
	}
	u.Raw = addUsage(u.Raw, float64(wall*by.Billing))
	for i, n := range by.TRES {
		u.TRES[i] = addUsage(u.TRES[i], float64(wall*n))
	}
}

// most bounds usage, so that no weight makes it infinite.
const most = 1e300

// Rank says how everybody stands, by number.
func (b *Book) Rank() []Standing {
	members := make([]Member, len(b.assoc))
	for i := range b.tree.Nodes {
		n := &b.tree.Nodes[i]
		members[i] = Member{Parent: n.Parent, User: n.Of != nil, Shares: n.Shares, Usage: b.assoc[i].Raw}
	}
	for i := range b.guests {
		n := len(b.tree.Nodes) + i
		members[n] = Member{Parent: b.guests[i].parent, User: true, Usage: b.assoc[n].Raw}
	}
	if b.rule == FairTree {
		return Rank(members, b.ties)
	}
	out := Formula(members, b.rule)
	for i := range out {
		if !members[i].User {
			out[i].Factor = 0 // jobs are users'
		}
	}
	return out
}

// Entry is one account, user or QOS of a book, as it is kept and shown.
type Entry struct {
	Account string             `json:"account,omitempty"`
	User    string             `json:"user,omitempty"`
	QOS     string             `json:"qos,omitempty"`
	Raw     float64            `json:"raw,omitempty"`
	Wall    float64            `json:"wall,omitempty"`
	TRES    map[string]float64 `json:"tres,omitempty"`
}

// Entries lists what was used, without those that used nothing: accounts and users,
// then QOS, by name.
func (b *Book) Entries() []Entry {
	var out []Entry
	note := func(e Entry, u *Usage) {
		e.Raw, e.Wall = u.Raw, u.Wall
		for i, n := range u.TRES {
			if n != 0 {
				if e.TRES == nil {
					e.TRES = map[string]float64{}
				}
				e.TRES[b.Names[i]] = n
			}
		}
		if e.Raw != 0 || e.Wall != 0 || e.TRES != nil {
			out = append(out, e)
		}
	}
	for i := range b.assoc {
		ref := b.Ref(int32(i))
		note(Entry{Account: ref.Account, User: ref.User}, &b.assoc[i])
	}
	for i := range b.qos {
		note(Entry{QOS: b.names[i]}, &b.qos[i])
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.QOS, b.QOS), cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User))
	})
	return out
}

// Restore takes entries over that were kept at a second. What the policy no longer
// has is passed over.
func (b *Book) Restore(at int64, entries []Entry) {
	if at <= 0 {
		return
	}
	b.beginAt(at)
	for i := range entries {
		e := &entries[i]
		u := b.usageOf(e)
		if u == nil {
			continue
		}
		u.Raw, u.Wall = max(e.Raw, 0), max(e.Wall, 0)
		for name, n := range e.TRES {
			if k, ok := slices.BinarySearch(b.Names, name); ok {
				u.TRES[k] = max(n, 0)
			}
		}
	}
}

// usageOf finds where an entry belongs.
func (b *Book) usageOf(e *Entry) *Usage {
	if e.QOS != "" {
		if i := slices.Index(b.names, e.QOS); i >= 0 {
			return &b.qos[i]
		}
		return nil
	}
	i := b.tree.Find(account.Ref{Account: e.Account, User: e.User})
	if i < 0 && e.User != "" {
		i = b.Join(e.Account, e.User)
	}
	if i < 0 {
		return nil
	}
	return &b.assoc[i]
}
