package jobs

import (
	"maps"
	"slices"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// SecretStore keeps users' secrets; *secret.Store is one.
type SecretStore interface {
	Get(uid uint32, name string) ([]byte, error)
	Put(uid uint32, name string, value []byte) error
	Remove(uid uint32, name string) error
}

// keepSecrets keeps the values of the Secrets that stand in a manifest, for its job to have them. undo takes
// away those that were not there before.
func (s *Service) keepSecrets(r *intake.Request) (undo func(), err error) {
	values := r.Secrets()
	if len(values) == 0 {
		return func() {}, nil
	}
	if s.cfg.Secrets == nil {
		return nil, fault.New(fault.Unsupported, "the manifest has Secrets, and nobody keeps any here").Advise("start a server that does: cox up -d")
	}
	uid := r.Spec.Owner.UID
	var added []string
	undo = func() {
		for _, name := range added {
			if err := s.cfg.Secrets.Remove(uid, name); err != nil {
				s.Log.Warn("a secret of a manifest that was refused stays", "name", name, "error", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, before := s.cfg.Secrets.Get(uid, name)
		if err := s.cfg.Secrets.Put(uid, name, values[name]); err != nil {
			undo()
			return nil, err
		}
		if before != nil {
			added = append(added, name)
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

// withoutOwnSecrets calls f while the job has none of the secrets that stand in its manifest: they are not kept
// yet.
func withoutOwnSecrets(r *intake.Request, f func() error) error {
	all := r.Spec.Secrets
	defer func() { r.Spec.Secrets = all }()
	own := r.Secrets()
	r.Spec.Secrets = slices.DeleteFunc(slices.Clone(all), func(s job.Secret) bool { _, ok := own[s.Name]; return ok })
	return f()
}
