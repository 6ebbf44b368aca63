package container

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/containeropt"
)

// docker asks a daemon for containers: their processes descend from the daemon, so they count only
// where their control group is that of the job.
type docker struct{ words []string }

// Image implements Runtime.
func (d docker) Image(s *Spec) Image {
	name := containeropt.Reference(s.Image)
	pull := []string{"pull", "--quiet", name}
	if s.Login != "" {
		pull = append([]string{"--config=" + s.Login}, pull...)
	}
	return Image{Has: call(d.words, []string{"image", "inspect", "--format={{range .RepoDigests}} {{.}}{{end}}", name}), Pull: call(d.words, pull)}
}

// Prepare implements Runtime.
func (d docker) Prepare(*Spec) []Command { return nil }

// Start implements Runtime.
func (d docker) Start(s *Spec) Command {
	args := []string{
		"run", "--rm", "--name", s.Name, "--label", "coxswain=" + s.Mark, "--pull=never", "--log-driver=none",
		"--network=host", "--uts=host", "--ipc=host", "--security-opt=label=disable", "--security-opt=seccomp=unconfined",
	}
	if s.RemapRoot {
		args = append(args, "--user=0:0")
	} else {
		args = append(args, fmt.Sprintf("--user=%d:%d", s.UID, s.GID))
	}
	return call(d.words, args, engineArgs(s), []string{imageWord(s)}, initArgs(s))
}

// Remove implements Runtime.
func (d docker) Remove(names []string) []Command {
	return []Command{call(d.words, []string{"rm", "--force", "--volumes"}, names)}
}
