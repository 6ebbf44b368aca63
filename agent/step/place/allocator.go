package place

import (
	"errors"
	"slices"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// Allocator gives steps their numbers and resources, first come first served among
// those that fit. It lives on the first node of the allocation.
type Allocator struct {
	alloc *step.Alloc

	mu      sync.Mutex
	next    int          // number of the next step
	held    []*step.Info // steps that hold resources
	waiting []*Waiter
}

// Waiter is a step that waits for others to end.
type Waiter struct {
	request wire.Request
	Made    chan *step.Info // delivers the step once it has resources; has room for it
}

// NewAllocator makes the allocator of an allocation.
func NewAllocator(a *step.Alloc) *Allocator { return &Allocator{alloc: a} }

// Create makes a step, or a waiter for it if it has to wait for others.
func (b *Allocator) Create(r wire.Request) (*step.Info, *Waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := b.allocateNow(r)
	if !errors.Is(err, errBusy) || r.Immediate {
		return info, nil, err
	}
	w := &Waiter{r, make(chan *step.Info, 1)}
	b.waiting = append(b.waiting, w)
	return nil, w, err
}

// allocateNow places a step on what is free now and lets it hold that. b.mu is held.
func (b *Allocator) allocateNow(r wire.Request) (*step.Info, error) {
	info, err := layoutStep(b.alloc, b.freeResources(), r)
	if err != nil {
		return nil, err
	}
	info.Step = b.next
	b.next++
	b.held = append(b.held, info)
	return info, nil
}

// freeResources is what the steps that run leave. b.mu is held.
func (b *Allocator) freeResources() freeParts {
	left := allParts(b.alloc)
	for _, info := range b.held {
		if info.Overlap {
			continue
		}
		for _, p := range info.Parts {
			g := info.Components[p.Component].Group
			for i, part := range b.alloc.Groups[g].Parts {
				if part.Node == p.Node {
					r := &left[g][i]
					r.cpus = max(r.cpus-p.CPUs, 0)
					r.devices = removeDevices(r.devices, p.Devices)
					r.whole = false
				}
			}
		}
	}
	return left
}

// Release gives back what a step held, and starts waiting steps that now fit.
func (b *Allocator) Release(info *step.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = slices.DeleteFunc(b.held, func(i *step.Info) bool { return i == info })
	b.waiting = slices.DeleteFunc(b.waiting, func(w *Waiter) bool {
		made, err := b.allocateNow(w.request)
		if err == nil {
			w.Made <- made
		}
		return err == nil
	})
}

// Forget drops a waiter. The step that it may have got meanwhile is returned.
func (b *Allocator) Forget(w *Waiter) *step.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(x *Waiter) bool { return x == w })
	select {
	case info := <-w.Made:
		return info
	default:
		return nil
	}
}
