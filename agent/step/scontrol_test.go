package step

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
)

func TestScontrolHostLists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("a1\na2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, list, out, err string }{
		{"show hostnames", "v[1-2]", "v1\nv2\n", ""},
		{"show hostname", "v[1-2]", "v1\nv2\n", ""},
		{"SHOW hostnames n[01-03],x", "", "n01\nn02\nn03\nx\n", ""},
		{"show hostnames " + file, "", "a1\na2\n", ""},
		{"show hostnames", "", "", ""},
		{"show hostlist n3,n1,n1,n2", "", "n[3,1,1-2]\n", ""},
		{"show hostlistsorted n3,n1,n1,n2", "", "n[1,1-3]\n", ""},
		{"show hostlist", "", "", "invalid encode argument"},
		{"show hostnames n[1-", "", "", "no closing"},
		{"show", "", "", "too few arguments"},
		{"show node v1", "", "", "show node: not built yet"},
		{"requeue 1", "", "", "requeue: not built yet"},
		{"--foo", "", "", "--foo: not built yet"},
		{"wait_job 1", "", "", ""},
	} {
		env := func(name string) string {
			if name == "SLURM_JOB_NODELIST" {
				return tc.list
			}
			return ""
		}
		out, err := runScontrol(strings.Fields(tc.args), env, io.Discard)
		if out != tc.out || (err == nil) != (tc.err == "") || err != nil && !regexp.MustCompile(tc.err).MatchString(err.Error()) {
			t.Errorf("%s: %q, %v", tc.args, out, err)
		}
	}
}

func TestScontrolShowsTheJob(t *testing.T) {
	a := asked(anna(uniform(2, 2, 4, 2)), "ntasks-per-node=2")
	a.Array = &job.ArrayTask{Job: 1, Index: 3}
	a.Output.Stdout = "%x-%A_%a.out"
	c := launch(t, a)
	got := c.run(`scontrol show job; scontrol -o show job=$SLURM_JOB_ID; scontrol -d show job 1_3 | grep IDX; scontrol show job 99`)
	for _, want := range []string{
		`JobId=1 ArrayJobId=1 ArrayTaskId=3 JobName=train\n`, `\n   UserId=anna\(1000\)`, `NodeList=v\[1-2\]`, `BatchHost=v1`,
		`NumNodes=2 NumCPUs=8 NumTasks=4 CPUs/Task=1`, `TRES=cpu=8,mem=0M,node=2,gres/gpu=4`, `StdOut=/.*/work/train-1_3.out\n`, `TimeLimit=00:05:00`,
		`\n\nJobId=1 .* BatchHost=v1 .*\n`, `Nodes=v2 CPUs=4 Mem=0 GRES=gpu:h100:2\(IDX:0,1\)`,
	} {
		if !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	if got.code != 1 || !strings.Contains(got.err, "show job 99: only the own job 1") {
		t.Errorf("exit %d, said %s", got.code, got.err)
	}
}
