package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/node"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/containeropt"
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

	made chan struct{} // closed when box or err is set
	box  *container.Box
	err  error
	over <-chan struct{} // closed when the runtime's process has ended
	tidy bool            // it has, and has removed the container
	pids []int           // of the runtime, which lead sessions, and of the init
}

// containerStart is how long a container may take to start once its image is there.
const containerStart = 2 * time.Minute

// removeLimit is how long the removal of what is left of containers may take.
const removeLimit = time.Minute

// jobContainer is the key of the container that the job asks for.
const jobContainer = "job"

func newContainers(s *supervisor) *containers {
	c := &containers{s: s, all: map[string]*theContainer{}}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// startJobContainer makes the container that the job asks for; f is called by the loop when it is
// there. It reports whether there is one to be made.
func (s *supervisor) startJobContainer(f func(error)) bool {
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
		_, err := c.openContainer(jobContainer, spec.Image, ask, say)
		s.events <- func() { f(err) }
	}()
	return true
}

// makeReady says that the node is ready, once the job's container is there.
func (s *supervisor) makeReady() {
	made := func(err error) {
		switch {
		case s.state.Phase >= engine.Ending:
		case err != nil:
			s.recordFact(attempt.Record{Kind: attempt.KindRefuse, Cause: containerCause(err), Text: err.Error()})
			s.recordFact(attempt.Record{Kind: attempt.KindEnding, Cause: engine.LaunchFailed})
			s.due.kill = time.Now()
		default:
			s.recordFact(attempt.Record{Kind: attempt.KindReady, Ports: s.serving.numbers()})
		}
	}
	if !s.startJobContainer(made) {
		s.recordFact(attempt.Record{Kind: attempt.KindReady, Ports: s.serving.numbers()})
	}
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

// own is the job's container; nil: it asks for none.
func (c *containers) own() *theContainer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[jobContainer]
}

// placeStep is node.Config's: where the tasks of a step run.
func (c *containers) placeStep(ask *wire.Container, step int, say func(string)) (*node.Place, error) {
	if ask == nil {
		own := c.own()
		if own == nil {
			return nil, nil
		}
		in := c.place(own, nil)
		in.HasDir = own.box.HasDir
		return in, nil
	}
	key := fmt.Sprintf("step%d", step)
	if ask.Container.Name != "" {
		key = "name-" + ask.Container.Name
		if own := c.own(); own != nil && own.ask.Name == ask.Container.Name {
			key = jobContainer
		}
	}
	t, err := c.openContainer(key, ask.Image, ask.Container, say)
	if err != nil {
		return nil, err
	}
	if err := t.checkReuse(ask); err != nil {
		return nil, err
	}
	release := func() {}
	if ask.Container.Name == "" {
		release = t.box.Close
	}
	in := c.place(t, release)
	in.Dir = cmp.Or(ask.Container.WorkDir, in.Dir)
	if len(ask.Container.Env) > 0 {
		in.Env = c.environOf(t, ask.Container.Env)
	}
	return in, nil
}

// checkReuse refuses what a step asks for of a container that is there already and is otherwise.
func (t *theContainer) checkReuse(ask *wire.Container) error {
	option := ""
	differs := func(asked, is *bool) bool { return asked != nil && *asked != isTrue(is) }
	want := &ask.Container
	switch {
	case ask.Image != "" && ask.Image != t.image:
		option = "container-image"
	case slices.ContainsFunc(want.Mounts, func(m job.Mount) bool {
		return !slices.ContainsFunc(t.ask.Mounts, func(o job.Mount) bool {
			return o.Source == m.Source && o.Target == m.Target && slices.Equal(o.Flags, m.Flags)
		})
	}):
		option = "container-mounts"
	case want.Writable != nil && *want.Writable == (t.ask.Writable != nil && !*t.ask.Writable):
		option = "container-writable or container-readonly"
	case differs(want.RemapRoot, t.ask.RemapRoot):
		option = "container-remap-root"
	case differs(want.Entrypoint, t.ask.Entrypoint):
		option = "container-entrypoint"
	case differs(want.Home, t.ask.Home):
		option = "container-mount-home"
	default:
		return nil
	}
	return fault.New(fault.Conflict, "%s: the container %q was made otherwise, with image %s", option, want.Name, t.image).
		Advise("leave the option out, or give the container of this step another name")
}

