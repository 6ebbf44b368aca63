package slurmcmd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
)

// TestSuspensionsInAccounting: -s S finds jobs that were suspended within the window, also those that
// have gone on or ended since, and the time that a job was suspended is not counted as run.
//
// Seen to fail with: the state that a job has now; a time that is over counted until now.
func TestSuspensionsInAccounting(t *testing.T) {
	s := slurmcmdtest.New(t)
	at := func(d time.Duration) string { return fmt.Sprint(slurmcmdtest.Now.Add(-d).Unix()) }
	s.Jobs = []map[string]string{
		{"id": "1", "state": "SUSPENDED", "submitted": at(3 * time.Hour), "started": at(3 * time.Hour), "suspended_at": at(10 * time.Minute), "suspended_for": "3600", "cpus": "2"},
		{"id": "2", "state": "COMPLETED", "submitted": at(5 * time.Hour), "started": at(5 * time.Hour), "ended": at(time.Hour), "suspended_at": at(3 * time.Hour), "resumed_at": at(2 * time.Hour), "suspended_for": "3600", "cpus": "2"},
		{"id": "3", "state": "CANCELLED", "submitted": at(5 * time.Hour), "started": at(5 * time.Hour), "ended": at(4 * time.Hour), "suspended_at": at(270 * time.Minute), "cpus": "2"},
		{"id": "4", "state": "RUNNING", "submitted": at(5 * time.Hour), "started": at(5 * time.Hour)},
	}
	for line, want := range map[string]string{
		"-S now-6hours -E now":                "1|01:10:00|01:50:00|03:40:00\n2|01:00:00|03:00:00|06:00:00\n3|00:30:00|00:30:00|01:00:00\n",
		"-S now-150minutes -E now-121minutes": "2|01:00:00|03:00:00|06:00:00\n",
		"-S now-110minutes -E now-15minutes":  "",
		"-S now-5minutes -E now":              "1|01:10:00|01:50:00|03:40:00\n",
	} {
		got := s.Run(sacct.Main, "", append([]string{"-a", "-n", "-P", "-X", "-s", "S", "-o", "jobid,suspended,elapsed,cputime"}, words(t, line)...)...)
		if got.Out != want || got.Code != 0 {
			t.Errorf("sacct %s: exit %d, %q, want %q\n%s", line, got.Code, got.Out, want, got.Err)
		}
	}
}

// TestDuplicatesInAccounting: -D lists the attempts before a job's last one with their own times,
// states, exit codes and nodes; without it only the last one is there, as in Slurm.
//
// Seen to fail with: -D that does nothing.
func TestDuplicatesInAccounting(t *testing.T) {
	s := slurmcmdtest.New(t)
	at := func(d time.Duration) int64 { return slurmcmdtest.Now.Add(-d).Unix() }
	past := fmt.Sprintf("1 %d %d NODE_FAIL 1 0 n[1-2];2 %d %d FAILED 75 0 n3;3 %d %d REQUEUED 0 15 n4",
		at(60*time.Minute), at(50*time.Minute), at(40*time.Minute), at(39*time.Minute), at(30*time.Minute), at(25*time.Minute))
	s.Jobs = []map[string]string{
		{"id": "2", "state": "COMPLETED", "submitted": fmt.Sprint(at(time.Minute)), "started": fmt.Sprint(at(time.Minute)), "ended": fmt.Sprint(at(time.Second)), "node_list": "n1"},
		{
			"id": "1", "state": "COMPLETED", "attempt": "4", "submitted": fmt.Sprint(at(2 * time.Hour)), "eligible": fmt.Sprint(at(25 * time.Minute)),
			"started": fmt.Sprint(at(20 * time.Minute)), "ended": fmt.Sprint(at(10 * time.Minute)), "node_list": "n5", "past": past,
		},
	}
	const last = "1|COMPLETED|0:0|00:10:00|n5\n2|COMPLETED|0:0|00:00:59|n1\n"
	for line, want := range map[string]string{
		"":                                     last,
		"-D":                                   "1|NODE_FAIL|1:0|00:10:00|n[1-2]\n1|FAILED|75:0|00:01:00|n3\n1|REQUEUED|0:15|00:05:00|n4\n" + last,
		"-D -S now-45minutes -E now-35minutes": "1|FAILED|75:0|00:01:00|n3\n",
		"-D -s F -S now-2hours -E now":         "1|FAILED|75:0|00:01:00|n3\n",
	} {
		got := s.Run(sacct.Main, "", append([]string{"-a", "-n", "-P", "-X", "-o", "jobid,state,exitcode,elapsed,nodelist"}, words(t, line)...)...)
		if got.Out != want || got.Code != 0 {
			t.Errorf("sacct %s: exit %d, %q, want %q\n%s", line, got.Code, got.Out, want, got.Err)
		}
	}
}

