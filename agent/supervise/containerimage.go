package supervise

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// getImage pulls an image that the node does not have yet. Jobs that need the same image wait for
// one another. It returns the digest of the image, where the runtime has one.
func (c *containers) getImage(rt container.Runtime, spec *container.Spec, say func(string)) (digest string, err error) {
	s := c.s
	spec.Login = s.findLogin(spec.Image, say)
	image := rt.Image(spec)
	there := func() bool {
		if image.File != "" {
			return s.user.runAsUser(func() error { _, err := os.Stat(image.File); return err }) == nil
		}
		printed, err := c.captureCommand(image.Has, containerStart)
		digest = container.ReadDigest(spec.Image, printed)
		return err == nil
	}
	if there() {
		return digest, nil
	}
	if len(image.Pull.Words) == 0 {
		return "", fault.New(fault.NotFound, "image %s: there is no such file on %s", spec.Image, s.node.Name).
			Advise("correct the image, or copy the file there")
	}
	unlock, err := c.lockImage(spec.Image)
	if err != nil {
		return "", err
	}
	defer unlock()
	if there() { // another job has pulled it meanwhile
		return digest, nil
	}
	say(fmt.Sprintf("image %s: pulling it on %s", spec.Image, s.node.Name))
	from := time.Now()
	if err := c.runCommand(image.Pull, s.launch.Containers.PullLimit()); err != nil {
		return "", fault.New(fault.NotFound, "image %s cannot be pulled on %s: %w", spec.Image, s.node.Name, err).
			Advise("correct the image; for a private registry log in first, on this machine as the job's user: cox registry login %s", registry.HostOf(spec.Image))
	}
	say(fmt.Sprintf("image %s: pulled on %s in %.1f s", spec.Image, s.node.Name, time.Since(from).Seconds()))
	there()
	return digest, nil
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

// findLogin is the folder with the user's login for the registry of an image; empty: there is none.
func (s *supervisor) findLogin(image string, say func(string)) string {
	host := registry.HostOf(image)
	d := registry.FolderOf(s.userVariable)
	if host == "" || d == "" {
		return ""
	}
	var list []registry.Credential
	err := s.user.runAsUser(func() (err error) {
		list, err = d.Load()
		return err
	})
	if err != nil {
		say(fmt.Sprintf("image %s: the logins of cox registry cannot be read: %v", image, err))
	}
	if !slices.ContainsFunc(list, func(c registry.Credential) bool { return c.Host == host }) {
		return ""
	}
	return string(d)
}

// userVariable is a variable of the job's environment as it was submitted.
func (s *supervisor) userVariable(name string) string {
	for _, v := range slices.Backward(s.launch.Env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
