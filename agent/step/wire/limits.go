package wire

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// Bounds of what srun may ask of a Node. Its supervisor is root's where jobs run as
// their owners, outside of every control group, and a job's processes may say to it
// what they like: what they make it keep must not be the machine's memory.
const (
	MaxLinks   = 4096      // connections at once
	MaxKept    = 256 << 20 // bytes of messages that are kept as long as their connections
	MaxTasks   = 1 << 18   // of a step
	MaxObjects = 1 << 18   // in one message: an empty one costs three bytes there and a hundred here
)

// maxBytes is the longest body of a message to a Node.
func (k Kind) maxBytes() int {
	switch k {
	case MsgPrepare:
		return 32 << 20
	case MsgCreate, MsgExec:
		return 4 << 20
	case MsgStdin:
		return 1 << 20
	}
	return 64 << 10
}

// Budget is what the messages that are kept may take together.
type Budget struct {
	mu    sync.Mutex
	spent int
}

// chargeLink refuses what there is no room for.
func (p *Budget) chargeLink(l *Link, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.charged < 0 || p.spent+n > MaxKept {
		return ErrCrowded
	}
	p.spent += n
	l.charged += n
	return nil
}

// Spend counts what is kept apart from links; false: it is too much.
func (p *Budget) Spend(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += n
	return p.spent <= MaxKept
}

func (p *Budget) refundLink(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent -= max(l.charged, 0)
	l.charged = -1
}

// ErrCrowded refuses what would be too much.
var ErrCrowded = errors.New("the job has too many steps at once on this node; start fewer, or wait for some to end")

// checkSize checks the length of a message before there is memory for it.
func (l *Link) checkSize(k Kind, size int) error {
	if l.budget == nil {
		if size > maxBody {
			return fmt.Errorf("message of %d bytes is too long", size)
		}
		return nil
	}
	if size > k.maxBytes() {
		return fmt.Errorf("message %d of %d bytes is too long", k, size)
	}
	if k != MsgCreate && k != MsgPrepare && k != MsgExec {
		return nil
	}
	return l.budget.chargeLink(l, size)
}

// Refund gives back what the messages of a link took. It gets no more.
func (l *Link) Refund() {
	if l.budget != nil {
		l.budget.refundLink(l)
	}
}

// checkObjects is an error for a body that would be much larger in memory.
func checkObjects(body []byte) error {
	if n := bytes.Count(body, []byte("{")); n > MaxObjects {
		return fmt.Errorf("a message with %d objects is too large", n)
	}
	return nil
}

// Check reports the first way in which a preparation does not fit the allocation or
// contradicts itself. srun makes none such; a job's own program may.
func (p *Preparation) Check(a *step.Alloc) error {
	i := &p.Info
	if i.Step < 0 || i.Tasks < 1 || i.Tasks > MaxTasks || len(i.Components) == 0 || len(p.Programs) != len(i.Components) {
		return fmt.Errorf("step %d with %d tasks, %d components and %d programs is none", i.Step, i.Tasks, len(i.Components), len(p.Programs))
	}
	for _, c := range i.Components {
		if c.Group < 0 || c.Group >= len(a.Groups) || c.First < 0 || c.Tasks < 0 || c.First+c.Tasks > i.Tasks {
			return fmt.Errorf("step %d has a component that does not fit the job", i.Step)
		}
	}
	ranks := 0
	for _, part := range i.Parts {
		if part.Component < 0 || part.Component >= len(i.Components) || part.Node < 0 || part.Node >= len(a.Nodes) {
			return fmt.Errorf("step %d has a part that does not fit the job", i.Step)
		}
		for _, r := range part.Ranks {
			if r < 0 || r >= i.Tasks {
				return fmt.Errorf("step %d of %d tasks has no rank %d", i.Step, i.Tasks, r)
			}
		}
		if ranks += len(part.Ranks); ranks > i.Tasks {
			return fmt.Errorf("step %d has more ranks than its %d tasks", i.Step, i.Tasks)
		}
	}
	return nil
}