// TestCancelledInAccounting: a job that somebody cancelled is CANCELLED by him at once, also while
// its processes live, and has no exit code; its script has one.
//
// Seen to fail with: the state as it is, the state of the script for the job's.
func TestCancelledInAccounting(t *testing.T) {
	s := slurmcmdtest.New(t)
	at := func(d time.Duration) string { return fmt.Sprint(slurmcmdtest.Now.Add(d).Unix()) }
	s.Jobs = []map[string]string{
		{"id": "1", "state": "CANCELLED", "cancelled_by": "0", "exit_signal": "15", "submitted": at(-time.Minute), "started": at(-time.Minute), "ended": at(-time.Second), "script_hash": "a"},
		{"id": "2", "state": "RUNNING", "flags": "STOPPING", "cancelled_by": "1001", "submitted": at(-time.Minute), "started": at(-time.Minute), "script_hash": "a"},
		{"id": "3", "state": "CANCELLED", "submitted": at(-time.Minute), "ended": at(-time.Second)},
		{"id": "4", "state": "RUNNING", "submitted": at(-time.Minute), "started": at(-time.Minute)},
	}
	for line, want := range map[string]string{
		"":                             "1|CANCELLED by 0|0:0\n1.batch|CANCELLED|0:15\n2|CANCELLED by 1001|0:0\n2.batch|RUNNING|0:0\n3|CANCELLED|0:0\n4|RUNNING|0:0\n",
		"-X -s R":                      "4|RUNNING|0:0\n",
		"-X -s CA -S now-1hour -E now": "1|CANCELLED by 0|0:0\n2|CANCELLED by 1001|0:0\n3|CANCELLED|0:0\n",
	} {
		got := s.Run(sacct.Main, "", append([]string{"-a", "-n", "-P", "-o", "jobid,state,exitcode"}, words(t, line)...)...)
		if got.Out != want || got.Code != 0 && want != "" {
			t.Errorf("sacct %s: exit %d, %q, want %q\n%s", line, got.Code, got.Out, want, got.Err)
		}
	}
}

// TestStepsInAccounting: -j JOB.STEP shows that step and nothing of the job beside it; a step that has
// no record shows nothing. snakemake asks for the reasons of ten steps of a job that failed.
//
// Seen to fail with: the step left out of the question.
func TestStepsInAccounting(t *testing.T) {
	s := slurmcmdtest.New(t)
	at := func(d time.Duration) string { return fmt.Sprint(slurmcmdtest.Now.Add(d).Unix()) }
	task := map[string]string{"id": "2", "name": "2_0", "array_job": "2", "array_task": "0"}
	s.Jobs = []map[string]string{{"id": "1", "name": "1"}, task, {"id": "3", "name": "3"}}
	for _, j := range s.Jobs {
		j["state"], j["submitted"], j["started"], j["ended"], j["script_hash"] = "COMPLETED", at(-time.Minute), at(-time.Minute), at(-time.Second), "a"
	}
	for line, want := range map[string]string{
		"-j 1":                   "1\n1.batch\n",
		"-j 1.batch":             "1.batch\n",
		"-X -j 1.batch":          "",
		"-j 1.0":                 "",
		"-j 1.0,1.batch,3":       "1.batch\n3\n3.batch\n",
		"-j 1.0 -j 2.batch":      "2_0.batch\n",
		"-j 2_0.batch,1.batch,1": "1\n1.batch\n2_0.batch\n",
	} {
		got := s.Run(sacct.Main, "", append([]string{"-a", "-n", "-P", "-o", "jobid"}, words(t, line)...)...)
		if got.Out != want || got.Code != 0 {
			t.Errorf("sacct %s: exit %d, %q, want %q\n%s", line, got.Code, got.Out, want, got.Err)
		}
	}
}
