package supervise

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// containers are the containers of an attempt on this node. One that the job asks for is made
// before the barrier, and has its batch script, its commands and the steps that ask for none of
// their own. A step's own container goes with the step; one with a name stays until the attempt
// ends. It is safe for concurrent use: steps make theirs while the loop runs.
type containers struct {
	s     *supervisor
	ended context.Context //nolint:containedctx // the attempt's end, for those who make containers
	end   context.CancelFunc

	probing sync.Mutex
	probed  *bool // what probeRuntime found; nil: nothing yet

	mu       sync.Mutex
	making   int
	all      map[string]*theContainer // by key; those of steps too, until they are removed
	count    int
	closed   bool
	removed  bool // what was left of them, or nothing was
	removing bool // what is left
}

// theContainer is one container, which may still be being made.
type theContainer struct {
	key   string
	name  string // for the runtime
	image string // as its user wrote it
	ask   job.Container

	made   chan struct{} // closed when box or err is set
	box    *container.Box
	digest string // of the image; empty: the runtime has none
	err    error
	over   <-chan struct{} // closed when the runtime's process has ended
	tidy   bool            // it has, and has removed the container
	pids   []int           // of the runtime, which lead sessions, and of the init
}

// jobContainer is the key of the container that the job asks for.
const jobContainer = "job"

func newContainers(s *supervisor) *containers {
	c := &containers{s: s, all: map[string]*theContainer{}}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// startJobContainer makes the container that the job asks for; f is called by the loop when it is
// there. It reports whether there is one to be made.
func (s *supervisor) startJobContainer(f func(digest string, err error)) bool {
	spec := s.launch.Job.Spec
	if spec.Image == "" {
		return false
	}
	ask := job.Container{}
	if spec.Container != nil {
		ask = *spec.Container
	}
	say := func(line string) {
		if s.program != nil && s.program.stdio[2] != nil {
			_, _ = s.program.stdio[2].WriteString("cox: " + line + "\n")
		}
	}
	c := s.containers
	go func() {
		t, err := c.openContainer(jobContainer, spec.Image, ask, say)
		digest := ""
		if err == nil {
			digest = t.digest
		}
		s.events <- func() { f(digest, err) }
	}()
	return true
}

// makeReady says that the node is ready, once the job's container is there.
func (s *supervisor) makeReady() {
	made := func(digest string, err error) {
		switch {
		case s.state.Phase >= engine.Ending:
		case err != nil:
			s.recordFact(attempt.Record{Kind: attempt.KindRefuse, Cause: containerCause(err), Text: adviceText(err)})
			s.recordFact(attempt.Record{Kind: attempt.KindEnding, Cause: engine.LaunchFailed})
			s.due.kill = time.Now()
		default:
			s.recordFact(attempt.Record{Kind: attempt.KindReady, Ports: s.serving.numbers(), Image: digest})
		}
	}
	if !s.startJobContainer(made) {
		s.recordFact(attempt.Record{Kind: attempt.KindReady, Ports: s.serving.numbers()})
	}
}

// adviceText is an error with what to do about it, in one line.
func adviceText(err error) string {
	if remedy := fault.Remedy(err); remedy != "" {
		return err.Error() + "; " + remedy
	}
	return err.Error()
}

// containerCause is the cause of a launch that fails because of its container: what the job asks
// for is wrong, unless it is a fault of the node.
func containerCause(err error) engine.Cause {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Permission:
		return engine.Refused
	}
	return engine.LaunchFailed
}

// openContainer makes a container, or waits for the one of its key that another step makes.
func (c *containers) openContainer(key, image string, ask job.Container, say func(string)) (*theContainer, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errEnding
	}
	if t := c.all[key]; t != nil && !t.hasFailed() {
		c.mu.Unlock()
		<-t.made
		return t, t.err
	}
	if image == "" {
		c.mu.Unlock()
		return nil, fault.New(fault.NotFound, "container-name: this job has no container %q on %s", ask.Name, c.s.node.Name).
			Advise("add --container-image=NAME to make it")
	}
	c.count++
	t := &theContainer{key: key, image: image, ask: ask, made: make(chan struct{}), name: c.containerName(c.count)}
	c.all[key] = t
	c.removed = false
	c.making++
	c.mu.Unlock()
	t.box, t.err = c.makeContainer(t, image, say)
	close(t.made)
	c.mu.Lock()
	c.making--
	closed := c.closed
	c.mu.Unlock()
	if closed && t.box != nil {
		t.box.Close()
	}
	c.s.spawner.wakeLoop() // it may wait for this one
	return t, t.err
}

// hasFailed reports whether a container could not be made, or has ended.
func (t *theContainer) hasFailed() bool {
	select {
	case <-t.made:
		return t.err != nil || t.box.Ended()
	default:
		return false
	}
}

// containerName names a container for the runtime: no other of the node has the name.
func (c *containers) containerName(n int) string {
	l := c.s.launch
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.Mark(c.s.node.Name)))
	return fmt.Sprintf("cox-%s-%d-%s-%x-%d", l.Job.ID, l.Ref.Attempt, c.s.node.Name, h.Sum64(), n)
}

// makeContainer gets the image, starts the container and takes its init into the job.
func (c *containers) makeContainer(t *theContainer, image string, say func(string)) (*container.Box, error) {
	s := c.s
	set := s.launch.Containers
	if set == nil {
		return nil, fault.New(fault.Unsupported, "image %s: this pool has no containers of its own", image).
			Advise("leave the image out to run with the node's own programs")
	}
	spec, err := c.containerSpec(t, image)
	if err != nil {
		return nil, err
	}
	if spec.NoCgroups, err = c.probeRuntime(set); err != nil {
		return nil, err
	}
	rt := set.New()
	if t.digest, err = c.getImage(rt, spec, say); err != nil {
		return nil, err
	}
	if err := s.noteContainer(t.name); err != nil {
		return nil, fmt.Errorf("note the container: %w", err)
	}
	for _, cmd := range rt.Prepare(spec) {
		if err := c.runCommand(cmd, containerStart); err != nil {
			return nil, fmt.Errorf("make the container of image %s on %s: %w", image, s.node.Name, err)
		}
	}
	box, err := c.startContainer(t, rt.Start(spec), spec.Init[2])
	if err != nil {
		return nil, fmt.Errorf("image %s on %s: %w", image, s.node.Name, err)
	}
	c.notePIDs(t, box.PID)
	if p, err := proc.Read(box.PID); err == nil && p.Parent != unix.Getpid() {
		c.notePIDs(t, p.Parent) // who watches the container for the runtime
	}
	if err := c.claimInit(box, set.Runtime); err != nil {
		box.Close()
		return nil, fmt.Errorf("image %s on %s: %w", image, s.node.Name, err)
	}
	return box, nil
}
