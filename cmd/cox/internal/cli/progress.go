package cli

import (
	"fmt"
	"sync"
	"time"
)

// progressFrom is the size in bytes from which sending a text is worth a word.
const progressFrom = 256 << 10

// ShowProgress shows on a terminal that something long is being done; the returned
// function removes it. Without a terminal, or for little work, nothing is shown.
func (a *App) ShowProgress(size int, format string, args ...any) (stop func()) {
	if size < progressFrom || !IsTerminal(a.Err) {
		return func() {}
	}
	return a.ShowSpinner(func() string { return fmt.Sprintf(format, args...) })
}

// ShowSpinner shows a line that is drawn anew as time goes by, until it is stopped.
func (a *App) ShowSpinner(text func() string) (stop func()) {
	if !IsTerminal(a.Err) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	began := a.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				fmt.Fprint(a.Err, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(a.Err, "\r\x1b[K… %s, %.0f s", text(), a.Now().Sub(began).Seconds())
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-ended })
}
