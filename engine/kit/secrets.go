package kit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// HeldSecrets keeps the values of attempts' secrets from Launch until a driver has handed them over: a file
// of mode 0600 for each attempt, in a folder of its own. No journal has them, and an attempt that was taken
// can still begin after a restart. Its methods are safe for concurrent use for different attempts.
type HeldSecrets struct{ dir string }

// HoldSecrets returns what keeps secrets in a folder, which is made when there are some.
func HoldSecrets(dir string) *HeldSecrets { return &HeldSecrets{dir} }

func (h *HeldSecrets) fileOf(ref engine.Ref) string { return filepath.Join(h.dir, ref.String()) }

// Keep keeps the values of an attempt. They are durable when it returns.
func (h *HeldSecrets) Keep(ref engine.Ref, given []engine.Secret) (err error) {
	if len(given) == 0 {
		return nil
	}
	values := map[string][]byte{}
	for _, s := range given {
		values[s.Name] = s.Value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(h.dir, ".new-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // else the next Sweep does
		}
	}()
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), h.fileOf(ref)); err != nil {
		return err
	}
	d, err := os.Open(h.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Values returns the values of an attempt by the names of their secrets; fault.NotFound if none are kept.
func (h *HeldSecrets) Values(ref engine.Ref) (map[string][]byte, error) {
	text, err := os.ReadFile(h.fileOf(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "the values of the secrets of attempt %s are not kept any more", ref)
	}
	var values map[string][]byte
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	return values, err
}

// Drop forgets the values of an attempt, if there are any.
func (h *HeldSecrets) Drop(ref engine.Ref) error {
	if err := os.Remove(h.fileOf(ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep forgets the values of all attempts but those that need them.
func (h *HeldSecrets) Sweep(needed ...engine.Ref) {
	keep := map[string]bool{}
	for _, ref := range needed {
		keep[ref.String()] = true
	}
	found, err := os.ReadDir(h.dir)
	if err != nil {
		return // there are none
	}
	for _, f := range found {
		if !keep[f.Name()] {
			_ = os.Remove(filepath.Join(h.dir, f.Name())) // else the next one does
		}
	}
}
