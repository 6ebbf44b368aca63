package localrun

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// secretsOf returns what finds the values of the Secrets that are in manifests, each request its own; nil: there are
// none, and nobody keeps others.
func secretsOf(requests []*intake.Request) func(uid uint32, one *job.Secret) ([]byte, error) {
	sets := map[string]map[string][]byte{}
	for i, r := range requests {
		if values := r.Secrets(); len(values) > 0 {
			set := fmt.Sprintf("%032x", i)
			sets[set] = values
			r.UseKept(set)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	return func(_ uint32, one *job.Secret) ([]byte, error) {
		if value, ok := sets[one.Kept][one.Name]; ok {
			return value, nil
		}
		return nil, fault.New(fault.NotFound, "there is no secret %s in the file", one.Name).Advise("start a server (cox up -d), keep it there (cox secret set) and run the job through it")
	}
}
