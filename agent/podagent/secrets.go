package podagent

import (
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// takeSecrets copies the values of the job's secrets into a directory that the pod's user alone reaches,
// and returns its name; empty: the job has none.
func (p *Plan) takeSecrets(at Place) (string, error) {
	if len(p.Job.Spec.Secrets) == 0 {
		return "", nil
	}
	dir := filepath.Join(at.Private, "secrets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fault.New(fault.Internal, "a place for the job's secrets: %w", err).Advise("mount an empty volume in memory at %s that the pod's user may write to", at.Private)
	}
	for _, s := range p.Job.Spec.Secrets {
		value, err := os.ReadFile(filepath.Join(at.Secrets, s.FileName()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.FileName()), value, 0o400)
		}
		if err != nil {
			return "", fault.New(fault.Internal, "secret %s: %w", s.Name, err).Advise("mount the Secret with the job's secrets at %s", at.Secrets)
		}
	}
	return dir, nil
}
