package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// takesLow runs on all that there is, in a gang, and ends when the test lets it: until then no signal
// but the last ends it or its ranks, which show that they live. The second time it is short.
const takesLow = `#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=2 --requeue
[ -z "$SLURM_RESTART_COUNT" ] || exec echo restart $SLURM_RESTART_COUNT
trap 'echo told to end' TERM
srun sh -c 'trap "" TERM; while [ ! -e /scratch/end ]; do date +%N >/scratch/beat.$SLURM_PROCID; sleep 0.1; done' &
while [ ! -e /scratch/end ]; do sleep 0.1; done
exit 1
`

// kubeTakes: the site's rules choose who makes room in a pool whose nodes the cluster's scheduler
// chooses. A gang is told to end, whole, though the other job wants one of its nodes; nothing of the
// other is in the cluster until the gang's last pod has ended; then that runs, and the gang after it,
// once more. The server is that of kubeMakesRoom, whose rules hold.
//
// Seen to fail with: jobs in a pool as a whole that make room for nobody.
func kubeTakes(t *testing.T, s *slurmSite, l *lab.Lab, add []string, scratch string) {
	t.Helper()
	const pool = "k8s-t"
	add = slices.Concat(add, []string{"--set", "placed=false", "--set", `paths={"/scratch":"hostPath:` + scratch + `"}`})
	add[2] = pool
	s.ok(t, "pool "+pool+" added", add...)
	s.eventually(t, pool+` .* up `, "pool", "list")
	may := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(scratch, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	low := s.submitted(t, pool, kubeScript(t, s, "takes-low.sh", takesLow), "-q", "plain", "-A", "theirs")
	for end, all := time.Now().Add(5*time.Minute), []string(nil); len(all) < 2; time.Sleep(50 * time.Millisecond) { // a file tells nobody that it is there
		if time.Now().After(end) {
			t.Fatalf("of two ranks there live %v", all)
		}
		all, _ = filepath.Glob(filepath.Join(scratch, "beat.*"))
	}
	s.eventually(t, `(?m)^ *`+low+` .*RUNNING.* n\[1-2\]`, "queue")
	high := s.submitted(t, pool, kubeScript(t, s, "takes-high.sh", roomHigh), "-q", "high", "-A", "ours")
	s.eventually(t, `takes the place of job `+low+`, until the last of it has ended`, "why", high)
	s.eventually(t, `told to end`, "logs", low)
	s.ok(t, "preempted by job "+high, "show", low)
	if pods := l.Kubectl(t, "get", "pods", "--namespace=cox", "-l", "coxswain.sh/job="+high, "--output=name"); pods != "" {
		t.Errorf("beside the job that makes room for it there is %s", pods)
	}
	may("end")
	s.eventually(t, `alone|beside it`, "logs", high)
	s.ok(t, "alone", "logs", high)
	if out := s.ok(t, "PENDING", "show", low); !strings.Contains(out, "preempted by job "+high) {
		t.Errorf("who waits is shown as\n%s", out)
	}
	s.ok(t, "held by     job "+high, "why", low)
	noPods(t, l, low)
	may("over")
	s.ok(t, "COMPLETED", "wait", high)
	s.ok(t, "COMPLETED", "wait", low)
	s.ok(t, "restart 1\n", "logs", low)
	s.ok(t, pool+" is gone", "pool", "remove", pool)
}
