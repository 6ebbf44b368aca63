package jobs

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/secret"
)

// SecretStore keeps users' secrets; *secret.Store is one.
type SecretStore interface {
	Get(uid uint32, name string) ([]byte, error)
	Keep(uid uint32, values map[string][]byte) (set string, err error)
	Sweep(before time.Time, needed func() map[secret.Kept]bool) error
}

// keepSecrets keeps the values of the Secrets that are in a manifest, for its job to have them. They go when
// nothing needs them any more (SweepSecrets), so nothing has to be undone if the submission is refused.
func (s *Service) keepSecrets(r *intake.Request) error {
	values := r.Secrets()
	if len(values) == 0 {
		return nil
	}
	if s.cfg.Secrets == nil {
		return fault.New(fault.Unsupported, "the manifest has Secrets, and nobody keeps any here").Advise("start a server that does: cox up -d")
	}
	set, err := s.cfg.Secrets.Keep(r.Spec.Owner.UID, values)
	if err != nil {
		return err
	}
	r.UseKept(set)
	return nil
}

const (
	sweepSecrets  = time.Minute      // between two looks for values that nobody needs
	submissionAge = 15 * time.Minute // within which a submission has become a job, a service or a schedule
)

// SweepSecrets removes the values that came with manifests when no job in memory, service or schedule needs them:
// now and every minute, until ctx ends.
func (s *Service) SweepSecrets(ctx context.Context) {
	if s.cfg.Secrets == nil {
		return
	}
	tick := time.NewTicker(sweepSecrets)
	defer tick.Stop()
	for {
		if err := s.sweepKept(); err != nil && ctx.Err() == nil {
			s.Log.Warn("secrets that came with manifests", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) sweepKept() error {
	return s.cfg.Secrets.Sweep(s.cfg.Now().Add(-submissionAge), s.neededSecrets)
}

// neededSecrets are the sets of values that jobs in memory have, ended ones too, which can be requeued, and
// those that the documents of services and schedules name.
func (s *Service) neededSecrets() map[secret.Kept]bool {
	out := map[secret.Kept]bool{}
	if s.cfg.Documents != nil { // first: what these submit meanwhile is a job
		for _, d := range s.cfg.Documents() {
			for _, set := range keptSets(d.Document) {
				out[secret.Kept{UID: d.Owner.UID, Name: set}] = true
			}
		}
	}
	s.cfg.Plane.Scan(query.Filter{}, func(v *state.View) bool {
		for _, one := range v.Job.Spec.Secrets {
			if one.Kept != "" {
				out[secret.Kept{UID: v.Job.Spec.Owner.UID, Name: one.Kept}] = true
			}
		}
		return true
	})
	return out
}

// keptSets are the values of job.Secret.Kept that a document in JSON has, wherever they are.
func keptSets(document []byte) (out []string) {
	for {
		_, rest, found := bytes.Cut(document, []byte(`"kept":"`))
		if !found {
			return out
		}
		set, rest, _ := bytes.Cut(rest, []byte(`"`))
		out, document = append(out, string(set)), rest
	}
}

// addForeignSecrets has the job of a manifest get the secrets that its owner keeps here and its pods name, on
// engines that have none of their own. There it has none by which images are pulled.
func (s *Service) addForeignSecrets(r *intake.Request) error {
	if !s.intake.RunsPods(r.Spec.Pool) {
		r.DropPullSecrets(r.Spec)
	}
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
