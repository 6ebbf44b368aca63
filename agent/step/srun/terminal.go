package srun

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// windowOf is the size of a terminal; zero: the file is none.
func windowOf(f *os.File) wire.Window {
	if f == nil {
		return wire.Window{}
	}
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return wire.Window{}
	}
	return wire.Window{Rows: w.Row, Cols: w.Col}
}

// useTerminal has the keys of this terminal go to that of the first task as they are, and the size
// follow, for --pty. restore, which may be called often, gives the terminal back.
func (c *client) useTerminal() (restore func()) {
	in := c.stdio.In
	if c.plan.prep.Terminal == nil || in == nil || !term.IsTerminal(int(in.Fd())) || isTerminalOfOthers(in) {
		return func() {}
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	var following sync.WaitGroup
	following.Go(func() {
		for range changed {
			c.broadcastFrame(wire.Frame{Kind: wire.MsgResize, Number: windowOf(in).Pack()})
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(changed)
		close(changed)
		following.Wait()
		_ = term.Restore(int(in.Fd()), old)
	})
}
