package main

import (
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// kubePreempted: the cluster's scheduler takes a pod of each of two gangs away for somebody else's
// pod of a higher priority, which wants both of its node's GPUs. Both gangs end whole. The one
// that may be queued again is handed over again, waits there for room, and runs when the other is
// gone; the other has ended, in the cluster's words.
//
// Seen to fail with: PreemptionByScheduler taken for any other disruption.
func kubePreempted(t *testing.T, s *slurmSite, l *lab.Lab, pool string) {
	t.Helper()
	l.Apply(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n")
	var jobs []string
	for _, option := range []string{"--requeue", "--no-requeue"} {
		text := "#SBATCH -N2 --gpus-per-node=1 " + option + "\n[ -z \"$SLURM_RESTART_COUNT\" ] || exec echo restart $SLURM_RESTART_COUNT\nexec sleep 600\n"
		jobs = append(jobs, s.submitted(t, pool, kubeScript(t, s, "taken"+option+".sh", text)))
	}
	again, once := jobs[0], jobs[1]
	for _, id := range jobs {
		s.eventually(t, `(?m)^ *`+id+` .*RUNNING.* n\[1-2\]`, "queue")
	}
	l.Apply(t, `apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: urgent
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: `+lab.Base+`, command: [sleep, '600'], resources: {limits: {nvidia.com/gpu: 2}}}]
`)
	s.cox(t, "wait", once, "--quiet").Check(t, 143, "", "")
	s.ok(t, "PREEMPTED", "show", once)
	s.ok(t, "was ended by the cluster: PreemptionByScheduler: ", "show", once)
	noPods(t, l, once)
	s.eventually(t, `handed over to pool `+pool+` .*where it waits: Kubernetes' scheduler has no nodes for `, "why", again)
	l.Kubectl(t, "delete", "pod/urgent", "priorityclass/urgent")
	s.ok(t, "COMPLETED", "wait", again)
	s.ok(t, "restart 1\n", "logs", again)
}
