package container

import (
	"strings"

	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/model/containeropt"
)

// apptainer runs containers as descendants of its caller, in the process numbers of the node.
type apptainer struct{ words []string }

// Image implements Runtime. An image of a registry becomes a file.
func (a apptainer) Image(s *Spec) Image {
	file := imageFile(s, ".sif")
	if containeropt.IsFile(s.Image) {
		return Image{File: file}
	}
	pull := []string{"pull", "--force"}
	if s.Login != "" {
		pull = append(pull, "--authfile="+registry.Folder(s.Login).AuthFile())
	}
	return Image{File: file, Pull: call(a.words, append(pull, file, "docker://"+containeropt.Reference(s.Image)))}
}

// Prepare implements Runtime.
func (a apptainer) Prepare(*Spec) []Command { return nil }

// Start implements Runtime.
func (a apptainer) Start(s *Spec) Command {
	verb := "exec"
	if s.Entrypoint {
		verb = "run"
	}
	args := []string{verb, "--cleanenv", "--no-home", "--no-mount=cwd"}
	if s.RemapRoot {
		args = append(args, "--fakeroot")
	}
	if !s.ReadOnly {
		args = append(args, "--writable-tmpfs")
	}
	if s.NVIDIA {
		args = append(args, "--nv")
	}
	if s.AMD {
		args = append(args, "--rocm")
	}
	if s.WorkDir != "" {
		args = append(args, "--pwd="+s.WorkDir)
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		if m.Source == "tmpfs" {
			args = append(args, "--scratch="+m.Target)
			continue
		}
		flag := m.Source + ":" + m.Target
		for _, f := range m.Flags {
			if f == "ro" || f == "rw" { // the only ones that it has
				flag += ":" + f
			}
		}
		args = append(args, "--bind="+flag)
	}
	return call(a.words, args, []string{imageFile(s, ".sif")}, s.Init)
}

// Remove implements Runtime. Nothing is left of a container whose processes have ended.
func (a apptainer) Remove([]string) []Command { return nil }

// enroot unpacks images and enters them without a daemon, as pyxis has it do.
type enroot struct{ words []string }

// Image implements Runtime.
func (e enroot) Image(s *Spec) Image {
	file := imageFile(s, ".sqsh")
	if containeropt.IsFile(s.Image) {
		return Image{File: file}
	}
	uri := s.Image // enroot's own form has REGISTRY#IMAGE
	if !strings.HasPrefix(uri, "docker://") && !strings.HasPrefix(uri, "dockerd://") {
		uri = "docker://" + uri
	}
	pull := call(e.words, []string{"import", "--output", file, uri})
	if s.Login != "" {
		pull.Env = []string{"ENROOT_CONFIG_PATH=" + s.Login} // which has .credentials
	}
	return Image{File: file, Pull: pull}
}

// Prepare implements Runtime.
func (e enroot) Prepare(s *Spec) []Command {
	return []Command{call(e.words, []string{"create", "--force", "--name", s.Name, imageFile(s, ".sqsh")})}
}

// Start implements Runtime.
func (e enroot) Start(s *Spec) Command {
	args := []string{"start"}
	if !s.Entrypoint {
		args = append(args, "--rc", s.Rc)
	}
	if s.RemapRoot {
		args = append(args, "--root")
	}
	if !s.ReadOnly {
		args = append(args, "--rw")
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		flags := append([]string{"x-create=auto", "rbind"}, mountOptions(m)...)
		if m.Source == "tmpfs" {
			flags[0], flags = "x-create=dir", append(flags[:1], flags[2:]...)
		}
		args = append(args, "--mount", m.Source+" "+m.Target+" "+strings.Join(flags, ","))
	}
	init := s.Init
	if s.WorkDir != "" {
		init = append([]string{"sh", "-c", `cd "$0" && exec "$@"`, s.WorkDir}, init...)
	}
	c := call(e.words, args, []string{s.Name}, init)
	c.Env = []string{"ENROOT_MOUNT_HOME=n"} // a mounted home is among the mounts
	return c
}

// Remove implements Runtime.
func (e enroot) Remove(names []string) []Command {
	return []Command{call(e.words, []string{"remove", "--force"}, names)}
}
