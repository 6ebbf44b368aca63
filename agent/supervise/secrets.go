package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// secretsVariable names the directory with the job's secrets that are files.
const secretsVariable = "COX_SECRETS_DIR"

// withSecrets adds the job's secrets to the environment of what the job runs. Their values stand in no
// file of the steps: srun inherits them from the script.
func (s *supervisor) withSecrets(env []string) ([]string, error) {
	if s.launch.Secrets == "" {
		return env, nil
	}
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		env = append(env, name+"="+value)
	}
	set(secretsVariable, s.launch.Secrets)
	for _, secret := range s.launch.Job.Spec.Secrets {
		if secret.Env == "" {
			continue
		}
		value, err := s.readSecret(filepath.Join(s.launch.Secrets, secret.FileName()))
		if err != nil {
			return nil, fmt.Errorf("read secret %s: %w", secret.Name, err)
		}
		if bytes.IndexByte(value, 0) >= 0 {
			return nil, fmt.Errorf("secret %s has a NUL byte, which no variable can have: hand it over as a file", secret.Name)
		}
		set(secret.Env, string(value))
	}
	return env, nil
}

// mostSecret bounds the value of a secret in bytes; what a server keeps is smaller.
const mostSecret = 1 << 20

// readSecret reads a file of the secrets with the rights of the job's user, whose directory it is: a
// link or a pipe in its place is refused.
func (s *supervisor) readSecret(path string) (value []byte, err error) {
	err = s.user.runAsUser(func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return errors.Join(err, errors.New("it is no file any more"))
		}
		value, err = io.ReadAll(io.LimitReader(f, mostSecret))
		return err
	})
	return value, err
}

// ownVariables are the names of variables that a container's image does not replace: those of ports and
// of secrets.
func (s *supervisor) ownVariables() []string {
	var names []string
	spec := s.launch.Job.Spec
	if spec.Serve != nil {
		names = append(names, "PORT")
		for i := range spec.Serve.Ports {
			names = append(names, spec.Serve.Ports[i].Variable())
		}
	}
	if s.launch.Secrets != "" {
		names = append(names, secretsVariable)
	}
	for _, secret := range spec.Secrets {
		if secret.Env != "" {
			names = append(names, secret.Env)
		}
	}
	return names
}
