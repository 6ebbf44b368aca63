package supervise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/step/node"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

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
		return container.Environ(env, t.box.Env, slices.Concat(keep, c.s.ownVariables()), binDir(l.Root))
	}
}

// place is where processes of a step run in a container.
func (c *containers) place(t *theContainer, release func()) *node.Place {
	return &node.Place{
		Spawner: &boxSpawner{c: c, box: t.box},
		Dir:     cmp.Or(t.ask.WorkDir, t.box.Dir),
		Env:     c.environOf(t, t.ask.Env),
		Args:    func(args, env []string) ([]string, error) { return c.argsOf(t, args, env) },
		Release: release,
	}
}

// argsOf is the command of a task in a container: its words, or with them what the image runs.
func (c *containers) argsOf(t *theContainer, args, env []string) ([]string, error) {
	i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, container.EntrypointVariable+"=") })
	if i < 0 {
		return args, nil
	}
	_, how, _ := strings.Cut(env[i], "=")
	cmd, err := c.s.launch.Containers.EntrypointCommand(t.image)
	if err != nil {
		return nil, err
	}
	printed, err := c.captureCommand(cmd, containerStart)
	if err != nil {
		return nil, err
	}
	return container.FillEntrypoint(t.image, how, printed, args)
}
