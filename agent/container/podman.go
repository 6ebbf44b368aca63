package container

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/model/containeropt"
)

// podman runs containers without a daemon: their processes descend from their caller.
type podman struct{ words []string }

// Image implements Runtime. A directory is the files of a container
// themselves.
func (p podman) Image(s *Spec) Image {
	if containeropt.IsFile(s.Image) {
		return Image{File: s.Image}
	}
	name := containeropt.Reference(s.Image)
	pull := []string{"pull", "--quiet"}
	if s.Login != "" {
		pull = append(pull, "--authfile="+registry.Folder(s.Login).AuthFile())
	}
	return Image{Has: call(p.words, []string{"image", "inspect", "--format={{.Digest}}{{range .RepoDigests}} {{.}}{{end}}", name}), Pull: call(p.words, append(pull, name))}
}

// Prepare implements Runtime.
func (p podman) Prepare(*Spec) []Command { return nil }

// Start implements Runtime. The container has the network, the host name and the memory for
// messages of its node, and no fence of system calls: it brings software, and its processes may do
// what its user may.
func (p podman) Start(s *Spec) Command {
	args := []string{
		"run", "--rm", "--name", s.Name, "--label", "coxswain=" + s.Mark, "--pull=never", "--log-driver=none",
		"--network=host", "--uts=host", "--security-opt=label=disable", "--security-opt=seccomp=unconfined",
	}
	if s.NoCgroups {
		args = append(args, "--cgroups=disabled")
	} else {
		args = append(args, "--cgroups=no-conmon")
	}
	if s.NoQueues {
		args = append(args, "--volume=/dev/shm:/dev/shm")
	} else {
		args = append(args, "--ipc=host")
	}
	switch {
	case s.Root || s.RemapRoot:
		args = append(args, "--user=0:0")
	default:
		args = append(args, "--userns=keep-id", fmt.Sprintf("--user=%d:%d", s.UID, s.GID))
		if s.NoCgroups { // crun, which can keep the groups of its caller too
			args = append(args, "--group-add=keep-groups")
		}
	}
	image := imageWord(s)
	if containeropt.IsFile(s.Image) && !s.ReadOnly {
		image += ":O" // changes go with the container
	}
	return call(p.words, args, engineArgs(s), []string{image}, initArgs(s))
}

// Remove implements Runtime. Where everything of a container was killed, podman 4 notices that at a
// first call, which fails, and removes it at the second.
func (p podman) Remove(names []string) []Command {
	c := call(p.words, []string{"rm", "--force", "--ignore", "--time=0", "--volumes"}, names)
	return []Command{c, c}
}

// engineArgs are what podman and docker are told alike.
func engineArgs(s *Spec) []string {
	var args []string
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	if s.WorkDir != "" {
		args = append(args, "--workdir="+s.WorkDir)
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		if m.Source == "tmpfs" {
			args = append(args, "--tmpfs="+strings.TrimSuffix(m.Target+":"+strings.Join(mountOptions(m), ","), ":"))
			continue
		}
		args = append(args, "--volume="+volumeFlag(m))
	}
	for _, d := range s.Devices {
		args = append(args, "--device="+d)
	}
	if !s.Entrypoint {
		args = append(args, "--entrypoint="+s.Init[0])
	}
	if containeropt.IsFile(s.Image) {
		args = append(args, "--rootfs")
	}
	return args
}

// imageWord is the image as podman and docker take it.
func imageWord(s *Spec) string {
	if containeropt.IsFile(s.Image) {
		return s.Image
	}
	return containeropt.Reference(s.Image)
}

// initArgs are the words behind the image: the init, or its arguments where it is the entry point.
func initArgs(s *Spec) []string {
	if s.Entrypoint {
		return s.Init
	}
	return s.Init[1:]
}
