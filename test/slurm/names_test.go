package slurmtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbatch"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
)

var faces = map[string]func([]string, slurmcmd.Stdio) int{
	"squeue": squeue.Main, "sinfo": sinfo.Main, "scontrol": scontrol.Main, "scancel": scancel.Main, "sbatch": sbatch.Main,
}

// TestHeaders compares the title and the width of every column of squeue and sinfo.
func TestHeaders(t *testing.T) {
	l := openLab(t)
	s := slurmcmdtest.New(t).Queue()
	for _, c := range []struct{ name, letters string }{
		{"squeue", "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRStTuUvVwWxXyYzZ"},
		{"sinfo", "aAbBcCdDeEfFgGhHIlLmMnNoOpPRrsStTuUvVwXYzZ"},
	} {
		for _, form := range []string{"%", "%30", "%.7"} {
			var format strings.Builder
			for _, letter := range c.letters {
				format.WriteString(form + string(letter) + "|")
			}
			compareHeader(t, l, s, c.name, "-o", format.String())
		}
	}
	squeues := strings.Fields(`account accruetime admin_comment arrayjobid arraytaskid batchflag batchhost boardspernode burstbuffer cluster
		clusterfeature command comment contiguous cores corespec cpus-per-task cpus-per-tres deadline delayboot dependency derivedec eligibletime
		endtime exit_code feature groupid groupname hetjobid hetjoboffset hetjobidset jobarrayid jobid lastschedeval licenses maxcpus maxnodes
		mem-per-tres minmemory mintime mintmpdisk mincpus name network nice nodelist ntpercore ntpernode ntpersocket numcpus numnodes numtasks
		origin oversubscribe partition pendingtime priority prioritylong profile qos reason reasonlist reboot reqnodes reqswitch requeue
		reservation restartcnt schednodes sct sockets starttime state statecompact stderr stdin stdout submittime threads timeleft timelimit
		timeused tres-alloc tres-per-job tres-per-node tres-per-task userid username wckey workdir`)
	compareHeader(t, l, s, "squeue", "-O", strings.Join(squeues, ","))
	compareHeader(t, l, s, "squeue", "-O", strings.Join(squeues, ":.33,")+":.33")
	compareHeader(t, l, s, "sinfo", "-O", strings.Join(strings.Fields(`available cluster comment cpus cpusload cpusstate cores disk features features_act
		freemem gres gresused groups maxcpuspernode memory nodes nodeaddr nodeai nodeaiot nodehost nodelist oversubscribe partition partitionname port
		preemptmode prioritytier priorityjobfactor reason root size statecompact statelong sockets socketcorethread time timestamp threads user
		version weight`), ","))
	for _, line := range []string{"squeue", "squeue -l", "squeue --start", "squeue -s", "sinfo -R", "sinfo -R -l"} {
		f := strings.Fields(line)
		compareHeader(t, l, s, f[0], f[1:]...)
	}
}

// compareHeader compares the line of titles.
func compareHeader(t *testing.T, l *lab, s *slurmcmdtest.Server, name string, args ...string) {
	t.Helper()
	title := func(out string) string {
		lines := strings.Split(out, "\n")
		if len(lines) > 1 && strings.HasPrefix(lines[0], "Sat ") || len(lines) > 1 && strings.HasSuffix(lines[0], " 2026") {
			return lines[1]
		}
		return lines[0]
	}
	// Slurm's sinfo compares every two lines of a list, which takes minutes where each
	// node and partition has one; the title is the same for a single node.
	few := args
	if name == "sinfo" && slices.Contains([]string{"-o", "-O"}, args[0]) {
		few = append([]string{"-n", "node1", "-p", "main"}, args...)
	}
	real, ours := l.run(t, name, few...), s.Run(faces[name], "", args...)
	want, got := title(real.stdout), title(ours.Out)
	if want != got {
		t.Errorf("%s %q: titles\n%q, Slurm has\n%q", name, args, got, want)
	}
}

// TestWrongLines compares what is said of command lines that are wrong, and exit codes.
func TestWrongLines(t *testing.T) {
	l := openLab(t)
	s := slurmcmdtest.New(t).Queue()
	t.Chdir(l.dir)
	s.Answer["POST /v1/jobs/change"] = api.Changed{Matched: 1, Errors: []api.ChangeError{{Name: "4000000", Error: api.Error{Status: 404, Title: "not found"}}}}
	// Where ours differs on purpose.
	ownCode := map[string]bool{"squeue -O bogus": true, "sinfo -O bogus": true} // Slurm's says that it went well
	ownText := map[string]bool{"squeue extra": true}                            // the options that there are
	for _, line := range []string{
		"squeue --bogus", "squeue -i", "squeue -t nonsense", "squeue -j nonsense", "squeue extra", "squeue -j 4000000", "squeue --format",
		"squeue -O bogus", "squeue -u no-such-user-here -h", "squeue --lo=1",
		"sinfo --bogus", "sinfo -n", "sinfo -O bogus", "sinfo -p nope -h", "sinfo -T",
		"scancel", "scancel --bogus", "scancel nonsense", "scancel 4000000", "scancel -t nonsense", "scancel -s NONSENSE 1", "scancel -u no-such-user-here",
		"scancel -Q 4000000",
		"scontrol bogus", "scontrol show bogus", "scontrol show job 4000000", "scontrol show job nonsense", "scontrol show node nope",
		"scontrol show partition nope", "scontrol hold", "scontrol update foo=3", "scontrol update job=1 foo=3",
		"scontrol update nodename=node1 state=drain", "scontrol hold nonsense",
		"sbatch none.sh",
	} {
		t.Run(line, func(t *testing.T) {
			f := strings.Fields(line)
			real, ours := l.run(t, f[0], f[1:]...), s.Run(faces[f[0]], "", f[1:]...)
			if ours.Code != real.code && !ownCode[line] {
				t.Errorf("exit %d, Slurm has %d", ours.Code, real.code)
			}
			if want, got := strings.TrimSpace(real.stderr), strings.TrimSpace(ours.Err); want != got {
				t.Errorf("says\n%s\nSlurm says\n%s", got, want)
			}
			if strings.TrimSpace(real.stdout) != strings.TrimSpace(ours.Out) && !ownText[line] {
				t.Errorf("prints\n%s\nSlurm prints\n%s", ours.Out, real.stdout)
			}
		})
	}
}
