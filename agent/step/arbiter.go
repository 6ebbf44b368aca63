package step

import (
	"errors"
	"slices"
	"sync"
)

// arbiter gives steps their numbers and resources, first come first served among
// those that fit. It lives on the first node of the allocation.
type arbiter struct {
	alloc *Alloc
	gone  func(*Info) // waits until nothing of a step lives anywhere

	mu      sync.Mutex
	next    int     // number of the next step
	held    []*Info // steps that hold resources
	waiting []*waiter
}

// waiter is a step that waits for others to end.
type waiter struct {
	request request
	made    chan *Info // delivers the step once it has resources; has room for it
}

// newArbiter makes the arbiter of an allocation.
func newArbiter(a *Alloc, gone func(*Info)) *arbiter { return &arbiter{alloc: a, gone: gone} }

// create makes a step, or a waiter for it if it has to wait for others.
func (b *arbiter) create(r request) (*Info, *waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := b.try(r)
	if !errors.Is(err, errBusy) || r.Immediate {
		return info, nil, err
	}
	w := &waiter{r, make(chan *Info, 1)}
	b.waiting = append(b.waiting, w)
	return nil, w, err
}

// try places a step on what is free now and lets it hold that. b.mu is held.
func (b *arbiter) try(r request) (*Info, error) {
	info, err := layout(b.alloc, b.free(), r)
	if err != nil {
		return nil, err
	}
	info.Step = b.next
	b.next++
	b.held = append(b.held, info)
	return info, nil
}

// free is what the steps that run leave. b.mu is held.
func (b *arbiter) free() rooms {
	left := everything(b.alloc)
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
					r.devices = without(r.devices, p.Devices)
					r.whole = false
				}
			}
		}
	}
	return left
}

// release gives back what a step held, and starts waiting steps that now fit.
func (b *arbiter) release(info *Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = slices.DeleteFunc(b.held, func(i *Info) bool { return i == info })
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		made, err := b.try(w.request)
		if err == nil {
			w.made <- made
		}
		return err == nil
	})
}

// forget drops a waiter. The step that it may have got meanwhile is returned.
func (b *arbiter) forget(w *waiter) *Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(x *waiter) bool { return x == w })
	select {
	case info := <-w.made:
		return info
	default:
		return nil
	}
}

// serve makes a step for srun, and keeps its resources for it until srun says that
// it is over everywhere, or until srun is gone and so are the step's processes.
func (b *arbiter) serve(l *link, r request) {
	refuse := func(err error) { _ = l.send(frame{kind: mRefused, body: []byte(err.Error())}) }
	info, wait, err := b.create(r)
	if wait == nil && err != nil {
		refuse(err)
		return
	}
	done := make(chan bool, 1)
	go func() {
		f, err := l.receive() // ends with the connection, which the caller closes
		done <- err == nil && f.kind == mDone
	}()
	if wait != nil {
		_ = l.send(frame{kind: mBusy, body: []byte(err.Error())})
		select {
		case info = <-wait.made:
		case <-done:
			if info = b.forget(wait); info != nil {
				b.release(info)
			}
			return
		}
	}
	if l.sendJSON(mCreated, info) == nil && <-done {
		b.release(info)
		return
	}
	b.gone(info)
	b.release(info)
}