// environOf is how programs of a container have their environment, with variables of the job kept.
func (c *containers) environOf(t *theContainer, keep []string) func(env []string) []string {
	l := c.s.launch
	return func(env []string) []string {
		if l.Containers.ShowsOwn() {
			env = container.NumberDevices(env, l.GPUs[c.s.node.Name])
		}
		return container.Environ(env, t.box.Env, keep, binDir(l.Root))
	}
}

// place is where processes of a step run in a container.
func (c *containers) place(t *theContainer, release func()) *node.Place {
	return &node.Place{
		Spawner: &boxSpawner{c: c, box: t.box},
		Dir:     cmp.Or(t.ask.WorkDir, t.box.Dir),
		Env:     c.environOf(t, t.ask.Env),
		Release: release,
	}
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
	if err := c.getImage(rt, spec, say); err != nil {
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

// containerSpec describes a container to the runtime.
func (c *containers) containerSpec(t *theContainer, image string) (*container.Spec, error) {
	s, l := c.s, c.s.launch
	spec := &container.Spec{
		Name: t.name, Mark: strings.TrimPrefix(l.Mark(s.node.Name), attempt.MarkVariable+"="), Image: image,
		Cache: l.Containers.Cache, Rc: filepath.Join(s.Sockets, "rc"), WorkDir: t.ask.WorkDir,
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), NoQueues: l.Containers.NoQueues,
		RemapRoot: isTrue(t.ask.RemapRoot), Entrypoint: isTrue(t.ask.Entrypoint), ReadOnly: t.ask.Writable != nil && !*t.ask.Writable,
		Init: []string{filepath.Join(binDir(l.Root), "cox"), container.InitCommand, filepath.Join(s.Sockets, t.key)},
	}
	if l.User != nil {
		spec.UID, spec.GID = l.User.UID, l.User.GID
	}
	spec.Root = spec.UID == 0
	if containeropt.IsFile(image) && !filepath.IsAbs(image) {
		spec.Image = filepath.Join(l.Job.Spec.WorkDir, image)
	}
	for i := range t.ask.Mounts {
		m, err := s.checkMount(t.ask.Mounts[i])
		if err != nil {
			return nil, err
		}
		spec.Mounts = append(spec.Mounts, m)
	}
	if err := c.checkImage(spec); err != nil {
		return nil, err
	}
	if err := c.addOwnMounts(t, spec); err != nil {
		return nil, err
	}
	gpus := l.GPUs[s.node.Name]
	spec.Devices = container.Devices(gpus, container.CDIDirs, "/dev")
	spec.NVIDIA, spec.AMD = container.HasVendor(gpus)
	return spec, nil
}

// checkImage refuses what the runtime cannot run, and a directory as image where the site forbids
// to mount it.
func (c *containers) checkImage(spec *container.Spec) error {
	s := c.s
	if err := s.launch.Containers.CheckSpec(spec); err != nil {
		return err
	}
	if !containeropt.IsFile(spec.Image) {
		return nil
	}
	isDir := false
	err := s.user.runAsUser(func() error {
		st, err := os.Stat(spec.Image)
		isDir = err == nil && st.IsDir()
		return err
	})
	switch {
	case err != nil:
		return nil // getImage says so
	case !isDir && s.launch.Containers.Runtime == container.Podman:
		return fault.New(fault.Invalid, "image %s: podman runs the files of a directory, and this is a file", spec.Image).
			Advise("load it first (podman load --input FILE), and name the image that podman prints")
	case !isDir:
		return nil
	}
	m, err := s.checkMount(job.Mount{Source: spec.Image, Target: "/", Flags: []string{"rw"}})
	if err != nil {
		return fmt.Errorf("image %s: %w", spec.Image, err)
	}
	spec.Image = m.Source
	return nil
}

// probeRuntime reports whether the runtime can leave containers in the control group of its caller.
func (c *containers) probeRuntime(set *container.Settings) (bool, error) {
	if set.NoCgroups != nil {
		return *set.NoCgroups, nil
	}
	cmd := set.ProbeCommand()
	if len(cmd.Words) == 0 {
		return false, nil
	}
	out, err := c.captureCommand(cmd, containerStart)
	if err != nil {
		return false, set.ProbeError(err)
	}
	return set.ReadProbe(out), nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// addOwnMounts adds what the container sees besides: the commands and sockets of the job, its
// working directory where the form of the job is not Slurm's, and the home directory if it is
// asked for.
func (c *containers) addOwnMounts(t *theContainer, spec *container.Spec) error {
	l := c.s.launch
	add := func(dir string) {
		if !slices.ContainsFunc(spec.Mounts, func(m job.Mount) bool { return m.Target == dir }) {
			spec.Mounts = append(spec.Mounts, job.Mount{Source: dir, Target: dir, Flags: []string{"rw", "rbind"}})
		}
	}
	addChecked := func(dir string) error {
		if len(l.Containers.Mounts) > 0 {
			if _, err := c.s.checkMount(job.Mount{Source: dir, Target: dir}); err != nil {
				return err
			}
		}
		add(dir)
		return nil
	}
	if home := c.s.userHome(); home != "" && isTrue(t.ask.Home) {
		if err := addChecked(home); err != nil {
			return err
		}
	}
	if t.key == jobContainer && l.Job.Spec.Source.Form != "sbatch" {
		if err := addChecked(l.Job.Spec.WorkDir); err != nil {
			return err
		}
		if t.ask.WorkDir == "" {
			t.ask.WorkDir, spec.WorkDir = l.Job.Spec.WorkDir, l.Job.Spec.WorkDir
		}
	}
	if l.Checkpoint != "" {
		add(l.Checkpoint)
	}
	add(l.Root)
	if rel, err := filepath.Rel(l.Root, c.s.Sockets); err != nil || strings.HasPrefix(rel, "..") {
		add(c.s.Sockets)
	}
	return nil
}

// checkMount reports what of the node a mount shows, as the job's user sees it, and refuses what
// the site forbids.
func (s *supervisor) checkMount(m job.Mount) (job.Mount, error) {
	if m.Source == "tmpfs" {
		return m, nil
	}
	if !filepath.IsAbs(m.Source) {
		m.Source = filepath.Join(s.launch.Job.Spec.WorkDir, m.Source)
	}
	source := m.Source
	err := s.user.runAsUser(func() (err error) {
		source, err = filepath.EvalSymlinks(m.Source)
		return err
	})
	if err != nil {
		return m, fault.New(fault.NotFound, "container-mounts: %s on %s: %w", m.Source, s.node.Name, bareError(err)).
			Advise("correct the source of the mount")
	}
	if err := s.launch.Containers.CheckMount(&m, source); err != nil {
		return m, err
	}
	m.Source = source // as it was checked, whatever the link leads to by then
	if err := containeropt.CheckPaths(&m); err != nil {
		return m, fault.New(fault.Invalid, "container-mounts: %w", err).Advise("name it without them, for example by a symbolic link")
	}
	return m, nil
}

// userHome is the home directory of the job's user; empty: not known.
func (s *supervisor) userHome() string {
	for _, v := range s.launch.Env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok && filepath.IsAbs(home) {
			return home
		}
	}
	return ""
}

// getImage pulls an image that the node does not have yet. Jobs that need the same image wait for
// one another.
func (c *containers) getImage(rt container.Runtime, spec *container.Spec, say func(string)) error {
	s := c.s
	image := rt.Image(spec)
	there := func() bool {
		if image.File != "" {
			return s.user.runAsUser(func() error { _, err := os.Stat(image.File); return err }) == nil
		}
		return c.runCommand(image.Has, containerStart) == nil
	}
	if there() {
		return nil
	}
	if len(image.Pull.Words) == 0 {
		return fault.New(fault.NotFound, "image %s: there is no such file on %s", spec.Image, s.node.Name).
			Advise("correct the image, or copy the file there")
	}
	unlock, err := c.lockImage(spec.Image)
	if err != nil {
		return err
	}
	defer unlock()
	if there() { // another job has pulled it meanwhile
		return nil
	}
	say(fmt.Sprintf("image %s: pulling it on %s", spec.Image, s.node.Name))
	from := time.Now()
	if err := c.runCommand(image.Pull, s.launch.Containers.PullLimit()); err != nil {
		return fault.New(fault.NotFound, "image %s cannot be pulled on %s: %w", spec.Image, s.node.Name, err).
			Advise("correct the image; for a private registry log in first, as the job's user: podman login REGISTRY")
	}
	say(fmt.Sprintf("image %s: pulled on %s in %.1f s", spec.Image, s.node.Name, time.Since(from).Seconds()))
	return nil
}

// lockImage waits until nobody else of the user pulls the same image on this machine.
func (c *containers) lockImage(image string) (unlock func(), err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(image))
	uid := os.Getuid()
	if u := c.s.launch.User; u != nil {
		uid = int(u.UID)
	}
	name := filepath.Join(c.s.launch.Root, fmt.Sprintf("image-%d-%x.lock", uid, h.Sum64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-time.After(wait):
		case <-c.ended.Done():
			return nil, errors.Join(errEnding, f.Close())
		}
	}
}

