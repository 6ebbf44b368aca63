// Package quota counts what accounts may hold, as Kueue does (its KEP-79, docs/explanation/compat-kueue.md):
// a forest of accounts, each with a nominal amount of each resource of each flavour,
// a limit on what it borrows and one on what it lends.
//
// The model. A node's subtree quota is its own nominal amount and what its children
// lend. What it does not lend is guaranteed to it: usage up to there is nobody
// else's business, and only what is used beyond charges the parent. What is
// available to a node is what is left of its guarantee and what is available to its
// parent, cut at its borrowing limit. An account with a quota and children that have
// quotas is a cohort, and its own jobs stand in a queue below it, to which its nominal
// amount belongs: so whatever it lends can be claimed back, by it and from it.
//
// Tree is what follows from the policy; State counts on it. On them stand the choice
// of flavours (Assign), whose turn it is (First), and who may be stopped for whom
// (Victims). Nothing here knows nodes, time or what a job is beyond its amounts. All
// of it is integers: shares are compared as fractions.
//
// It does not reproduce Kueue's cycles, in which each queue offers one job at a time,
// nor admission checks, nor topology.
package quota

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// None is no node.
const None int32 = -1

// FR is a resource of a flavour, both by their number in the Tree.
type FR struct{ Flavor, Resource int32 }

// Tree is the accounts that have quotas, or have below them accounts that do. It is
// immutable. A node is an index, parents before their children.
type Tree struct {
	Names     []string // of nodes
	Flavors   []account.Flavor
	Resources []string // sorted
	FRs       []FR     // that some quota names; by flavour, then by resource

	nodes  []node
	amount []amounts        // by node, then by FR
	byName map[string]int32 // where an account's jobs are charged
}

// node is what is fixed about an account.
type node struct {
	parent   int32 // None: a root
	root     int32
	own      int32   // the queue of its own jobs, where it is a cohort; else itself
	height   int32   // to the furthest leaf
	children []int32 // by name
	weight   int64   // in thousandths of a millionth
	rules    rules
	groups   []group
	lendable []resource.Amount // by resource: what could ever be held here
}

// amounts are of one resource of one flavour in one node.
type amounts struct {
	nominal, borrow, lend resource.Amount // Unlimited: no limit
	subtree               resource.Amount // nominal, and what children lend
	guaranteed            resource.Amount // of it, what is never lent
	potential             resource.Amount // available if nothing were held
}

// group is flavours of one queue that are alternatives of each other: they have the
// same resources.
type group struct {
	resources []int32 // sorted
	flavors   []int32 // in the order in which they are tried
}

// New compiles the quotas of a policy. It returns nil if there are none, and an
// error that names what contradicts itself.
func New(p *account.Policy) (*Tree, error) {
	if p == nil || !slices.ContainsFunc(p.Accounts, func(a account.Account) bool { return a.Quota != nil }) {
		return nil, nil
	}
	t := &Tree{Flavors: p.Flavors, byName: map[string]int32{}}
	if err := t.arrangeNodes(p.Accounts); err != nil {
		return nil, err
	}
	if err := t.nameResources(); err != nil {
		return nil, err
	}
	if err := t.fillAmounts(); err != nil {
		return nil, err
	}
	t.sumSubtrees()
	return t, nil
}

// arrangeNodes makes nodes of accounts, parents first and siblings by name.
func (t *Tree) arrangeNodes(accounts []account.Account) error {
	at := map[string]int{}
	below := map[string][]int{}
	for i := range accounts {
		a := &accounts[i]
		if _, twice := at[a.Name]; twice || a.Name == "" {
			return fmt.Errorf("account %q: named twice, or without a name", a.Name)
		}
		at[a.Name] = i
		below[a.Parent] = append(below[a.Parent], i)
	}
	seen := 0
	var counts func(i int) bool // whether an account or one below it has a quota
	counts = func(i int) bool {
		seen++
		any := accounts[i].Quota != nil
		for _, c := range below[accounts[i].Name] {
			any = counts(c) || any
		}
		return any
	}
	var add func(i int, parent int32)
	add = func(i int, parent int32) {
		if !counts(i) {
			return
		}
		a := &accounts[i]
		id := int32(len(t.nodes))
		n := node{parent: parent, root: id, weight: weightOf(a.Quota)}
		if a.Quota != nil {
			n.rules = rules(*a.Quota)
		}
		if parent != None && n.rules.Order == account.OrderAbove {
			n.rules.Order = t.nodes[parent].rules.Order
		}
		if parent != None {
			n.root = t.nodes[parent].root
			t.nodes[parent].children = append(t.nodes[parent].children, id)
		}
		n.own = id
		t.nodes, t.Names = append(t.nodes, n), append(t.Names, a.Name)
		children := below[a.Name]
		if a.Quota != nil && slices.ContainsFunc(children, counts) {
			t.nodes[id].own = int32(len(t.nodes))
			t.nodes[id].children = []int32{t.nodes[id].own}
			t.nodes = append(t.nodes, node{parent: id, root: n.root, own: t.nodes[id].own, weight: unit, rules: n.rules})
			t.Names = append(t.Names, a.Name)
		}
		if a.Quota != nil {
			t.byName[a.Name] = t.nodes[id].own
		}
		slices.SortFunc(children, func(x, y int) int { return cmp.Compare(accounts[x].Name, accounts[y].Name) })
		for _, c := range children {
			add(c, id)
		}
	}
	roots := below[""]
	for i := range accounts {
		if a := &accounts[i]; a.Parent != "" {
			if _, ok := at[a.Parent]; !ok {
				return fmt.Errorf("account %s: its parent %s does not exist", a.Name, a.Parent)
			}
		}
	}
	for _, i := range roots {
		counts(i)
	}
	if seen != len(accounts) {
		return fmt.Errorf("accounts: some are their own ancestors")
	}
	slices.SortFunc(roots, func(x, y int) int { return cmp.Compare(accounts[x].Name, accounts[y].Name) })
	for _, i := range roots {
		add(i, None)
	}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if n := &t.nodes[i]; n.parent != None {
			p := &t.nodes[n.parent]
			p.height = max(p.height, n.height+1)
		}
	}
	return nil
}

