// Package nodecheck looks whether a node of this machine is fit for work: its disks, memory, mounts,
// clock and devices, and whatever programs of the site say.
//
// # Model
//
// A Checker has a list of checks. Check runs them all at once, each with a deadline, and returns what
// each of them says of the node, or of one of its devices. A check that is told to warn says so
// where it would fail. What could not be looked at is Unsure, which is no evidence against the node;
// a program, a mount or a driver that gives no answer in time has failed, since a job would wait there too.
// Nothing waits for one that the kernel does not return from: it is asked anew when it has returned, and
// checks of several nodes that ask the same at the same time share the answer.
//
// A program of the site gets the node's name as its argument and COX_NODE, COX_POOL and COX_NODE_DEVICES
// (indexes with commas). Exit 0 means that the node is well. After any other exit, lines "device N: TEXT"
// of its standard output say which devices are bad; without such a line it is the node.
//
// # Not done here
//
// Nothing is repaired, kept or decided: service/nodehealth does. Virtual nodes share a machine: what
// is the machine's own is looked at once for each of them. ECC counters and MIG modes are read of
// NVIDIA's devices alone, and XIDs of the kernel's log, which root may read.
package nodecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// The kinds of check.
const (
	Disk    = "disk"
	Memory  = "memory"
	Mounts  = "mounts"
	Clock   = "clock"
	Devices = "devices"
	Script  = "script"
)

// Kinds lists the kinds of check.
func Kinds() []string { return []string{Disk, Memory, Mounts, Clock, Devices, Script} }

// Check is one check that a node has to pass.
type Check struct {
	Kind   string
	Name   string        // in results; empty: the kind
	Fence  bool          // a failure fences; else it warns
	Paths  []string      // of disk and mounts
	Free   int64         // bytes that disk and memory must have left
	Within time.Duration // how far the clock may be off
	Run    []string      // the program of a script, and its arguments
}

// NameOf is the check's name in results.
func (c *Check) NameOf() string { return cmp.Or(c.Name, c.Kind) }

// Config says what a Checker looks at.
type Config struct {
	Checks  []Check
	Timeout time.Duration // of one check; 0: 30 s
	Machine Machine       // zero: this one
}

// Checker runs checks. It is safe for concurrent use.
type Checker struct {
	cfg   Config
	stuck stuckCalls
}

// New makes a Checker.
func New(cfg Config) *Checker {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Machine.setDefaults()
	return &Checker{cfg: cfg, stuck: stuckCalls{calls: map[string]*sharedCall{}}}
}

// CheckNode runs every check on a node. The results are in the order of the checks, those of devices by
// index. An error: ctx has ended.
func (c *Checker) CheckNode(ctx context.Context, n fleet.Node) ([]fleet.CheckResult, error) {
	all := make([][]fleet.CheckResult, len(c.cfg.Checks))
	var running sync.WaitGroup
	for i := range c.cfg.Checks {
		running.Go(func() { all[i] = c.runCheck(ctx, &c.cfg.Checks[i], &n) })
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.Concat(all...), nil
}

// runCheck runs one check to its deadline.
func (c *Checker) runCheck(ctx context.Context, k *Check, n *fleet.Node) (out []fleet.CheckResult) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	switch k.Kind {
	case Disk:
		out = c.eachPath(ctx, k, c.checkDisk)
	case Mounts:
		out = c.eachPath(ctx, k, c.checkMount)
	case Memory:
		out = []fleet.CheckResult{c.checkMemory(ctx, k)}
	case Clock:
		out = []fleet.CheckResult{c.checkClock(ctx, k)}
	case Devices:
		out = c.checkDevices(ctx, n)
	case Script:
		out = c.runScript(ctx, k, n)
	default:
		out = []fleet.CheckResult{{Verdict: fleet.Unsure, Text: "there is no check " + k.Kind}}
	}
	for i := range out {
		if out[i].Check = k.NameOf(); out[i].Verdict == fleet.Failed && !k.Fence {
			out[i].Verdict = fleet.Warned
		}
	}
	return out
}

// eachPath is the worst of what a look at each path of a check says.
func (c *Checker) eachPath(ctx context.Context, k *Check, look func(ctx context.Context, k *Check, path string) fleet.CheckResult) []fleet.CheckResult {
	found := make([]fleet.CheckResult, len(k.Paths))
	var running sync.WaitGroup
	for i, path := range k.Paths {
		running.Go(func() { found[i] = look(ctx, k, path) })
	}
	running.Wait()
	worst := fleet.CheckResult{Verdict: fleet.Passed}
	var texts []string
	for _, r := range found {
		switch {
		case severity(r.Verdict) > severity(worst.Verdict):
			worst, texts = r, []string{r.Text}
		case r.Verdict == worst.Verdict:
			texts = append(texts, r.Text)
		}
	}
	worst.Text = strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
	return []fleet.CheckResult{worst}
}

func severity(v fleet.Verdict) int {
	return slices.Index([]fleet.Verdict{fleet.Passed, fleet.Unsure, fleet.Warned, fleet.Failed}, v)
}

// stuckCalls bounds the calls that the kernel does not return from, as one of a network file system whose
// server is gone: one of each name at a time.
type stuckCalls struct {
	mu    sync.Mutex
	calls map[string]*sharedCall
}

// sharedCall is a call that has not returned.
type sharedCall struct {
	done  chan struct{}
	value any
	err   error
}

// errLate is the error of a call that has not returned in time.
var errLate = errors.New("it gives no answer")

// callOnce returns what f does, or errLate once ctx has ended. While an earlier call of the name has not
// returned, its answer is taken; its error is not, since it began earlier: f is called then.
func callOnce[T any](ctx context.Context, s *stuckCalls, name string, f func() (T, error)) (T, error) {
	for {
		call, first := s.joinCall(name)
		if first {
			go func() {
				v, err := f()
				call.value, call.err = v, err
				s.mu.Lock()
				delete(s.calls, name)
				s.mu.Unlock()
				close(call.done)
			}()
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			var none T
			return none, errLate
		}
		if v, ok := call.value.(T); ok && (first || call.err == nil) {
			return v, call.err
		}
	}
}

// joinCall is the call of a name that has not returned, or a first one.
func (s *stuckCalls) joinCall(name string) (call *sharedCall, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call = s.calls[name]; call != nil {
		return call, false
	}
	call = &sharedCall{done: make(chan struct{})}
	s.calls[name] = call
	return call, true
}

// lateText is an error of callOnce, about what was asked.
func (c *Checker) lateText(what string, err error) string {
	if errors.Is(err, errLate) {
		return fmt.Sprintf("%s gives no answer within %s", what, c.cfg.Timeout)
	}
	return err.Error()
}
