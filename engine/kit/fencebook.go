package kit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// FenceBook remembers in a file of which epoch the last call about each node's fence was, for drivers that have
// the fences themselves in what they drive: a call of an earlier hand-over that comes late changes nothing, after
// the fence was removed too. It gives those who change a node's fence their turns. It is safe for
// concurrent use.
type FenceBook struct {
	name string

	mu    sync.Mutex
	last  map[string]uint64
	turns map[string]chan struct{} // has one while a call about the node is under way
}

// OpenFenceBook reads the file, which need not be there.
func OpenFenceBook(name string) (*FenceBook, error) {
	b := &FenceBook{name: name, last: map[string]uint64{}, turns: map[string]chan struct{}{}}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b.last)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "%s, the epochs of fences: %w", name, err).
			Advise("if no machine changes its pool now, remove the file")
	}
	return b, nil
}

// Enter waits for the turn of a call about a node's fence and writes its epoch down. standing is the epoch of
// the fence that stands there, asked for in the turn; 0: none. leave ends the turn.
func (b *FenceBook) Enter(ctx context.Context, node string, f engine.NodeFence, standing func() (uint64, error)) (leave func(), err error) {
	b.mu.Lock()
	turn := b.turns[node]
	if turn == nil {
		turn = make(chan struct{}, 1)
		b.turns[node] = turn
	}
	b.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = func() { <-turn }
	stands, err := standing()
	if err == nil {
		err = b.noteEpoch(node, f, stands)
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// noteEpoch writes the epoch of a call down, unless another call has overtaken it.
func (b *FenceBook) noteEpoch(node string, f engine.NodeFence, standing uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.last[node]
	if err := f.Follows(node, max(was, standing)); err != nil {
		return err
	}
	if was == f.Epoch {
		return nil
	}
	b.last[node] = f.Epoch
	text, err := json.Marshal(b.last)
	if err == nil {
		err = WriteDurably(b.name, append(text, '\n'))
	}
	if err != nil {
		b.last[node] = was
		return fault.New(fault.Unavailable, "the epoch of the fence of node %s cannot be written down: %w", node, err).Advise("make room in the state directory")
	}
	return nil
}

// WriteDurably puts a file in the place of one of its name, whole or not at all. It is on the disk when it returns.
func WriteDurably(name string, text []byte) error {
	next, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
