package lockdir

import (
	"context"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Nodes is the place of locks that are on each node alone, where nodes and driver share no
// directory. The driver sees none of them: whatever is asked is not known, and never absent.
// Jobs of the driver's ask the nodes instead.
type Nodes struct{ dir string }

var _ Directory = (*Nodes)(nil)

// OnNodes names the directory, the same on all nodes, in which users' directories of locks are.
func OnNodes(dir string) *Nodes { return &Nodes{filepath.Clean(dir)} }

// Dir is Directory's.
func (n *Nodes) Dir() string { return n.dir }

func (n *Nodes) unknownError() error {
	return fault.New(fault.Unsupported, "the locks are in %s on each node, where the server cannot look", n.dir)
}

// Take is Room's.
func (n *Nodes) Take(context.Context, string, string) (mine bool, held string, err error) {
	return false, "", n.unknownError()
}

// List is Room's.
func (n *Nodes) List(context.Context) ([]string, error) { return nil, n.unknownError() }

// Look is Room's.
func (n *Nodes) Look(_ context.Context, names []string) ([]Mark, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return nil, n.unknownError()
}

// Remove is Room's.
func (n *Nodes) Remove(context.Context, string) error { return n.unknownError() }

// Drop is Room's.
func (n *Nodes) Drop(context.Context, []string) error { return n.unknownError() }
