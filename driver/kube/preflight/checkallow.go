package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
)

// nodeAllowances are those by which a job can do on its node whatever root can do there.
var nodeAllowances = []string{"host_path", "host_pid", "privileged"}

// levelAllowances are those that only a namespace of the level privileged takes.
var levelAllowances = []string{"host_network", "lock_memory", "host_path", "host_pid", "host_ipc", "host_ports", "privileged"}

// checkAllowances says what jobs may ask for beyond their own pods.
func (l *scan) checkAllowances(context.Context) error {
	if len(l.terms.Allow) == 0 {
		l.addFinding("allow", engine.Found, "", "jobs and manifests may use nothing beyond their own pods")
		return nil
	}
	l.addFinding("allow", engine.Found, "", "jobs and manifests may use beyond their own pods: %s", strings.Join(l.terms.Allow, ", "))
	for _, a := range nodeAllowances {
		if slices.Contains(l.terms.Allow, a) {
			l.addFinding("allow", engine.Warning, "take it from allow, unless all who submit to this pool may be root on its nodes", "with %s a job can do on its node what root can do there", a)
		}
	}
	return nil
}
