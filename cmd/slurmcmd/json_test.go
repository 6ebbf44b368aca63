package slurmcmd_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
)

// TestWaitingTasks: sacct has one line for an array's tasks that wait, and one each with --array.
func TestWaitingTasks(t *testing.T) {
	s := slurmcmdtest.New(t)
	task := func(id, index, state string) map[string]string {
		return map[string]string{"id": id, "name": "7_" + index, "array_job": "7", "array_task": index, "array_limit": "2", "state": state, "submitted": "1795262000", "eligible": "1795262000"}
	}
	s.Jobs = []map[string]string{task("10", "6", "PENDING"), task("9", "3", "PENDING"), task("8", "2", "RUNNING"), task("7", "1", "PENDING"), {"id": "3", "state": "PENDING", "submitted": "1795262000"}}
	run := func(args ...string) string {
		return s.Run(sacct.Main, "", append([]string{"-n", "-P", "-X", "-j", "3,7", "-o", "jobid,jobidraw,state"}, args...)...).Out
	}
	if got, want := run(), "3|3|PENDING\n7_[1,3,6%2]|7|PENDING\n7_2|8|RUNNING\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := run("--array"), "3|3|PENDING\n7_1|7|PENDING\n7_2|8|RUNNING\n7_3|9|PENDING\n7_6|10|PENDING\n"; got != want {
		t.Errorf("--array: %q, want %q", got, want)
	}
}

// TestHostileText: what one user wrote does not move another's cursor, nor turn the direction
// of the text, in any command that shows it.
func TestHostileText(t *testing.T) {
	const hostile = "a\u202eb\x1b[2Jc\u2066\nd"
	s := slurmcmdtest.New(t).Queue()
	for _, field := range []string{"job_name", "comment", "command", "work_dir", "stdout", "message", "features"} {
		s.Jobs[0][field] = hostile
	}
	s.Nodes[3].Why = hostile
	for _, line := range []string{
		"squeue", "squeue -o %j|%k|%o|%Z|%f", "squeue -O name:,comment:,command:,workdir:,stdout:", "scontrol show job 201", "scontrol -o show job 201",
		"sacct -a -P -S 2026-11-01 -o jobname,comment,workdir", "sinfo -R", "sinfo -o %E", "scontrol show node n4",
	} {
		words := strings.Fields(line)
		r := s.Run(mains[words[0]], "", words[1:]...)
		if !strings.Contains(r.Out, "a?") || strings.ContainsAny(r.Out, "\u202e\u2066\x1b") {
			t.Errorf("%s prints %q", line, r.Out)
		}
	}
}

// TestNodeJSON: what monitors read of a node: what it has, what is used, its kernel.
func TestNodeJSON(t *testing.T) {
	s := slurmcmdtest.New(t).Queue()
	r := s.Run(scontrol.Main, "", "show", "nodes", "--json")
	var doc struct {
		Nodes []struct {
			Name, Architecture, TRES, Gres string
			OS                             string `json:"operating_system"`
			TRESUsed                       string `json:"tres_used"`
			CPULoad                        int    `json:"cpu_load"`
			Disk                           int    `json:"temporary_disk"`
			Boot                           struct {
				Set    bool
				Number int64
			} `json:"boot_time"`
			Partitions []string
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &doc); err != nil || len(doc.Nodes) != 7 {
		t.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	n := doc.Nodes[1]
	if n.Name != "n2" || n.Architecture != "x86_64" || n.OS != "Linux 6.1.0 #1 SMP" || n.CPULoad != 750 || n.Disk != 102400 || !n.Boot.Set || n.Boot.Number != slurmcmdtest.Now.Unix()-86400 {
		t.Errorf("%+v", n)
	}
	if n.TRES != "cpu=32,mem=256G,billing=32,gres/gpu=8" || n.TRESUsed != "cpu=16,gres/gpu=8" || strings.Join(n.Partitions, ",") != "gpu" {
		t.Errorf("%+v", n)
	}
	if unknown := doc.Nodes[0]; unknown.Boot.Set || unknown.OS != "" || unknown.CPULoad != 0 {
		t.Errorf("of a node whose kernel is not known: %+v", unknown)
	}
}

// TestPartitionJSON: one partition or all of them as JSON, as Slurm's data parser has them.
func TestPartitionJSON(t *testing.T) {
	s := slurmcmdtest.New(t).Queue()
	for line, want := range map[string]int{"show partitions --json": 3, "show partition=gpu --json": 1, "show partition nowhere --json": 0} {
		r := s.Run(scontrol.Main, "", strings.Fields(line)...)
		var doc struct {
			Partitions []struct {
				Name, Cluster string
				Nodes         struct {
					Configured string
					Total      int
				}
				TRES     struct{ Configured string }
				CPUs     struct{ Total int }
				Maximums struct {
					Time struct {
						Set, Infinite bool
						Number        int
					}
				}
				Partition struct{ State []string }
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &doc); err != nil || len(doc.Partitions) != want {
			t.Errorf("%s: %v, %s%s", line, err, r.Out, r.Err)
			continue
		}
		if want == 0 {
			continue
		}
		p := doc.Partitions[0]
		if p.Name != "gpu" || p.Cluster != "lab" || p.Nodes.Configured != "n[1-5]" || p.Nodes.Total != 5 || p.CPUs.Total != 160 || p.TRES.Configured != "cpu=160,mem=1280G,node=5,billing=160,gres/gpu=40" || p.Maximums.Time.Number != 2880 || strings.Join(p.Partition.State, "") != "UP" {
			t.Errorf("%s: %+v", line, p)
		}
	}
}
