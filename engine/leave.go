package engine

import "context"

// Leaver is an optional ability: what an engine has put up for its pool beside work, as the
// taints of nodes that are kept for it, is taken away when the pool is.
type Leaver interface {
	// Leave takes it away. The engine runs nothing then and is closed after; what was there
	// before it, and what others have put up, stays. It may be called again after an error.
	Leave(ctx context.Context) error
}
