package main

import (
	"fmt"
	"sync"
	"time"
)

// progressFrom is the size in bytes from which sending a text is worth a word.
const progressFrom = 256 << 10

// progress shows on a terminal that something long is being done; the returned
// function removes it. Without a terminal, or for little work, nothing is shown.
func (a *app) progress(size int, format string, args ...any) (stop func()) {
	if size < progressFrom || !onTerminal(a.err) {
		return func() {}
	}
	return a.spin(func() string { return fmt.Sprintf(format, args...) })
}

// spin shows a line that is drawn anew as time goes by, until it is stopped.
func (a *app) spin(text func() string) (stop func()) {
	if !onTerminal(a.err) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	began := a.now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				fmt.Fprint(a.err, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(a.err, "\r\x1b[K… %s, %.0f s", text(), a.now().Sub(began).Seconds())
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-ended })
}
