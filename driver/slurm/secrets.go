package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// SecretPlace has the values of jobs' secrets where the nodes and the jobs' users read them.
type SecretPlace interface {
	// Put makes a directory with files that only a user can read; empty: whoever the way in is. One that is
	// there is left as it is.
	Put(ctx context.Context, user, dir string, files map[string][]byte) error
	// Remove removes such a directory; none is no error.
	Remove(ctx context.Context, user, dir string) error
}

var _ engine.SecretTaker = (*Engine)(nil)

// TakesSecrets is engine.SecretTaker's. Pools that have no place for them say so themselves.
func (e *Engine) TakesSecrets() bool { return true }

// checkSecrets refuses secrets where the nodes share no directory with whoever hands jobs over.
func (e *Engine) checkSecrets(secrets []job.Secret) error {
	switch {
	case len(secrets) == 0:
		return nil
	case e.blind:
		return engine.About(fault.New(fault.Unsupported, "pool %s keeps its locks on its nodes, and has no directory by which secrets come to them", e.cfg.Pool).
			Advise("read a file that only you can read; or have an administrator name a shared directory by the pool's setting shared"), "secrets")
	case e.cfg.Secrets == nil:
		return engine.About(fault.New(fault.Unsupported, "the server cannot write files of the users of pool %s, so it hands no secrets over", e.cfg.Pool).
			Advise("read a file that only you can read; or have an administrator give the pool a login (its setting ssh) and become"), "secrets")
	}
	return nil
}

// handedSecrets is a directory with the values of an attempt's secrets, as it is noted below Root until it
// is removed. No value is in it. An attempt has several if it was to take a job over and that failed: one a line.
type handedSecrets struct {
	User string `json:"user,omitempty"`
	Dir  string `json:"dir"`
}

func (e *Engine) handedDir() string { return filepath.Join(e.cfg.Root, "secrets-handed") }

// putSecrets has the values of an attempt's secrets where its script finds them when it begins, after so
// many restarts. guard is that of the script.
func (e *Engine) putSecrets(ctx context.Context, a *attempt, guard *script.Guard, restarts int) error {
	secrets := a.order.Job.Spec.Secrets
	if len(secrets) == 0 {
		return nil
	}
	values, err := e.secrets.Values(a.ref)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return err
	case err != nil:
		return fault.New(fault.Unavailable, "%w", err)
	}
	if err := e.noteHanded(a.ref, handedSecrets{a.user, guard.SecretsDir(restarts)}); err != nil {
		return fault.New(fault.Unavailable, "note where secrets are handed over: %w", err)
	}
	files := map[string][]byte{}
	for i := range secrets {
		files[secrets[i].FileName()] = values[secrets[i].Name]
	}
	return e.cfg.Secrets.Put(ctx, a.user, guard.SecretsDir(restarts), files)
}

// noteHanded notes, before it is made, a directory that has to be removed.
func (e *Engine) noteHanded(ref engine.Ref, h handedSecrets) error {
	note, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.handedDir(), 0o700); err != nil {
		return err
	}
	name := filepath.Join(e.handedDir(), ref.String())
	if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, note) {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte("\n"), note...), '\n')) // behind what a write that failed has left
	return errors.Join(err, f.Close())
}

// putOwnSecrets is putSecrets for a job that is about to be handed over.
func (e *Engine) putOwnSecrets(a *attempt) error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	return e.putSecrets(ctx, a, &a.guard, 0)
}

// endSecrets forgets all values of an attempt that has ended. What cannot be removed now is removed by the
// garbage collector.
func (e *Engine) endSecrets(a *attempt) {
	e.dropSecrets(a.ref)
	ctx, cancel := e.controller.callContext()
	defer cancel()
	if err := e.removeHandedSecrets(ctx, a.ref.String()); err != nil {
		e.cfg.Log.Warn("slurm: the secrets of an attempt are not removed, trying again", "attempt", a.ref.String(), "error", err)
	}
}

// needSecrets are the attempts whose values were not handed over yet.
func (e *Engine) needSecrets() (out []engine.Ref) {
	for ref, a := range e.attempts {
		if !a.ended && a.id == 0 {
			out = append(out, ref)
		}
	}
	return out
}

// dropSecrets forgets what this driver has of an attempt's values: Slurm has the job, or it has ended.
func (e *Engine) dropSecrets(ref engine.Ref) {
	if err := e.secrets.Drop(ref); err != nil {
		e.cfg.Log.Warn("slurm: the secrets of an attempt are not removed, trying again at the next start", "attempt", ref.String(), "error", err)
	}
}

// removeHandedSecrets removes what was handed over for an attempt that has ended.
func (e *Engine) removeHandedSecrets(ctx context.Context, ref string) error {
	name := filepath.Join(e.handedDir(), ref)
	text, err := os.ReadFile(name)
	if err != nil || e.cfg.Secrets == nil {
		return nil //nolint:nilerr // it has none
	}
	for line := range bytes.Lines(text) {
		var h handedSecrets
		if json.Unmarshal(line, &h) != nil {
			continue
		}
		if err := e.cfg.Secrets.Remove(ctx, h.User, h.Dir); err != nil {
			return err
		}
	}
	return os.Remove(name)
}

// sweepHandedSecrets removes what was handed over for attempts that have ended, and could not be removed then.
func (e *Engine) sweepHandedSecrets() error {
	found, err := os.ReadDir(e.handedDir())
	if err != nil {
		return nil //nolint:nilerr // there are none
	}
	for _, f := range found {
		ref, ok := refOf(f.Name())
		e.mu.Lock()
		a := e.attempts[ref]
		lives := ok && a != nil && !a.ended
		e.mu.Unlock()
		if lives {
			continue
		}
		ctx, cancel := e.controller.callContext()
		err := e.removeHandedSecrets(ctx, f.Name())
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
