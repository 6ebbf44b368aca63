// Package nodefence closes nodes of a Slurm cluster to all new work, and looks what is on them
// (engine.NodeFencer).
//
// The model. A fence is a drain (State=DRAIN) with a reason of ours, and a field in the node's Extra: that
// says that the fence is ours where an administrator's drain has its own reason, set before ours or after. Both
// are set by one request. Unfence takes the field away, and the drain only if its reason is ours. A node
// that has the field and is not drained was undrained by hand: no fence stands there, and Overruled says so.
//
// Slurm has no request that is made only if nothing has changed: an administrator's drain in the milliseconds
// between our look and our request loses its reason to ours.
//
// Guarantees: Fence returns nil only once slurmctld shows the fence. Empty counts what slurmctld lists after it
// was seen to show the fence: a job is over for it only when the node's slurmd has said that its epilog has ended.
// It does not see processes: nothing of ours can be run on a drained node. Where Slurm itself drained the node because
// it could not clean up after a job, the node is not known to be empty; slurmctld does not say that of its own failed
// prologs and epilogs where a node was drained before.
package nodefence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Fencer is an engine.NodeFencer. It is safe for concurrent use.
type Fencer struct {
	site     site.Site
	book     *kit.FenceBook
	own      func(comment string) bool
	patience time.Duration

	mu     sync.Mutex
	closed map[string]engine.NodeFence // nodes on which nothing is to be launched, as far as it is known here
}

// New makes one for a way into a cluster, with a file of its own. own reports whether a job with this comment is
// of the pool; patience is how long the cluster may take.
func New(s site.Site, file string, own func(comment string) bool, patience time.Duration) (*Fencer, error) {
	book, err := kit.OpenFenceBook(file)
	if err != nil {
		return nil, err
	}
	return &Fencer{site: s, book: book, own: own, patience: patience, closed: map[string]engine.NodeFence{}}, nil
}

// Fence closes a node; see engine.NodeFencer.
func (f *Fencer) Fence(ctx context.Context, node string, to engine.NodeFence) error {
	return f.changeNode(ctx, node, to, func(n *site.Node, m Mark) (site.NodeChange, bool) {
		c := site.NodeChange{}
		if extra := withMark(n.Extra, to); extra != n.Extra {
			c.Extra = &extra
		}
		if reason := formatReason(to); !m.Drained || m.Ours && n.Reason != reason {
			c.State, c.Reason = "DRAIN", reason
		}
		return c, m.Stands && m.NodeFence == to
	})
}

// Unfence removes our fence; see engine.NodeFencer.
func (f *Fencer) Unfence(ctx context.Context, node string, to engine.NodeFence) error {
	return f.changeNode(ctx, node, to, func(n *site.Node, m Mark) (site.NodeChange, bool) {
		c := site.NodeChange{}
		if extra := withoutMark(n.Extra); extra != n.Extra {
			c.Extra = &extra
		}
		if m.Ours {
			c.State = "UNDRAIN"
		}
		return c, m.Epoch == 0
	})
}

// changeNode makes what step says of a node as it is, until that says that it is done.
func (f *Fencer) changeNode(ctx context.Context, node string, to engine.NodeFence, step func(*site.Node, Mark) (c site.NodeChange, done bool)) error {
	k, ok := f.site.(site.NodeKeeper)
	if !ok {
		return fault.New(fault.Unsupported, "this way into Slurm cannot change nodes")
	}
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	var n *site.Node
	leave, err := f.book.Enter(ctx, node, to, func() (epoch uint64, err error) {
		if n, err = f.nodeNamed(ctx, node); err != nil {
			return 0, err
		}
		return Read(n).Epoch, nil
	})
	if err != nil {
		return err
	}
	defer leave()
	for asked := false; ; asked = true {
		c, done := step(n, Read(n))
		f.noteNode(n)
		if done {
			return nil
		}
		if asked {
			return fault.New(fault.Unavailable, "Slurm took the change of node %s and does not show it: state %s, reason %q, extra %q", node, n.State, n.Reason, n.Extra)
		}
		f.mu.Lock()
		f.closed[node] = to // until it is seen how it is
		f.mu.Unlock()
		switch err := k.UpdateNode(ctx, node, c); {
		case fault.KindOf(err) == fault.Permission:
			return fault.New(fault.Permission, "fence node %s: %w", node, err).
				Advise("make the user of the pool an operator of Slurm: sacctmgr modify user NAME set adminlevel=Operator")
		case fault.KindOf(err) == fault.Unsupported:
			return err
		case err != nil:
			return fault.New(fault.Unavailable, "fence node %s: %w", node, err).Advise("%s", fault.Remedy(err))
		}
		if n, err = f.nodeNamed(ctx, node); err != nil {
			return err
		}
	}
}

// nodeNamed reads a node.
func (f *Fencer) nodeNamed(ctx context.Context, name string) (*site.Node, error) {
	all, err := f.site.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n site.Node) bool { return n.Name == name })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "Slurm has no node %q", name)
	}
	return &all[i], nil
}

// noteNode keeps what is seen of a node's mark.
func (f *Fencer) noteNode(n *site.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := Read(n); m.Epoch != 0 {
		f.closed[n.Name] = m.NodeFence
	} else {
		delete(f.closed, n.Name)
	}
}

// Refuse is the error of a launch that a fence keeps from one of its nodes, else nil. It asks nobody: a fence
// of another process is known once Nodes was asked.
func (f *Fencer) Refuse(ref engine.Ref, claims []fleet.Claim) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range claims {
		if to, ok := f.closed[claims[i].Node]; ok {
			return engine.OnFenced(ref, claims[i].Node, to)
		}
	}
	return nil
}

