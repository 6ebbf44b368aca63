package supervise

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestSecretsAreReadAsTheUser: what stands in the user's directory of secrets is read with his rights,
// and only a file: a link to a file of root's, or a pipe, ends the launch instead.
//
// Seen to fail with: os.ReadFile in the place of readSecret.
func TestSecretsAreReadAsTheUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root reads for others")
	}
	const user = 20477
	dir := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/"; d = filepath.Dir(d) { // he may pass through
		if st, err := os.Stat(d); err == nil && st.Mode().Perm()&0o011 != 0o011 && d != dir {
			if err := os.Chmod(d, st.Mode().Perm()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
	roots := filepath.Join(filepath.Dir(dir), "roots")
	if err := os.WriteFile(roots, []byte("of root"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	sp := &spawner{work: make(chan func())}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for f := range sp.work {
			f()
		}
	}()
	t.Cleanup(func() { close(sp.work); <-ended })
	secret := job.Secret{Name: "x", Env: "TOK"}
	s := &supervisor{
		launch: &attempt.Launch{Secrets: dir, Job: &job.Job{Spec: &job.Spec{Secrets: []job.Secret{secret}}}},
		user:   &jobUser{who: &barrier.Identity{UID: user, GID: user}, spawner: sp},
	}
	file := filepath.Join(dir, secret.FileName())
	for what, put := range map[string]func() error{
		"a link": func() error { return os.Symlink(roots, file) },
		"a file of root's": func() error {
			return os.Link(roots, file)
		},
		"a pipe": func() error { return syscall.Mkfifo(file, 0o666) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if env, err := s.withSecrets(nil); err == nil {
			t.Errorf("%s: %q", what, env)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("his"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, user, user); err != nil {
		t.Fatal(err)
	}
	env, err := s.withSecrets([]string{"TOK=before", "A=b"})
	if want := []string{"A=b", "COX_SECRETS_DIR=" + dir, "TOK=his"}; err != nil || !slices.Equal(env, want) {
		t.Errorf("%q, %v", env, err)
	}
	if names := s.ownVariables(); !slices.Equal(names, []string{"COX_SECRETS_DIR", "TOK"}) {
		t.Errorf("variables that no image replaces: %q", names)
	}
}