// startContainer runs the runtime and waits for the init of its container.
func (c *containers) startContainer(t *theContainer, cmd container.Command, name string) (*container.Box, error) {
	s := c.s
	_ = os.Remove(name) // of an attempt before
	l, err := socket.Listen(name)
	if err != nil {
		return nil, err
	}
	defer os.Remove(name)
	defer l.Close()
	if err := giveSocketTo(name, s.launch.User); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, t.name+".log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	defer os.Remove(log.Name())
	pid, exited, err := c.startCommand(cmd, log)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	c.notePIDs(t, pid)
	t.over = over
	var end barrier.Exit
	go func() {
		end = <-exited
		c.mu.Lock()
		t.tidy = end.OK()
		c.mu.Unlock()
		close(over)
		_ = l.Close()
	}()
	type result struct {
		box *container.Box
		err error
	}
	got := make(chan result, 1)
	go func() {
		var r result
		conn, err := acceptFrom(l)
		if r.err = err; err == nil {
			if r.box, r.err = container.Accept(conn, c.userID(), c.holdsProcess); r.err != nil {
				_ = conn.Close()
			}
		}
		got <- r
	}()
	late := time.NewTimer(containerStart)
	defer late.Stop()
	select {
	case r := <-got:
		if r.err == nil {
			return r.box, nil
		}
		if !errors.Is(r.err, net.ErrClosed) {
			return nil, r.err
		}
	case <-late.C:
		s.killSession(pid)
		return nil, fmt.Errorf("%s has not started the container in %s: %s", cmd.Words[0], containerStart, lastWords(log))
	case <-c.ended.Done():
		return nil, errEnding
	}
	<-over
	return nil, fault.New(fault.Invalid, "%s could not start the container: %s", filepath.Base(cmd.Words[0]), cmp.Or(lastWords(log), exitWords(end)))
}