// Empty looks what is on a node; see engine.NodeFencer.
func (f *Fencer) Empty(ctx context.Context, node string) (c engine.NodeContents, err error) {
	k, ok := f.site.(site.NodeKeeper)
	if !ok {
		return c, fault.New(fault.Unsupported, "this way into Slurm cannot say what is on a node")
	}
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	n, err := f.nodeNamed(ctx, node)
	if err != nil {
		return c, err
	}
	m := Read(n)
	if m.Stands {
		to := m.NodeFence
		c.Fence = &to
	}
	c.At, c.Looked, c.Drained = time.Now().Round(0), []string{"allocations"}, drainedBy(n, m)
	there, err := k.WorkOn(ctx, node)
	if err != nil {
		return c, err
	}
	if n, err = f.nodeNamed(ctx, node); err != nil { // as it is after the list of jobs
		return c, err
	}
	if m = Read(n); !m.Stands {
		c.Fence = nil
	}
	mine := map[string]bool{}
	for _, w := range there {
		x := engine.NodeWork{Kind: "allocation", Name: "job " + w.Name, Owner: w.User, Ours: f.own(w.Comment)}
		if w.Step {
			jobID, _, _ := strings.Cut(w.Name, ".")
			x.Kind, x.Name, x.Ours = "step", "step "+w.Name, mine[jobID]
			if !slices.Contains(c.Looked, "steps") {
				c.Looked = append(c.Looked, "steps")
			}
		}
		mine[w.Name] = x.Ours
		c.Work = append(c.Work, x)
	}
	state := strings.ToLower(n.State)
	if len(c.Work) == 0 && (strings.Contains(state, "completing") || strings.HasPrefix(state, "comp")) {
		c.Work = append(c.Work, engine.NodeWork{Kind: "allocation", Name: "a job whose epilog has not ended"})
	}
	if why := leftBehind(n, m); why != "" {
		c.Unknown = append(c.Unknown, why)
	}
	switch {
	case n.Down:
		c.Unknown = append(c.Unknown, fmt.Sprintf("slurmd of node %s does not answer: Slurm has it as %s", node, cmp.Or(strings.TrimSpace(n.State+" "+n.Reason), "unknown")))
	case len(c.Work) == 0 && n.UsedCPUs > 0:
		c.Unknown = append(c.Unknown, fmt.Sprintf("Slurm counts %d CPUs of node %s as in use, and lists no job on it", n.UsedCPUs, node))
	}
	return c, nil
}

// failedCleanups begin the reasons with which slurmd and slurmctld drain a node on which something of a job may be
// left, though Slurm has the job as ended; in lower case.
var failedCleanups = []string{
	"kill task failed", "job step not running", "job not running", // slurmstepd gave up on processes it cannot kill
	"prolog error", "epilog error", "prolog/epilog failure", "batch job complete failure", duplicateJob,
}

// duplicateJob is the reason of a node on which slurmctld began a job again that still had its number there.
const duplicateJob = "duplicate jobid"

// leftBehind says that what has drained a node leaves open whether anything of an ended job is there; empty: it does
// not.
func leftBehind(n *site.Node, m Mark) string {
	reason := strings.ToLower(strings.TrimSpace(n.Reason))
	if !m.Drained || !slices.ContainsFunc(failedCleanups, func(begin string) bool { return strings.HasPrefix(reason, begin) }) {
		return ""
	}
	return fmt.Sprintf("Slurm drained node %s because of %q: processes of a job that has ended may be left there; once none are: "+
		"scontrol update nodename=%s state=drain reason=checked", n.Name, strings.TrimSpace(n.Reason), n.Name)
}

// drainedBy is what closes a node beside our fence, in Slurm's words; empty: nothing.
func drainedBy(n *site.Node, m Mark) string {
	switch {
	case !n.Drained || OnlyOurs(n, m):
		return ""
	case m.Ours:
		return "Slurm: " + n.State
	}
	return strings.TrimSpace("Slurm: " + n.State + " " + n.Reason)
}

// OnlyOurs reports whether nobody but us keeps work off a node; whether it answers is not asked.
func OnlyOurs(n *site.Node, m Mark) bool {
	state := strings.ToLower(n.State)
	return m.Ours && !strings.Contains(state, "maint") && !strings.Contains(state, "reboot")
}

// Overruled says which nodes have our mark and are open: somebody undrained them by hand; empty: none. Nothing is
// launched there by the pool, and Slurm starts what others submit.
func Overruled(found []site.Node) string {
	var names []string
	for i := range found {
		if m := Read(&found[i]); m.Epoch != 0 && !m.Stands {
			names = append(names, found[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s were undrained by hand while fenced: Slurm may start work on machines that are another pool's; "+
		"scontrol update nodename=%s state=drain reason=fenced closes them again", hostlist.Compress(names), hostlist.Compress(names))
}

// BegunTwice says which nodes slurmctld drained itself because it had lost that a job ran there and began it again;
// empty: none. Only an administrator brings them back, and until then nothing that Slurm has for them begins. A node
// with our mark is left to the hand-over, which says what it waits for.
func BegunTwice(found []site.Node) string {
	var names []string
	for i := range found {
		n := &found[i]
		if m := Read(n); m.Epoch == 0 && n.Drained && strings.HasPrefix(strings.ToLower(strings.TrimSpace(n.Reason)), duplicateJob) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Slurm drained %s itself (Duplicate jobid: it began a job again that it had lost): jobs placed there do not begin, "+
		"and what ran there may stay uncertain; scontrol update nodename=%s state=resume brings them back", hostlist.Compress(names), hostlist.Compress(names))
}

// See keeps what a list of nodes says of marks.
func (f *Fencer) See(found []site.Node) {
	for i := range found {
		f.noteNode(&found[i])
	}
}
