package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Settings are what a site says of the containers of a pool. The zero value takes the first runtime
// that the machine has.
type Settings struct {
	Runtime Kind          `json:"runtime,omitempty"` // empty: the first that is found
	Program string        `json:"program,omitempty"` // its path; empty: it is looked for in PATH
	Args    []string      `json:"args,omitempty"`    // options put before all others
	Mounts  []string      `json:"mounts,omitempty"`  // directories of which jobs may mount parts; none: all that their users can read. It steers, and is no fence where users may call the runtime themselves
	Pull    time.Duration `json:"pull,omitempty"`    // how long the pull of an image may take; 0: 30 minutes

	NoCgroups *bool  `json:"no_cgroups,omitempty"` // found out: see Spec; nil: not yet
	NoQueues  bool   `json:"no_queues,omitempty"`  // found out: see Spec
	Cache     string `json:"cache,omitempty"`      // of image files and locks, for each user below it
}

// PullLimit is how long the pull of an image may take.
func (s *Settings) PullLimit() time.Duration { return cmp.Or(s.Pull, 30*time.Minute) }

// New returns the runtime of the settings, which Find has completed.
func (s *Settings) New() Runtime { return New(s.Runtime, s.Program, s.Args) }

// isBelow reports whether a path is a directory or below it.
func isBelow(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// CheckSpec reports what the runtime cannot do of what is asked for.
func (s *Settings) CheckSpec(spec *Spec) error {
	switch {
	case s.Runtime == Docker && spec.RemapRoot:
		return fault.New(fault.Unsupported, "container-remap-root: docker has no user namespace of the job's user, whose programs would be root on the node").
			Advise("leave it out, or ask an administrator for podman (containers.runtime of the server's configuration)")
	case s.Runtime == Docker && containeropt.IsFile(spec.Image):
		return fault.New(fault.Unsupported, "image %s: docker runs no files or directories", spec.Image).
			Advise("load it first (docker load --input FILE), and name the image that docker prints")
	case s.Runtime != Apptainer:
		return nil
	}
	for i := range spec.Mounts {
		m := &spec.Mounts[i]
		for _, f := range m.Flags {
			if f == "nosuid" || f == "nodev" || f == "noexec" {
				return fault.New(fault.Unsupported, "container-mounts: %s: apptainer cannot mount with %s", containeropt.FormatMount(m), f).
					Advise("leave it out")
			}
		}
	}
	return nil
}

// ShowsOwn reports whether a container has no other GPUs than those that the runtime is told of.
// Apptainer and enroot show all of the node.
func (s *Settings) ShowsOwn() bool { return s.Runtime == Podman || s.Runtime == Docker }

// Find looks for the runtime of the settings. Without one the error says what to install.
func (s Settings) Find() (*Settings, error) {
	kinds := Kinds
	if s.Runtime != "" {
		if !slices.Contains(Kinds, s.Runtime) {
			return nil, fault.New(fault.Invalid, "containers.runtime: %q is none of podman, apptainer, enroot, docker", s.Runtime)
		}
		kinds = []Kind{s.Runtime}
	}
	for _, k := range kinds {
		program, err := exec.LookPath(cmp.Or(s.Program, string(k)))
		if err != nil {
			continue
		}
		if program, err = filepath.Abs(program); err != nil {
			return nil, err
		}
		s.Runtime, s.Program = k, program
		if _, err := os.Stat("/dev/mqueue"); err != nil {
			s.NoQueues = true
		}
		return &s, nil
	}
	what := "no container runtime is installed here"
	if s.Runtime != "" {
		what = fmt.Sprintf("%s (containers.runtime of the server's configuration) is not installed here", cmp.Or(s.Program, string(s.Runtime)))
	}
	return nil, fault.New(fault.Unsupported, "%s", what).
		Advise("install one as root, for example apt install podman crun, or leave the image out to run with the machine's own programs")
}

// ProbeCommand asks the runtime how it keeps processes together; no words: there is nothing to ask.
func (s *Settings) ProbeCommand() Command {
	if s.Runtime != Podman {
		return Command{}
	}
	return call(append([]string{s.Program}, s.Args...), []string{"info", "--format={{.Host.OCIRuntime.Name}}"})
}

// ReadProbe reads what ProbeCommand printed: whether the runtime can leave a container in the
// control group of its caller. Podman can where crun works for it.
func (s *Settings) ReadProbe(printed string) bool { return strings.TrimSpace(printed) == "crun" }

// ProbeError is the error of a runtime that does not answer ProbeCommand.
func (s *Settings) ProbeError(err error) error {
	return fault.New(fault.Unsupported, "%s does not work here: %w", s.Program, err).
		Advise("run %s info, and repair what it says", s.Program)
}

// Probe runs ProbeCommand and completes the settings.
func (s *Settings) Probe(ctx context.Context) error {
	words := s.ProbeCommand().Words
	if len(words) == 0 || s.NoCgroups != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return s.ProbeError(errors.New(lastLine(cmp.Or(said.String(), err.Error()))))
	}
	none := s.ReadProbe(string(out))
	s.NoCgroups = &none
	return nil
}

// lastLine is the last line of a text that says anything.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// isPodFile reports whether a source is one of the files that the script of a manifest's pods writes on a
// node (engine/podscript): the job has made them itself.
func isPodFile(source string) bool {
	return strings.HasPrefix(source, "/tmp/cox-pods-") || strings.HasPrefix(source, "/dev/shm/cox-pods-")
}

// CheckMount reports why the site forbids a mount of a source, which is absolute and without
// symbolic links.
func (s *Settings) CheckMount(m *job.Mount, source string) error {
	if m.Source == "tmpfs" || len(s.Mounts) == 0 || isPodFile(source) {
		return nil
	}
	for _, dir := range s.Mounts {
		if isBelow(dir, source) {
			return nil
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && isBelow(real, source) {
			return nil
		}
	}
	return fault.New(fault.Permission, "container-mounts: %s: jobs of this pool may mount %s and what is below, not %s", containeropt.FormatMount(m), strings.Join(s.Mounts, ", "), source).
		Advise("copy it there, or ask an administrator to add it to containers.mounts of the server's configuration")
}
