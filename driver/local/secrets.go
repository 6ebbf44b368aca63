package local

import (
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
)

var _ engine.SecretTaker = (*Engine)(nil)

// TakesSecrets is engine.SecretTaker's.
func (e *Engine) TakesSecrets() bool { return true }

// makeSecrets writes the secrets of an attempt into a directory that its user alone reaches: a file for
// each, under the secret's name, and where the job asks for one, under that file's. The log has the
// directory's name and no value.
func (e *Engine) makeSecrets(l *engine.Launch, file *attempt.Launch) error {
	if len(l.Secrets) == 0 {
		return nil
	}
	dir := filepath.Join(attempt.SecretsOf(e.cfg.Root), l.Ref.String())
	if err := os.RemoveAll(dir); err != nil { // of a launch that got no further
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	own := func(path string) error {
		if file.User == nil {
			return nil
		}
		return os.Lchown(path, int(file.User.UID), int(file.User.GID))
	}
	for _, s := range l.Secrets {
		path := filepath.Join(dir, s.Secret.FileName())
		if err := os.WriteFile(path, s.Value, 0o400); err != nil {
			return err
		}
		if err := own(path); err != nil {
			return err
		}
	}
	file.Secrets = dir
	return own(dir)
}

// removeSecrets removes the secrets of an attempt that has ended.
func (e *Engine) removeSecrets(l *attempt.Launch) {
	if l.Secrets == "" {
		return
	}
	if err := os.RemoveAll(l.Secrets); err != nil {
		e.cfg.Log.Warn("the secrets of an attempt are not removed, trying again at the next start", "attempt", l.Ref, "error", err)
	}
}

// sweepSecrets removes the secrets of attempts that are not there any more.
func (e *Engine) sweepSecrets() {
	lives := map[string]bool{}
	e.mu.Lock()
	for ref := range e.gangs {
		lives[ref.String()] = true
	}
	e.mu.Unlock()
	found, err := os.ReadDir(attempt.SecretsOf(e.cfg.Root))
	if err != nil {
		return // there are none
	}
	for _, d := range found {
		if !lives[d.Name()] {
			_ = os.RemoveAll(filepath.Join(attempt.SecretsOf(e.cfg.Root), d.Name())) // else at the next start
		}
	}
}