// unit is the denominator of weights.
const unit = 1_000_000_000

func weightOf(q *account.Quota) int64 {
	if q == nil || q.Weight == nil {
		return unit
	}
	return int64(math.Round(min(max(*q.Weight, 0), 1e6) * unit))
}

// nameResources numbers the resources and what is counted of each flavour.
func (t *Tree) nameResources() error {
	for i := range t.nodes {
		for _, f := range t.nodes[i].rules.Flavors {
			if t.flavorNumber(f.Flavor) == None {
				return fmt.Errorf("account %s: no flavor %s", t.Names[i], f.Flavor)
			}
			for _, r := range f.Resources {
				t.Resources = append(t.Resources, r.Name)
			}
		}
	}
	slices.Sort(t.Resources)
	t.Resources = slices.Compact(t.Resources)
	for i := range t.nodes {
		for _, f := range t.nodes[i].rules.Flavors {
			for _, r := range f.Resources {
				t.FRs = append(t.FRs, FR{t.flavorNumber(f.Flavor), t.Resource(r.Name)})
			}
		}
	}
	slices.SortFunc(t.FRs, compareFR)
	t.FRs = slices.Compact(t.FRs)
	return nil
}

func compareFR(a, b FR) int {
	return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
}

func (t *Tree) flavorNumber(name string) int32 {
	return int32(slices.IndexFunc(t.Flavors, func(f account.Flavor) bool { return f.Name == name }))
}

// Resource is the number of a resource, or None.
func (t *Tree) Resource(name string) int32 {
	if i, ok := slices.BinarySearch(t.Resources, name); ok {
		return int32(i)
	}
	return None
}

// frNumber is the number of a resource of a flavour, or None.
func (t *Tree) frNumber(flavor, resource int32) int32 {
	if i, ok := slices.BinarySearchFunc(t.FRs, FR{flavor, resource}, compareFR); ok {
		return int32(i)
	}
	return None
}

// Text is how a resource of a flavour is shown: "gpu of h100".
func (t *Tree) Text(fr int32) string {
	return t.Resources[t.FRs[fr].Resource] + " of " + t.Flavors[t.FRs[fr].Flavor].Name
}

// amountsAt is the amounts of a node.
func (t *Tree) amountsAt(n, fr int32) *amounts { return &t.amount[int(n)*len(t.FRs)+int(fr)] }

// fillAmounts enters what the accounts say.
func (t *Tree) fillAmounts() error {
	t.amount = make([]amounts, len(t.nodes)*len(t.FRs))
	for i := range t.amount {
		t.amount[i].borrow, t.amount[i].lend = resource.Unlimited, resource.Unlimited
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if int32(i) > 0 && t.nodes[i-1].own == int32(i) {
			continue // filled with its account
		}
		for _, f := range n.rules.Flavors {
			var of []int32
			for _, r := range f.Resources {
				res := t.Resource(r.Name)
				fr := t.frNumber(t.flavorNumber(f.Flavor), res)
				a := t.amountsAt(int32(i), fr)
				if r.Nominal < 0 || r.Borrow != nil && *r.Borrow < 0 || r.Lend != nil && *r.Lend < 0 {
					return fmt.Errorf("account %s: %s of flavor %s is negative", t.Names[i], r.Name, f.Flavor)
				}
				if slices.Contains(of, res) {
					return fmt.Errorf("account %s: flavor %s names %s twice", t.Names[i], f.Flavor, r.Name)
				}
				of = append(of, res)
				t.amountsAt(n.own, fr).nominal = r.Nominal
				if r.Borrow != nil {
					a.borrow = *r.Borrow
				}
				if r.Lend != nil {
					a.lend = *r.Lend
				}
			}
			if err := t.nodes[n.own].joinFlavor(t.flavorNumber(f.Flavor), of); err != nil {
				return fmt.Errorf("account %s: flavor %s: %w", t.Names[i], f.Flavor, err)
			}
		}
	}
	return nil
}

