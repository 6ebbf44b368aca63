// Package event hands changes to any number of watchers without letting a slow
// one hold up the writer.
//
// A Log keeps the last changes in a ring. A watcher reads by number and can leave
// and come back with the last number that it saw; where the ring no longer has
// what it missed, it is told so (Next's gap) and reads the whole state anew.
package event

import (
	"context"
	"sync"
)

// Log is a ring of changes numbered from 1 without gaps. All methods are safe for
// concurrent use.
type Log[T any] struct {
	mu   sync.Mutex
	ring []T
	last uint64
	wake chan struct{} // closed and replaced at every append
}

// NewLog returns a log that remembers the last size changes.
func NewLog[T any](size int) *Log[T] {
	return &Log[T]{ring: make([]T, size), wake: make(chan struct{})}
}

// Append adds a change and returns its number.
func (l *Log[T]) Append(v T) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.ring[l.last%uint64(len(l.ring))] = v
	close(l.wake)
	l.wake = make(chan struct{})
	return l.last
}

// Last returns the number of the newest change.
func (l *Log[T]) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Next waits until there are changes after the given number and returns them in
// order with the number of the last one. gap says that some between are forgotten.
// The error is the context's.
func (l *Log[T]) Next(ctx context.Context, after uint64) (changes []T, last uint64, gap bool, err error) {
	for {
		l.mu.Lock()
		wake := l.wake
		if l.last > after {
			first := after + 1
			if size := uint64(len(l.ring)); l.last-after > size {
				first, gap = l.last-size+1, true
			}
			for n := first; n <= l.last; n++ {
				changes = append(changes, l.ring[n%uint64(len(l.ring))])
			}
			last = l.last
			l.mu.Unlock()
			return changes, last, gap, nil
		}
		l.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, after, false, ctx.Err()
		}
	}
}
