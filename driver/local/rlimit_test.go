package local_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestLimitsOfTheSubmitter: a script, and the tasks of a direct program, run with the submitter's
// soft limits, up to the hard limits of the node, and see no variables of them.
func TestLimitsOfTheSubmitter(t *testing.T) {
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &have); err != nil {
		t.Fatal(err)
	}
	const script = `echo "$(ulimit -Sn) $(ulimit -Ss) $(ulimit -Sc) $(env | grep -c SLURM_RLIMIT_)"`
	core := "0"
	if have.Max != 0 {
		core = "1" // in 512 bytes
	}
	limits := []string{"SLURM_RLIMIT_NOFILE=177", "SLURM_RLIMIT_STACK=4194304", "SLURM_RLIMIT_CORE=512"}
	for _, direct := range []bool{false, true} {
		e := newEngine(t, local.Config{})
		l := plan(t, e, 1, script)
		if direct {
			l.Script, l.Job.Spec.Program = nil, job.Program{Kind: job.Direct, Args: []string{"sh", "-c", script}}
		}
		l.Env = append(l.Env, limits...)
		r := run(t, e, l)
		succeeded(t, r)
		if got := strings.TrimSpace(read(t, r.Files[0])); got != "177 4096 "+core+" 0" {
			t.Errorf("direct %t: %s, want 177 4096 %s 0", direct, got, core)
		}
	}
}
