package slurmcmd_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/seff"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sstat"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// measuredJobs are job 7, whose use is known, job 8, of which nobody measured it, and job 9, which
// runs.
func measuredJobs(t *testing.T) *slurmcmdtest.Server {
	s := slurmcmdtest.New(t)
	from, to := slurmcmdtest.Now.Add(-2*time.Hour), slurmcmdtest.Now.Add(-time.Hour)
	use := func(d time.Duration, memory int64) rusage.Use {
		return rusage.Use{Known: rusage.CPU | rusage.Memory | rusage.IO, User: d * 9 / 10, System: d / 10, Memory: memory << 20, Read: 5 << 10}
	}
	first := rusage.TaskStep(0, 0, "n1", use(1800*time.Second, 1000))
	first.Merge(rusage.TaskStep(0, 1, "n2", use(900500*time.Millisecond, 3000)))
	batch := rusage.TaskStep(-1, 0, "n1", use(1500*time.Millisecond, 12))
	steps := []api.Step{
		{ID: "batch", Name: "batch", State: "COMPLETED", Started: from, Ended: to, Nodes: "n1", Count: 1, Tasks: 1, CPUs: 2, Used: &batch},
		{ID: "0", Name: "train", State: "FAILED", Exit: job.ExitCode{Status: 3}, Started: from.Add(time.Second), Ended: to.Add(-time.Minute), Nodes: "n[1-2]", Count: 2, Tasks: 2, CPUs: 4, Used: &first},
	}
	record := rusage.Make([]rusage.Node{{Name: "n1", Use: use(1801500*time.Millisecond, 1012)}, {Name: "n2", Use: use(900500*time.Millisecond, 3000)}}, [][]rusage.Step{{batch, first}})
	cell := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	base := map[string]string{
		"user": "root", "gid": "0", "cpus": "4", "nodes_min": "2", "memory": "8589934592", "state": "COMPLETED", "script_hash": "x", "node_list": "n[1-2]", "batch_host": "n1",
		"submitted": fmt.Sprint(from.Unix()), "started": fmt.Sprint(from.Unix()), "ended": fmt.Sprint(to.Unix()),
	}
	make := func(id string, more map[string]string) map[string]string {
		j := map[string]string{"id": id, "name": id}
		for _, m := range []map[string]string{base, more} {
			for k, v := range m {
				j[k] = v
			}
		}
		return j
	}
	s.Jobs = []map[string]string{
		make("9", map[string]string{"state": "RUNNING", "ended": "0"}),
		make("8", nil),
		make("7", map[string]string{"steps": cell(steps), "used": cell(record)}),
	}
	running := []api.Step{{ID: "batch", State: "RUNNING", Nodes: "n1", Tasks: 1, Used: &batch}, {ID: "0", State: "COMPLETED"}, {ID: "1", State: "RUNNING", Nodes: "n[1-2]", Tasks: 2, Used: &first}}
	s.Answer["GET /v1/jobs/7/usage"] = &api.Usage{Job: 7, Name: "7", State: "COMPLETED", Used: record, Steps: steps}
	s.Answer["GET /v1/jobs/8/usage"] = &api.Usage{Job: 8, Name: "8", State: "COMPLETED", Steps: []api.Step{}}
	s.Answer["GET /v1/jobs/9/usage"] = &api.Usage{Job: 9, Name: "9", State: "RUNNING", Running: true, Used: record, Steps: running}
	s.Answer["GET /v1"] = map[string]string{"name": "lab"}
	return s
}

