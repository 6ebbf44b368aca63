package jobs

import (
	"bytes"
	"maps"
	"slices"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// SecretStore keeps users' secrets; *secret.Store is one.
type SecretStore interface {
	Get(uid uint32, name string) ([]byte, error)
	Put(uid uint32, name string, value []byte) error
	Remove(uid uint32, name string) error
}

// keepSecrets keeps the values of the Secrets that stand in a manifest, for its job to have them. undo puts
// back what was there before. A value that differs from the kept one is replaced, with a warning.
func (s *Service) keepSecrets(r *intake.Request) (undo func(), err error) {
	values := r.Secrets()
	if len(values) == 0 {
		return func() {}, nil
	}
	if s.cfg.Secrets == nil {
		return nil, fault.New(fault.Unsupported, "the manifest has Secrets, and nobody keeps any here").Advise("start a server that does: cox up -d")
	}
	uid := r.Spec.Owner.UID
	type kept struct {
		name  string
		value []byte // before; nil: there was none
	}
	var changed []kept
	undo = func() {
		for _, c := range changed {
			var err error
			if c.value == nil {
				err = s.cfg.Secrets.Remove(uid, c.name)
			} else {
				err = s.cfg.Secrets.Put(uid, c.name, c.value)
			}
			if err != nil {
				s.Log.Warn("a secret of a manifest that was refused stays", "name", c.name, "error", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		before, err := s.cfg.Secrets.Get(uid, name)
		if err == nil && bytes.Equal(before, values[name]) {
			continue
		}
		if err := s.cfg.Secrets.Put(uid, name, values[name]); err != nil {
			undo()
			return nil, err
		}
		changed = append(changed, kept{name, before})
		if before != nil {
			r.Warnings = append(r.Warnings, spec.Warning{File: r.Text.Name, Option: "Secret " + name, Message: "replaces another value of yours: jobs and services that begin later have the new one"})
		}
	}
	return undo, nil
}

// addForeignSecrets has the job of a manifest get the secrets that its owner keeps here and its pods name, on
// engines that have none of their own.
func (s *Service) addForeignSecrets(r *intake.Request) error {
	for _, name := range r.ForeignSecrets() {
		if s.cfg.Secrets == nil || s.intake.RunsPods(r.Spec.Pool) {
			return nil
		}
		switch _, err := s.cfg.Secrets.Get(r.Spec.Owner.UID, name); {
		case err == nil:
			r.Spec.Secrets = append(slices.Clip(r.Spec.Secrets), job.Secret{Name: name, File: name})
		case fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Invalid:
			return err
		}
	}
	return nil
}
