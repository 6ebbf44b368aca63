package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// NodeKey identifies a node: two pools may have nodes of one name. Its text is pool/name, or
// the name alone where the pool is empty. An empty pool means that the pool is not known: the
// record was written when a name was enough.
type NodeKey struct{ Pool, Name string }

// Key identifies the node among those of all pools.
func (n *Node) Key() NodeKey { return NodeKey{n.Pool, n.Name} }

// Is reports whether a text names the node: its name, or pool/name.
func (n *Node) Is(text string) bool {
	if text == n.Name {
		return true
	}
	pool, name, ok := strings.Cut(text, "/")
	return ok && name == n.Name && pool == n.Pool
}

// Key identifies the node of the claim.
func (c *Claim) Key() NodeKey { return NodeKey{c.Pool, c.Node} }

// ParseNodeKey reads the text of a key. No name of a node has a slash.
func ParseNodeKey(text string) NodeKey {
	if pool, name, ok := strings.Cut(text, "/"); ok {
		return NodeKey{pool, name}
	}
	return NodeKey{Name: text}
}

func (k NodeKey) String() string {
	if k.Pool == "" {
		return k.Name
	}
	return k.Pool + "/" + k.Name
}

// MarshalText writes the key as String does, so that it can be a key in JSON.
func (k NodeKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *NodeKey) UnmarshalText(text []byte) error {
	*k = ParseNodeKey(string(text))
	return nil
}

// Compare orders keys by name, then by pool.
func (k NodeKey) Compare(o NodeKey) int {
	return cmp.Or(strings.Compare(k.Name, o.Name), strings.Compare(k.Pool, o.Pool))
}

// InPool returns claims with the pool of their allocation, which says it once for all of them
// wherever it is written down. The claims are shared and not changed.
func InPool(pool string, claims []Claim) []Claim {
	cloned := false
	for i := range claims {
		if claims[i].Pool == pool {
			continue
		}
		if !cloned {
			claims, cloned = slices.Clone(claims), true
		}
		claims[i].Pool = pool
	}
	return claims
}

// ByNode has a value for each of some nodes, and finds them by name too. It is not safe for
// concurrent use.
type ByNode[V any] struct {
	of    map[NodeKey]V
	pools map[string][]string // of the nodes of a name, sorted
	apart map[NodeKey]bool    // that were taken out while another node of the name was there: another machine
}

// NewByNode returns an empty one.
func NewByNode[V any]() *ByNode[V] {
	return &ByNode[V]{of: map[NodeKey]V{}, pools: map[string][]string{}, apart: map[NodeKey]bool{}}
}

// Len is the number of nodes.
func (b *ByNode[V]) Len() int { return len(b.of) }

// Get returns the value of a node.
func (b *ByNode[V]) Get(k NodeKey) (V, bool) {
	v, ok := b.of[k]
	return v, ok
}

// Set gives a node a value.
func (b *ByNode[V]) Set(k NodeKey, v V) {
	if _, ok := b.of[k]; !ok {
		pools := b.pools[k.Name]
		i, _ := slices.BinarySearch(pools, k.Pool)
		b.pools[k.Name] = slices.Insert(pools, i, k.Pool)
		delete(b.apart, k)
	}
	b.of[k] = v
}

// Delete takes a node out.
func (b *ByNode[V]) Delete(k NodeKey) {
	if _, ok := b.of[k]; !ok {
		return
	}
	delete(b.of, k)
	pools := slices.DeleteFunc(b.pools[k.Name], func(p string) bool { return p == k.Pool })
	if b.pools[k.Name] = pools; len(pools) == 0 {
		delete(b.pools, k.Name)
	} else {
		b.apart[k] = true
	}
}

// All goes over the nodes, in no order.
func (b *ByNode[V]) All() func(yield func(NodeKey, V) bool) {
	return func(yield func(NodeKey, V) bool) {
		for k, v := range b.of {
			if !yield(k, v) {
				return
			}
		}
	}
}

// Keys lists the nodes by name, then by pool.
func (b *ByNode[V]) Keys() []NodeKey {
	out := make([]NodeKey, 0, len(b.of))
	for k := range b.of {
		out = append(out, k)
	}
	slices.SortFunc(out, NodeKey.Compare)
	return out
}

// Pools lists the pools with a node of a name, sorted; it is not to be changed.
func (b *ByNode[V]) Pools(name string) []string { return b.pools[name] }

// Find returns the node that a key means: itself, or the only one of its name. So work that is
// held in a pool that is gone counts on its machine in the pool that has that now, and so does
// a record that names no pool. A node that was taken out while the other one was there is not
// that one.
func (b *ByNode[V]) Find(k NodeKey) (NodeKey, bool) {
	if _, ok := b.of[k]; ok {
		return k, true
	}
	if pools := b.pools[k.Name]; len(pools) == 1 && !b.apart[k] {
		return NodeKey{pools[0], k.Name}, true
	}
	return k, false
}

// Named returns the node that a person named, with or without its pool. The errors are
// fault.NotFound, and fault.Invalid for a bare name that nodes of several pools have.
func (b *ByNode[V]) Named(text string) (NodeKey, error) {
	k := ParseNodeKey(text)
	if _, ok := b.of[k]; ok {
		return k, nil
	}
	switch pools := b.pools[k.Name]; {
	case k.Pool != "" || len(pools) == 0:
		return k, fault.New(fault.NotFound, "there is no node %s", text).Advise("cox nodes lists them")
	case len(pools) > 1:
		return k, fault.New(fault.Invalid, "node %s is in %d pools: %s", text, len(pools), strings.Join(pools, ", ")).
			Advise("name its pool too: %s", NodeKey{pools[0], k.Name})
	default:
		return NodeKey{pools[0], k.Name}, nil
	}
}