// notePIDs notes processes of the runtime.
func (c *containers) notePIDs(t *theContainer, pids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.pids = append(t.pids, pids...)
}

// isRuntime reports whether a process is one of the runtime, or the init of a container: what is
// signalled to the job is not for them. The processes by which a runtime removes a container are in
// the session of the one that watched it.
func (c *containers) isRuntime(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return false
	}
	session := pid
	if p, err := proc.Read(pid); err == nil {
		session = p.Session
	}
	for _, t := range c.all {
		if slices.Contains(t.pids, pid) || slices.Contains(t.pids, session) {
			return true
		}
	}
	return false
}

// acceptFrom takes one connection.
func acceptFrom(l *net.UnixListener) (*net.UnixConn, error) {
	conn, err := l.AcceptUnix()
	return conn, err
}

// exitWords says how a command ended.
func exitWords(e barrier.Exit) string {
	if e.Signal != 0 {
		return fmt.Sprintf("it was ended by signal %d", e.Signal)
	}
	return fmt.Sprintf("it ended with exit code %d", e.Status)
}

// claimInit takes the init of a container into the control group of the attempt, and proves that
// it belongs to the attempt: what the job starts is born of it.
func (c *containers) claimInit(box *container.Box, kind container.Kind) error {
	s := c.s
	refuse := func(why string) error {
		return fault.New(fault.Unsupported, "%s starts containers outside of the job (%s), so that their end could not be proved", kind, why).
			Advise("use podman with crun, or apptainer (containers.runtime of the server's configuration)")
	}
	if s.group != nil {
		if err := s.group.Adopt(box.PID); err != nil {
			return refuse(err.Error())
		}
		pids, err := s.group.Procs()
		if err != nil || !slices.Contains(pids, box.PID) {
			return refuse("its process is not in the job's control group")
		}
		return nil
	}
	tree, err := proc.Descendants(unix.Getpid())
	if err != nil || !slices.ContainsFunc(tree, func(p proc.Stat) bool { return p.PID == box.PID }) {
		return refuse("its process does not descend from the job's supervisor")
	}
	return nil
}

