// Package eventlog hands changes to any number of watchers without letting a slow
// one hold up the writer.
//
// A Log keeps the last changes in a ring. A watcher reads by number and can leave
// and come back with the last number that it saw; where the ring no longer has
// what it missed, it is told so (Next's gap) and reads the whole state anew.
package eventlog

import (
	"context"
	"sync"
)

// Log is a ring of changes numbered from 1 without gaps. All methods are safe for
// concurrent use.
type Log[T any] struct {
	mu    sync.Mutex
	ring  []T
	first uint64 // that was ever appended
	last  uint64
	wake  chan struct{} // closed and replaced at every append
}

// NewLog returns a log that remembers the last size changes.
func NewLog[T any](size int) *Log[T] { return Resume[T](size, 0) }

// Resume returns a log whose first change gets the number after last. Changes up to
// last are forgotten ones.
func Resume[T any](size int, last uint64) *Log[T] {
	return &Log[T]{ring: make([]T, size), first: last + 1, last: last, wake: make(chan struct{})}
}

// Append adds changes and returns the number of the last one.
func (l *Log[T]) Append(vs ...T) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(vs) == 0 {
		return l.last
	}
	for _, v := range vs {
		l.last++
		l.ring[l.last%uint64(len(l.ring))] = v
	}
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
			first := max(after+1, l.first)
			if size := uint64(len(l.ring)); l.last-first >= size {
				first = l.last - size + 1
			}
			gap = first > after+1
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
