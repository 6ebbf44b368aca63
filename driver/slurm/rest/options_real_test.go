package rest_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// told are options, some of which go together. The lab has four nodes with the feature lab
// and eight GPUs of type h100 each, licences for matlab, and a partition main.
var told = []string{
	"--account=root", "--begin=2030-01-02T03:04:05", "--comment=a b", "--constraint=lab", "--contiguous", "--core-spec=1", "--cpus-per-gpu=3 --gpus=2",
	"--cpus-per-task=4 --ntasks=3", "--deadline=2030-01-02T03:04:05 --time=10", "--dependency=singleton", "--distribution=cyclic", "--error=/tmp/e", "--exclude=@1,@2",
	"--exclusive", "--exclusive=user", "--gpus=h100:2", "--gpus=3", "--gpus-per-node=2 --nodes=2", "--gpus-per-task=1 --ntasks=2", "--gres=gpu:2", "--gres=gpu:h100:3",
	"--gres-flags=enforce-binding --gpus=1", "--gres-flags=disable-binding --gpus=1", "--input=/dev/zero", "--job-name=x y", "--kill-on-invalid-dep=yes", "--licenses=matlab:2", "--mail-type=END,FAIL --mail-user=me",
	"--mem=300M", "--mem=2G", "--mem=0 --exclusive", "--mem-per-cpu=50M", "--mem-per-gpu=1G --gpus=1", "--mincpus=3", "--nice", "--nice=20", "--no-requeue",
	"--nodelist=@3,@4 --nodes=2", "--nodes=2", "--nodes=2-4", "--ntasks=5", "--ntasks-per-node=2 --nodes=3", "--ntasks-per-core=1", "--ntasks-per-socket=2 --ntasks=2",
	"--open-mode=append", "--open-mode=truncate", "--output=/tmp/o", "--overcommit", "--oversubscribe", "--partition=main", "--prefer=lab",
	"--qos=normal", "--requeue", "--signal=B:USR1@120", "--signal=USR1@120", "--signal=10@60", "--sockets-per-node=1", "--spread-job", "--switches=1@5:00",
	"--thread-spec=1", "--threads-per-core=1", "--time=7", "--time=1-0", "--time=5 --time-min=2", "--tmp=0", "--use-min-nodes --nodes=1-2", "--wait-all-nodes=1", "--acctg-freq=30",
}

// differ are the fields of scontrol's in which two jobs differ that are the same.
var differ = regexp.MustCompile(`^(JobId|SubmitTime|EligibleTime|AccrueTime|LastSchedEval|Command|Comment|SubmitLine|AllocNode:Sid|StdIn|TRES|BatchHost|Priority|ArrayJobId|Power|MailUser|Scheduler|OOMKillStep|StartTime|EndTime)=`)

// What slurmctld makes of an option told by slurmrestd is what it makes of sbatch's.
func testOptions(t *testing.T, l *lab.Lab, s *rest.Site, version string) {
	byHand := l.Command()
	show := func(t *testing.T, s site.Site, sub *site.Submission) []string {
		t.Helper()
		id, err := s.Submit(t.Context(), sub)
		if err != nil {
			return []string{fault.KindOf(err).String() + ": " + err.Error()}
		}
		out := l.Run(t, "scontrol", "show", "job", "-o", strconv.FormatUint(uint64(id), 10))
		if err := s.End(t.Context(), id); err != nil {
			t.Error(err)
		}
		return slices.DeleteFunc(strings.Fields(out), differ.MatchString)
	}
	for _, text := range told {
		text = strings.ReplaceAll(text, "@1,@2", l.Nodes[0]+","+l.Nodes[1])
		text = strings.ReplaceAll(text, "@3,@4", l.Nodes[2]+","+l.Nodes[3])
		var opts []string
		for part := range strings.SplitSeq(text, " --") {
			opts = append(opts, "--"+strings.TrimPrefix(part, "--"))
		}
		sub := &site.Submission{Script: []byte("#!/bin/sh\nexit\n"), Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Options: append([]string{"--hold", "--job-name=x", "--output=/dev/null"}, opts...)}
		got := show(t, s, sub)
		if version == "v0.0.38" && len(got) == 1 && (strings.HasPrefix(got[0], "unsupported") || strings.Contains(text, "--signal=B:")) {
			t.Logf("%s", got[0])
			continue
		}
		want := show(t, byHand, sub)
		var diff []string
		for _, w := range want {
			if !slices.Contains(got, w) {
				diff = append(diff, "-"+w)
			}
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				diff = append(diff, "+"+g)
			}
		}
		if strings.Contains(text, "--nodes=") && !strings.Contains(text, "--ntasks") { // how many tasks, and CPUs, is then said by the number of nodes in the end
			diff = slices.DeleteFunc(diff, func(d string) bool {
				return strings.HasPrefix(d[1:], "NumCPUs=") || strings.HasPrefix(d[1:], "ReqTRES=")
			})
		}
		if len(diff) > 0 && !(len(want) == 1 && len(got) == 1) { // both refuse it, or else it is in the difference
			t.Errorf("%s: %s", text, strings.Join(diff, " "))
		}
	}
}
