package srun

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// abortWithin is how soon a second interrupt must follow the first to count.
const abortWithin = time.Second

// catchSignals lets signals to srun act on its step, until the returned function is
// called.
func (c *client) catchSignals() (stop func()) {
	in := make(chan os.Signal, 8)
	signal.Notify(in, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT)
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		var last time.Time
		times := 0
		for {
			select {
			case <-done:
				return
			case s := <-in:
				last, times = c.handleSignal(s.(syscall.Signal), last, times)
			}
		}
	})
	return func() {
		signal.Stop(in)
		close(done)
		ended.Wait()
	}
}

// handleSignal acts on one signal. An interrupt asks for a second one within a second,
// which goes to the tasks; a third ends the step. A request to end ends it, a second
// one at once; other signals go to the tasks.
func (c *client) handleSignal(s syscall.Signal, last time.Time, times int) (time.Time, int) {
	switch s {
	case syscall.SIGINT:
		now := time.Now()
		if now.Sub(last) > abortWithin && !c.plan.first.end.quit {
			c.sayLine("interrupt (one more within 1 sec to abort)")
			c.sayLine("%s %s: running", c.stepID(), rankText(allRanks(c.info.Tasks)))
			return now, 1
		}
		if times < 2 {
			c.sayLine("sending Ctrl-C to %s", c.stepID())
			c.broadcastFrame(wire.Frame{Kind: wire.MsgSignal, Number: int(s)})
			return now, times + 1
		}
		c.sayTermination()
		c.broadcastFrame(wire.Frame{Kind: wire.MsgKill, Number: times - 2})
		return now, times + 1
	case syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP:
		c.sayTermination()
		c.broadcastFrame(wire.Frame{Kind: wire.MsgKill, Number: min(times, 1)})
		return last, times + 1
	case syscall.SIGCONT:
		return last, times
	}
	c.broadcastFrame(wire.Frame{Kind: wire.MsgSignal, Number: int(s)})
	return last, times
}

// sayTermination says that the step is ended, which --quiet leaves out, as Slurm's does.
func (c *client) sayTermination() {
	if !c.plan.first.show.quiet {
		c.sayLine("forcing job termination")
	}
}

// allRanks lists the ranks of a step.
func allRanks(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