// joinFlavor puts a flavour with its alternatives.
func (n *node) joinFlavor(flavor int32, resources []int32) error {
	slices.Sort(resources)
	for i := range n.groups {
		g := &n.groups[i]
		switch {
		case slices.Contains(g.flavors, flavor):
			return fmt.Errorf("it stands there twice")
		case slices.Equal(g.resources, resources):
			g.flavors = append(g.flavors, flavor)
			return nil
		case slices.ContainsFunc(resources, func(r int32) bool { return slices.Contains(g.resources, r) }):
			return fmt.Errorf("flavors that share a resource must have the same resources")
		}
	}
	n.groups = append(n.groups, group{resources, []int32{flavor}})
	return nil
}

// sumSubtrees works out what follows: subtree quotas from the leaves up, what could be
// available from the roots down.
func (t *Tree) sumSubtrees() {
	for i := int32(len(t.nodes)) - 1; i >= 0; i-- {
		for fr := range int32(len(t.FRs)) {
			a := t.amountsAt(i, fr)
			a.subtree = a.subtree.Add(a.nominal) // children, which come later, have added theirs
			if a.lend != resource.Unlimited {
				a.guaranteed = max(0, a.subtree.Sub(a.lend))
			}
			if p := t.nodes[i].parent; p != None {
				up := t.amountsAt(p, fr)
				up.subtree = up.subtree.Add(a.subtree.Sub(a.guaranteed))
			}
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		n.lendable = make([]resource.Amount, len(t.Resources))
		for fr, x := range t.FRs {
			a := t.amountsAt(int32(i), int32(fr))
			a.potential = a.subtree
			if n.parent != None {
				a.potential = a.guaranteed.Add(t.amountsAt(n.parent, int32(fr)).potential)
				if a.borrow != resource.Unlimited {
					a.potential = min(a.potential, a.subtree.Add(a.borrow))
				}
			}
			n.lendable[x.Resource] = n.lendable[x.Resource].Add(a.potential)
		}
	}
}

// Len is the number of nodes.
func (t *Tree) Len() int { return len(t.nodes) }

// Find returns the queue of an account with a quota, or None.
func (t *Tree) Find(account string) int32 {
	if i, ok := t.byName[account]; ok {
		return i
	}
	return None
}

// Parent of a node, or None.
func (t *Tree) Parent(n int32) int32 { return t.nodes[n].parent }

// Root of a node's tree.
func (t *Tree) Root(n int32) int32 { return t.nodes[n].root }

// Children of a node: its own queue if it has one, then by name.
func (t *Tree) Children(n int32) []int32 { return t.nodes[n].children }

// Own is the queue of a node's own jobs: the node itself, but for a cohort that has
// a quota.
func (t *Tree) Own(n int32) int32 { return t.nodes[n].own }

// Rules are what the account says.
func (t *Tree) Rules(n int32) *account.Quota { return (*account.Quota)(&t.nodes[n].rules) }

// Fair reports whether the tree of a node is ordered by shares.
func (t *Tree) Fair(n int32) bool { return t.nodes[t.nodes[n].root].rules.Fair }

// Strict reports whether nothing of a queue passes its first job.
func (t *Tree) Strict(n int32) bool { return t.nodes[n].rules.Order == account.Strict }

// Choice reports whether a queue has flavours that are alternatives of each other.
func (t *Tree) Choice(n int32) bool {
	return slices.ContainsFunc(t.nodes[n].groups, func(g group) bool { return len(g.flavors) > 1 })
}

// Potential is what a node could hold if nobody held anything.
func (t *Tree) Potential(n, fr int32) resource.Amount { return t.amountsAt(n, fr).potential }

// Nominal is the amount that an account was given.
func (t *Tree) Nominal(n, fr int32) resource.Amount { return t.amountsAt(n, fr).nominal }

// Limits are how much a node may borrow and lend; Unlimited: no limit.
func (t *Tree) Limits(n, fr int32) (borrow, lend resource.Amount) {
	return t.amountsAt(n, fr).borrow, t.amountsAt(n, fr).lend
}

// Subtree is a node's nominal amount and what its children lend.
func (t *Tree) Subtree(n, fr int32) resource.Amount { return t.amountsAt(n, fr).subtree }
