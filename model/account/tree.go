package account

// RootName is the account that all others stand below; a policy may name it to give
// it limits or a quota, and need not.
const RootName = "root"

// Ref names a node of the tree: an account, or a user in one.
type Ref struct {
	Account string `json:"account"`
	User    string `json:"user,omitempty"` // empty: the account itself
}

// Node is an account, or a user's association with one.
type Node struct {
	Ref
	Parent   int32 // -1: the root
	Open     bool  // an account that everybody may use: it has neither users nor accounts below it
	Shares   Shares
	Priority uint32
	Source   *Account // what the policy says of it; nil: a root that it does not name
	Of       *User    // of a user; nil: an account
}

// Tree is the accounts and users of a policy by number. A parent has a smaller number
// than its children, and 0 is the root. It is not written after it was made.
type Tree struct {
	Nodes    []Node
	byRef    map[Ref]int32
	defaults map[string]int32 // user → his association if he names no account
}

// NewTree compiles the tree of a policy. Accounts stand in the order of the policy,
// children after their parents, users directly after their account. What Policy
// forbids is borne: an account whose parent is unknown, or stands below it, is one of
// the root's, and of two with one name the first counts.
func NewTree(p *Policy) *Tree {
	t := &Tree{byRef: map[Ref]int32{}, defaults: map[string]int32{}}
	root := Node{Ref: Ref{Account: RootName}, Parent: -1}
	below := map[string][]*Account{}
	known := map[string]*Account{}
	for i := range p.Accounts {
		if a := &p.Accounts[i]; known[a.Name] == nil {
			known[a.Name] = a
		}
	}
	if a := known[RootName]; a != nil {
		root.Source, root.Priority = a, a.Priority
	}
	for i := range p.Accounts {
		a := &p.Accounts[i]
		if known[a.Name] != a || a.Name == RootName {
			continue
		}
		parent := a.Parent
		if parent == "" || known[parent] == nil || isCircular(known, a) {
			parent = RootName
		}
		below[parent] = append(below[parent], a)
	}
	t.addNode(root)
	t.addBelow(0, below)
	return t
}

// isCircular reports whether an account stands below itself.
func isCircular(known map[string]*Account, a *Account) bool {
	up := known[a.Parent]
	for range len(known) {
		if up == nil || up.Name == RootName {
			return false
		}
		up = known[up.Parent]
	}
	return up != nil
}

// addBelow adds the users and the accounts below an account.
func (t *Tree) addBelow(at int32, below map[string][]*Account) {
	self := t.Nodes[at].Source
	if self != nil {
		for i := range self.Users {
			u := &self.Users[i]
			n := t.addNode(Node{Ref: Ref{self.Name, u.Name}, Parent: at, Shares: u.Shares, Priority: u.Priority, Source: self, Of: u})
			if old, ok := t.defaults[u.Name]; u.Name != "" && (!ok || u.Default && !t.Nodes[old].Of.Default) {
				t.defaults[u.Name] = n
			}
		}
	}
	children := below[t.Nodes[at].Account]
	t.Nodes[at].Open = self != nil && len(self.Users)+len(children) == 0
	for _, a := range children {
		t.addBelow(t.addNode(Node{Ref: Ref{Account: a.Name}, Parent: at, Shares: a.Shares, Priority: a.Priority, Source: a}), below)
	}
}

func (t *Tree) addNode(n Node) int32 {
	i := int32(len(t.Nodes))
	t.Nodes = append(t.Nodes, n)
	if _, ok := t.byRef[n.Ref]; !ok {
		t.byRef[n.Ref] = i
	}
	return i
}

// Find returns the number of an account or a user in one; -1: there is none.
func (t *Tree) Find(r Ref) int32 {
	if i, ok := t.byRef[r]; ok {
		return i
	}
	return -1
}

// Of returns the association that a job belongs to: that of its user with its
// account, else the account if it is open to everybody. A job without an account
// belongs to its user's default, which is the first account that has him unless the
// policy marks another. -1: the job has no association.
func (t *Tree) Of(account, user string) int32 {
	if account == "" {
		if i, ok := t.defaults[user]; ok {
			return i
		}
		return -1
	}
	if i, ok := t.byRef[Ref{account, user}]; ok && user != "" {
		return i
	}
	if i, ok := t.byRef[Ref{Account: account}]; ok && t.Nodes[i].Open {
		return i
	}
	return -1
}
