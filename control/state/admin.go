package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// InPool counts the jobs that have not ended and wait for a pool, or hold an allocation there.
func (s *State) InPool(name string) (n int) {
	for _, e := range s.Jobs {
		if !e.State.Final() && (e.Shared.Spec.Pool == name || e.Last != nil && e.Last.Pool == name) {
			n++
		}
	}
	return n
}

func (s *State) applyLearned(_ *store.Record, v share.Memory) error {
	s.Arrivals = &v
	return nil
}

// Drain says who keeps new work off a node, and why.
type Drain struct {
	By     job.Actor `json:"by,omitzero"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// NodeWithDrain returns a node with the state that its engine, administrators, its checks and the owner of
// its machine give it together.
func (s *State) NodeWithDrain(k fleet.NodeKey) (fleet.Node, bool) {
	n, ok := s.Nodes.Get(k)
	if !ok || planted.DrainIgnored {
		return n, ok
	}
	if fenced := n.Fence != 0 && n.Why == ""; n.State == fleet.Up || n.State == fleet.Draining && fenced {
		if _, d, drained := s.DrainOf(k); drained {
			n.State, n.Why = fleet.Draining, d.Reason
		} else if why := s.WhyNotOwned(&n); why != "" {
			n.State, n.Why = fleet.Draining, why
		} else if fenced {
			n.Why = fmt.Sprintf("its engine has our fence (epoch %d)", n.Fence)
		}
	}
	return n.WithFences(s.Health[k].Fences), ok
}

// DrainOf returns the drain of a node and the key under which it is kept: the node's own key,
// the name without a pool, the key in the pool that had the machine before, or that of the
// machine's node in another pool. So a drain stays with a machine that is handed over.
func (s *State) DrainOf(k fleet.NodeKey) (fleet.NodeKey, Drain, bool) {
	drains := s.Drains
	if d, ok := drains.Get(k); ok {
		return k, d, true
	}
	for _, pool := range drains.Pools(k.Name) {
		was := fleet.NodeKey{Pool: pool, Name: k.Name}
		if is, ok := s.Nodes.Find(was); pool == "" || ok && is == k {
			d, _ := drains.Get(was)
			return was, d, true
		}
	}
	if n, ok := s.Nodes.Get(k); ok && drains.Len() > 0 && !aggregate.Is(k.Name) {
		for _, m := range s.OnMachines.Of(&n) {
			for _, other := range s.OnMachines.On(m) {
				if d, ok := drains.Get(other); ok {
					return other, d, true
				}
			}
		}
	}
	return k, Drain{}, false
}

// NodeNamed finds the node that somebody named: a present one, or one that was present when it
// was drained.
func (s *State) NodeNamed(name string) (fleet.NodeKey, error) {
	k, err := s.Nodes.Named(name)
	if fault.KindOf(err) != fault.NotFound {
		return k, err
	}
	if was, gone := s.Drains.Named(name); gone == nil {
		return was, nil
	}
	return k, err
}

// PoolSpec is a pool as the journal keeps it: everything that is needed to reach it. It has no
// secret, only the place of a secret.
type PoolSpec struct {
	Name     string          `json:"name"`
	Engine   string          `json:"engine"`             // which kind of engine, for Config.OpenPool
	Settings json.RawMessage `json:"settings,omitempty"` // what that kind needs to know
	At       time.Time       `json:"at"`
	By       job.Actor       `json:"by,omitzero"` // who added it

	// What its engine said of itself when the pool was added (Pool). It holds for as long as
	// the engine cannot be opened; AddPool fills it in.
	Delegated bool `json:"delegated,omitempty"`
	Elastic   bool `json:"elastic,omitempty"`

	// Trial says that the engine is opened to be looked at and closed again: nothing of
	// the pool is kept.
	Trial bool `json:"-"`
}

// PoolGone takes a pool away.
type PoolGone struct {
	Name string `json:"name"`
}

func (s *State) applyPool(_ *store.Record, v PoolSpec) error {
	s.Pools[v.Name] = v
	return nil
}

func (s *State) applyPoolGone(_ *store.Record, v PoolGone) error {
	delete(s.Pools, v.Name)
	maps.DeleteFunc(s.Health, func(k fleet.NodeKey, _ NodeHealth) bool { return k.Pool == v.Name })
	return nil
}

// Token is an access token as the journal keeps it: with a hash of the secret, which only the
// maker and checker of tokens interprets.
type Token struct {
	ID       string    `json:"id"`
	Hash     string    `json:"hash"`
	Name     string    `json:"name"` // of the user that it stands for
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Accounts []string  `json:"accounts,omitempty"`
	Admin    bool      `json:"admin,omitempty"`
	Role     string    `json:"role,omitempty"` // of package auth; empty: a person's
	Comment  string    `json:"comment,omitempty"`
	Parent   string    `json:"parent,omitempty"`  // the token that it was made with, and is revoked with; empty: none
	Session  bool      `json:"session,omitempty"` // a browser's, which is dropped when it has ended
	Created  time.Time `json:"created"`
	By       job.Actor `json:"by,omitzero"`      // who made it
	Expires  time.Time `json:"expires,omitzero"` // zero: never
	Revoked  time.Time `json:"revoked,omitzero"` // zero: not revoked
}

// MostSessions is how many browsers of one user are signed in at the same time.
const MostSessions = 16

// TokenSet is the tokens by their identifiers. A browser's session is in it until it is revoked, or,
// once it has expired, until another session begins; other tokens stay. So a user has no more than
// MostSessions of them. It is not safe for concurrent use.
type TokenSet map[string]Token

// Put keeps a token. With a session, the sessions that have expired by then go.
func (all TokenSet) Put(t Token, at time.Time) {
	if t.Session {
		maps.DeleteFunc(all, func(_ string, o Token) bool { return o.Session && !at.Before(o.Expires) })
	}
	all[t.ID] = t
}

// Revoke makes a token invalid for ever, and removes a session; false: there is no such token.
func (all TokenSet) Revoke(id string, at time.Time) bool {
	t, ok := all[id]
	switch {
	case !ok:
		return false
	case t.Session:
		delete(all, id)
	case t.Revoked.IsZero():
		t.Revoked = at
		all[id] = t
	}
	return true
}

// Under are the identifiers of the tokens that were made with one, or with one of these, and are not
// revoked, in the order in which they were made.
func (all TokenSet) Under(id string) []string {
	from, found := map[string]bool{id: true}, []Token{}
	for grown := true; grown; { // no token is made before its parent, but clocks may be set back
		grown = false
		for _, t := range all {
			if t.Parent != "" && from[t.Parent] && !from[t.ID] {
				from[t.ID], grown = true, true
				found = append(found, t)
			}
		}
	}
	return tokenIDs(found, func(t *Token) bool { return t.Revoked.IsZero() })
}

// Surplus are the oldest sessions of a user that make way for one more, of those that have not expired.
func (all TokenSet) Surplus(uid uint32, now time.Time) []string {
	var found []Token
	for _, t := range all {
		if t.Session && t.UID == uid && now.Before(t.Expires) {
			found = append(found, t)
		}
	}
	ids := tokenIDs(found, func(*Token) bool { return true })
	return ids[:max(0, len(ids)-MostSessions+1)]
}

// tokenIDs are the identifiers of the tokens that are wanted, the oldest first.
func tokenIDs(list []Token, wanted func(*Token) bool) (ids []string) {
	slices.SortFunc(list, func(a, b Token) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	for i := range list {
		if wanted(&list[i]) {
			ids = append(ids, list[i].ID)
		}
	}
	return ids
}

// Usage is what accounts, users and QOS had used at a second, as the core reckoned it
// then. It is kept at each tick at which something was charged. What jobs used that
// ended since is part of the record of their end; those that run on are charged from
// that second. So a restart loses nothing.
type Usage struct {
	At      int64        `json:"at"` // Unix seconds
	Entries []fair.Entry `json:"entries,omitempty"`
	Since   []fair.Entry `json:"since,omitempty"` // in the projection: by jobs that have ended since
}

// addUsage notes what a job used that has ended.
func (s *State) addUsage(entries []fair.Entry) {
	if len(entries) > 0 {
		if s.Usage == nil {
			s.Usage = &Usage{}
		}
		s.Usage.Since = fair.Merge(s.Usage.Since, entries)
	}
}

// addLateUsage notes what a job used before its start was heard of. Where nothing was kept yet,
// what is charged counts from that second on.
func (s *State) addLateUsage(at int64, entries []fair.Entry) {
	s.addUsage(entries)
	if len(entries) > 0 && s.Usage.At == 0 {
		s.Usage.At = at
	}
}

func (s *State) applyUsage(_ *store.Record, v Usage) error {
	s.Usage = &v
	return nil
}
