package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// kubeScript is a batch script that needs nothing of this machine's files.
func kubeScript(t *testing.T, s *slurmSite, name, text string) string {
	t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.WriteFile(name, []byte("#!/bin/sh\n#SBATCH --chdir=/tmp\n"+text), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	return name
}

// kubeDelegated: the cluster's own scheduler chooses the nodes. A job of one pod and a gang run
// and are shown on the nodes where they were; a gang for which that scheduler has no room waits
// there with its reason in plain words, none of its pods on a node, and runs when there is
// room; it can be taken back before; tasks have pods of their own if they are to; what the scheduler is not
// told is refused at the door.
func kubeDelegated(t *testing.T, s *slurmSite, l *lab.Lab) {
	t.Helper()
	const pool = "k8s-d"
	s.ok(t, "pool "+pool+" added", "pool", "add", pool, "--engine", "kube", "--kubeconfig", l.Kubeconfig(), "--namespace", "cox",
		"--image", lab.Base, "--agent-image", lab.Cox, "--set", "placed=false")
	s.eventually(t, pool+` .* up `, "pool", "list")
	s.ok(t, "native is taken", "pool", "check", pool)

	id := s.submitted(t, pool, kubeScript(t, s, "one.sh", "echo here is one\n"))
	s.ok(t, "COMPLETED", "wait", id)
	s.ok(t, "here is one", "logs", id)

	gang := kubeScript(t, s, "gang.sh", "#SBATCH -N2 --ntasks-per-node=1\nsrun -l sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS'\n")
	id = s.submitted(t, pool, gang)
	s.ok(t, "COMPLETED", "wait", id)
	s.ok(t, "1: rank 1 of 2", "logs", id)
	if out := s.ok(t, "n[1-2]", "show", id); strings.Contains(out, "@") {
		t.Errorf("it is shown on the pool as a whole:\n%s", out)
	}
	s.ok(t, "pool "+pool+" runs gangs as it should", "verify", pool, "--dir", "/tmp")

	// A pod for each task: more of them than nodes.
	three := filepath.Join(s.dir, "three.yaml")
	if err := os.WriteFile(three, []byte("tasks: 3\ncpus: 0.5\nworkdir: /tmp\nkubernetes: {pods: task}\ncommand: echo rank $SLURM_PROCID of $SLURM_NTASKS on $SLURM_NNODES as $SLURM_LOCALID\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id = s.submitted(t, pool, three)
	s.ok(t, "COMPLETED", "wait", id)
	for _, rank := range []string{"0", "1", "2"} {
		s.ok(t, "rank "+rank+" of 3 on 3 as 0", "logs", id)
	}
	s.cox(t, "submit", "--pool", pool, "--pods", "task", gang).Check(t, 69, "~", "~gang.sh:3: ")
	s.cox(t, "submit", "--pool", "local", three).Check(t, 69, "~", "~run in none")

	// No room: one of the two nodes takes nobody.
	l.Kubectl(t, "taint", "node", "n2", "busy=yes:NoSchedule")
	id = s.submitted(t, pool, gang)
	t.Log(s.eventually(t, `handed over to pool `+pool+` .*where it waits: Kubernetes' scheduler has no nodes for its 2 pods, which begin together: of 2 nodes: `, "why", id))
	s.eventually(t, `(?m)^ *`+id+` .*PENDING`, "queue")
	if on := l.Kubectl(t, "get", "pods", "--namespace=cox", "-l", "coxswain.sh/job="+id, "-o", "jsonpath={.items[*].spec.nodeName}"); on != "" {
		t.Errorf("of a gang that waits, pods are on %s", on)
	}
	s.ok(t, "", "hold", id)
	s.eventually(t, `held by`, "why", id)
	noPods(t, l, id)
	s.ok(t, "", "release", id)
	s.eventually(t, `handed over to pool `+pool, "why", id)
	l.Kubectl(t, "taint", "node", "n2", "busy-")
	s.ok(t, "COMPLETED", "wait", id)

	kubePreempted(t, s, l, pool)
	id = s.submitted(t, pool, kubeScript(t, s, "sleep.sh", "#SBATCH -N2\nsleep 600\n"))
	s.eventually(t, `(?m)^ *`+id+` .*RUNNING.* n\[1-2\]`, "queue")
	s.ok(t, "", "cancel", id)
	s.cox(t, "wait", id, "--quiet").Check(t, 130, "", "")
	r := s.cox(t, "submit", "--pool", pool, kubeScript(t, s, "five.sh", "#SBATCH -N5\ntrue\n"))
	if r.Code == 0 || !strings.Contains(r.Out+r.Err, "needs 5 nodes, only 2 qualify") {
		t.Errorf("five nodes of two: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	r = s.cox(t, "submit", "--pool", pool, kubeScript(t, s, "named.sh", "#SBATCH --nodelist=n1\ntrue\n"))
	if r.Code == 0 || !strings.Contains(r.Err, "named.sh:3: ") || !strings.Contains(r.Err, "--nodelist is not handed over") {
		t.Errorf("a node by name: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	s.ok(t, pool+" is gone", "pool", "remove", pool)
}

// noPods waits until a job has no pods any more.
func noPods(t *testing.T, l *lab.Lab, job string) {
	t.Helper()
	l.Emptied(t, "cox", "pods", "--selector=coxswain.sh/job="+job)
}
