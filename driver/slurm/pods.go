package slurm

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// inPods says which nodes run in Kubernetes pods on machines that nobody names, as the last
// list of nodes had it; empty: none. Those whose machine is known are recognised by it.
func (e *Engine) inPods() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.nameless) == 0 {
		return ""
	}
	return fmt.Sprintf("%s run in Kubernetes pods on machines that Slurm does not name: no pool of that Kubernetes cluster may have these machines; "+
		`scontrol update nodename=N comment='{"namespace":"NAMESPACE","podName":"POD","node":"MACHINE"}' names them`, hostlist.Compress(e.nameless))
}

// podsWithoutMachine are the nodes in pods of which it is not known on which machine they are.
func podsWithoutMachine(found []site.Node) (out []string) {
	for i := range found {
		if p, ok := found[i].Pod(); ok && p.Node == "" {
			out = append(out, found[i].Name)
		}
	}
	return out
}
