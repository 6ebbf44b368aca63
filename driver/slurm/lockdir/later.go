package lockdir

import (
	"context"
	"path/filepath"
)

// LazyDir is a Room that is opened by the first call that needs it, and by each further one
// until that succeeds: its file system may not answer yet.
type LazyDir struct {
	dir  string
	open func(context.Context) (Directory, error)
	turn chan struct{} // who has put something into it opens, or looks
	room Directory
}

var _ Directory = (*LazyDir)(nil)

// OpenLater names the directory and how it is opened.
func OpenLater(dir string, open func(context.Context) (Directory, error)) *LazyDir {
	return &LazyDir{dir: filepath.Clean(dir), open: open, turn: make(chan struct{}, 1)}
}

// openRoom is the room, opened.
func (l *LazyDir) openRoom(ctx context.Context) (Directory, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l.room != nil {
		return l.room, nil
	}
	r, err := l.open(ctx)
	if err == nil {
		l.room = r
	}
	return r, err
}

// Dir is Directory's.
func (l *LazyDir) Dir() string { return l.dir }

// Take is Room's.
func (l *LazyDir) Take(ctx context.Context, name, text string) (mine bool, held string, err error) {
	r, err := l.openRoom(ctx)
	if err != nil {
		return false, "", err
	}
	return r.Take(ctx, name, text)
}

// List is Room's.
func (l *LazyDir) List(ctx context.Context) ([]string, error) {
	r, err := l.openRoom(ctx)
	if err != nil {
		return nil, err
	}
	return r.List(ctx)
}

// Look is Room's.
func (l *LazyDir) Look(ctx context.Context, names []string) ([]Mark, error) {
	r, err := l.openRoom(ctx)
	if err != nil {
		return nil, err
	}
	return r.Look(ctx, names)
}

// Remove is Room's.
func (l *LazyDir) Remove(ctx context.Context, prefix string) error {
	r, err := l.openRoom(ctx)
	if err != nil {
		return err
	}
	return r.Remove(ctx, prefix)
}

// Drop is Room's.
func (l *LazyDir) Drop(ctx context.Context, names []string) error {
	r, err := l.openRoom(ctx)
	if err != nil {
		return err
	}
	return r.Drop(ctx, names)
}