// userID is the number of the job's user.
func (c *containers) userID() uint32 {
	if u := c.s.launch.User; u != nil {
		return u.UID
	}
	return uint32(os.Getuid())
}

// holdsProcess reports whether a process is one of the attempt: in its control group, or where it
// has none a descendant of this process and of the job's user.
func (c *containers) holdsProcess(pid int) bool {
	if g := c.s.group; g != nil {
		pids, err := g.Procs()
		return err == nil && slices.Contains(pids, pid)
	}
	tree, err := proc.Descendants(unix.Getpid())
	var st unix.Stat_t
	return err == nil && slices.ContainsFunc(tree, func(p proc.Stat) bool { return p.PID == pid }) &&
		unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil && st.Uid == c.userID()
}

// startCommand starts a command of the runtime as the job's user, in the job's control group.
func (c *containers) startCommand(cmd container.Command, out *os.File) (int, <-chan barrier.Exit, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, nil, errEnding
	}
	s := c.s
	return s.spawner.spawnProcess(startRequest{
		group: s.spawner.unified, path: cmd.Words[0], args: cmd.Words, env: append(s.runtimeEnv(), cmd.Env...), dir: "/",
		user: s.launch.User, files: []*os.File{null, out, out},
	})
}

// errEnding refuses a container because the attempt is being ended.
var errEnding = errors.New("the job is ending")

// runCommand runs a command of the runtime to its end.
func (c *containers) runCommand(cmd container.Command, limit time.Duration) error {
	_, err := c.captureCommand(cmd, limit)
	return err
}

// captureCommand runs a command of the runtime to its end, and returns the last of what it printed.
func (c *containers) captureCommand(cmd container.Command, limit time.Duration) (string, error) {
	out, err := os.CreateTemp(c.s.Dir, "runtime-*.log")
	if err != nil {
		return "", err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	pid, exited, err := c.startCommand(cmd, out)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case e := <-exited:
		if !e.OK() {
			return "", errors.New(cmp.Or(lastWords(out), exitWords(e)))
		}
		return lastWords(out), nil
	case <-late.C:
		c.s.killSession(pid)
		<-exited
		return "", fmt.Errorf("%s has not ended in %s", filepath.Base(cmd.Words[0]), limit)
	}
}

// killSession ends a process that leads a session, with what it started there. It may have ended.
func (s *supervisor) killSession(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// runtimeEnv is the environment of commands of the runtime: what it needs to find the user's
// images and credentials.
func (s *supervisor) runtimeEnv() []string {
	env := []string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")}
	for _, v := range s.launch.Env {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains([]string{
			"HOME", "USER", "LOGNAME", "TMPDIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "DOCKER_HOST",
			"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
		}, name), hasAnyPrefix(name, "XDG_", "CONTAINERS_", "APPTAINER_", "SINGULARITY_", "ENROOT_"):
			env = append(env, v)
		}
	}
	return env
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// noteContainer writes down that a container may be left, for who cleans up after this process.
func (s *supervisor) noteContainer(name string) error {
	f, err := os.OpenFile(s.Containers(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	return errors.Join(err, f.Close())
}

// closeIdle has the containers end in which nothing runs any more, when the attempt ends. No more
// are made.
func (c *containers) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.end()
	for _, t := range c.all {
		select {
		case <-t.made:
			if t.box != nil && t.box.Idle() {
				t.box.Close()
			}
		default:
		}
	}
}

// isMaking reports whether somebody still makes a container.
func (c *containers) isMaking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.making > 0
}

// cleaned reports whether nothing is left of the containers, and begins to remove what is.
func (c *containers) cleaned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed || len(c.all) == 0 && c.count == 0 {
		return true
	}
	return c.removeLeft()
}
