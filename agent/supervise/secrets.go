package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/attempt"
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
		value, err := os.ReadFile(filepath.Join(s.launch.Secrets, attempt.SecretFile(secret)))
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