func TestUsageInSlurmsCommands(t *testing.T) {
	s := measuredJobs(t)
	for _, c := range []struct {
		main func([]string, slurmcmd.Stdio) int
		line string
		want string
	}{
		{
			sacct.Main, "-j 7 -n -P -o jobid,jobname,state,exitcode,derivedexitcode,ntasks,alloccpus,elapsed,totalcpu,usercpu,systemcpu",
			"7||COMPLETED|0:0|3:0||4|01:00:00|00:45:02|40:31.800|04:30.200\n" +
				"7.batch|batch|COMPLETED|0:0||1|2|01:00:00|00:01.500|00:01.350|00:00.150\n" +
				"7.0|train|FAILED|3:0||2|4|00:58:59|45:00.500|40:30.450|04:30.050\n",
		},
		{
			sacct.Main, "-j 7.0 -n -P -o jobid,maxrss,maxrssnode,maxrsstask,averss,avecpu,mincpu,mincpunode,mincputask,maxdiskread,maxdiskwrite,maxvmsize",
			"7.0|3000M|n2|1|2000M|00:22:30|00:15:00|n2|1|5K|0|\n",
		},
		{sacct.Main, "-j 7.0 -n -P --units=G -o maxrss,averss", "2.93G|1.95G\n"},
		{sacct.Main, "-j 7 -n -P -o alloctres", "\ncpu=2,mem=8G,node=1\ncpu=4,mem=16G,node=2\n"},
		{sacct.Main, "-j 7.0 -n -P --noconvert -o maxrss", "3145728000\n"},
		{sacct.Main, "-j 7.0 -n -P -o tresusageintot,tresusageinmaxnode", "cpu=00:45:00,fs/disk=10K,mem=4000M|fs/disk=n1,mem=n2\n"},
		{sacct.Main, "-j 7 -X -n -P -o jobid,totalcpu,maxrss", "7|00:45:02|\n"},
		{sacct.Main, "-j 8 -n -P -o jobid,totalcpu,maxrss,derivedexitcode", "8|||0:0\n8.batch|||\n"}, // never 0
		{sstat.Main, "-j 9 -n -P -o jobid,maxrss,ntasks,nodelist", "9.1|3000M|2|n[1-2]\n"},
		{sstat.Main, "-j 9 -a -n -P -o jobid,maxrss", "9.batch|12M\n9.1|3000M\n"},
		{sstat.Main, "-j 9.batch -n -P -o jobid,mincpu", "9.batch|00:00:01\n"},
		{
			seff.Main, "7", "Job ID: 7\nCluster: lab\nUser/Group: root/root\nState: COMPLETED (exit code 0)\nNodes: 2\nCores per node: 2\n" +
				"CPU Utilized: 00:45:02\nCPU Efficiency: 18.76% of 04:00:00 core-walltime\nJob Wall-clock time: 01:00:00\n" +
				"Memory Utilized: 3.91 GB\nMemory Efficiency: 24.41% of 16.00 GB (8.00 GB/node)\n" +
				"The task which had the largest memory consumption differs by 150.00% from the average task max memory consumption\n",
		},
		{
			seff.Main, "8", "Job ID: 8\nCluster: lab\nUser/Group: root/root\nState: COMPLETED (exit code 0)\nNodes: 2\nCores per node: 2\n" +
				"CPU Utilized: unknown\nCPU Efficiency: unknown of 04:00:00 core-walltime\nJob Wall-clock time: 01:00:00\n" +
				"Memory Utilized: unknown\nMemory Efficiency: unknown of 16.00 GB (8.00 GB/node)\n",
		},
	} {
		if got := s.Run(c.main, "", strings.Fields(c.line)...); got.Out != c.want || got.Code != 0 {
			t.Errorf("%s: exit %d\n%s\nwant\n%s\n%s", c.line, got.Code, got.Out, c.want, got.Err)
		}
	}
	if got := s.Run(sstat.Main, "", "7"); got.Code != 1 || !strings.Contains(got.Err, "No steps running for JobId=7") {
		t.Errorf("a job that has ended: exit %d, %q", got.Code, got.Err)
	}
	if got := s.Run(seff.Main, "", "70"); got.Code != 2 || got.Err != "Job not found.\n" {
		t.Errorf("an unknown job: exit %d, %q", got.Code, got.Err)
	}
}
