package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

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
