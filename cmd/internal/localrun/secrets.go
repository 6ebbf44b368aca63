package localrun

import (
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// secretsOf returns what finds the values of the Secrets that stand in manifests; nil: there are none, and nobody
// keeps others.
func secretsOf(requests []*intake.Request) func(uid uint32, name string) ([]byte, error) {
	all := map[string][]byte{}
	for _, r := range requests {
		for name, value := range r.Secrets() {
			all[name] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(_ uint32, name string) ([]byte, error) {
		if value, ok := all[name]; ok {
			return value, nil
		}
		return nil, fault.New(fault.NotFound, "there is no secret %s in the file", name).Advise("start a server (cox up -d), keep it there (cox secret set) and run the job through it")
	}
}
