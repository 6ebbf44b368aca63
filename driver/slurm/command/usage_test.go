package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// TestUsedIsRead: rows as sacct prints them: a job with steps of all kinds, one that has not ended
// there, a component of a heterogeneous job, a cluster that gathers nothing.
//
// Seen to fail with: averages that are not multiplied by the tasks; sizes in units of 1000.
func TestUsedIsRead(t *testing.T) {
	row := func(job, name, tasks, end, user, system, rss, read string) string {
		f := map[string]string{
			"JobID": job, "JobName": name, "NTasks": tasks, "NodeList": "n[1-2]", "Submit": "100", "Start": "200", "End": end, "ExitCode": "3:0", "UserCPU": user, "SystemCPU": system,
			"MinCPU": "00:01:00", "MinCPUNode": "n2", "MinCPUTask": "1", "AveRSS": rss, "MaxRSS": rss, "MaxRSSNode": "n1", "MaxRSSTask": "0", "AveDiskRead": read, "AveDiskWrite": read,
			"MaxDiskRead": read, "MaxDiskReadNode": "n1", "MaxDiskReadTask": "2", "MaxDiskWrite": "0",
		}
		var b strings.Builder
		for _, field := range spent {
			b.WriteString(f[field] + sep)
		}
		return b.String() + "\n"
	}
	all, err := parseUsed(row("7", "train", "", "300", "1-00:00:01", "00:01.500", "", "") +
		row("7.batch", "batch", "1", "300", "00:00.250", "00:00.001", "512K", "1.50M") +
		row("7.extern", "extern", "2", "300", "00:00:00", "00:00:00", "", "") +
		row("7.interactive", "interactive", "1", "300", "00:00:00", "00:00:00", "", "") +
		row("7.0", "srun", "4", "290", "02:00:01", "00:01.500", "1G", "10K") +
		row("8", "runs", "", "Unknown", "", "", "", "") + row("8.0", "x", "1", "Unknown", "", "", "", "") +
		row("9+0", "het", "", "300", "", "", "", "") + row("9+1", "het", "", "300", "", "", "", "") + row("9+1.0", "x", "1", "300", "", "", "", ""))
	if err != nil || len(all) != 2 || all[0].ID != 7 || all[1].ID != 9 || len(all[0].Steps) != 3 || len(all[1].Steps) != 1 || all[0].Submitted != time.Unix(100, 0) {
		t.Fatalf("%+v, %v", all, err)
	}
	batch, extern, step := all[0].Steps[0], all[0].Steps[1], all[0].Steps[2]
	if batch.Step.Step != engine.BatchStep || batch.Sum.CPUTime() != 251*time.Millisecond || batch.Sum.Memory != 512<<10 || batch.Sum.Read != 3<<19 {
		t.Errorf("%+v", batch)
	}
	if extern.Step.Step != engine.ExternStep || extern.Sum.Known != 0 || extern.MinCPU != nil || extern.MaxMemory != nil {
		t.Errorf("%+v", extern)
	}
	if step.Step.Step != 0 || step.Tasks != 4 || step.Sum.User != 2*time.Hour+time.Second || step.Sum.System != 1500*time.Millisecond || step.Sum.Memory != 4<<30 || step.Sum.Read != 40<<10 ||
		*step.MaxMemory != (rusage.Extreme{Value: 1 << 30, Node: "n1"}) || *step.MinCPU != (rusage.Extreme{Value: int64(time.Minute), Node: "n2", Task: 1}) || step.MaxRead.Task != 2 || step.MaxWritten != nil ||
		len(step.Nodes) != 2 || step.Exit.Status != 3 || step.Name != "srun" {
		t.Errorf("%+v", step)
	}
	for text, want := range map[string]time.Duration{"1-02:03:04": 26*time.Hour + 3*time.Minute + 4*time.Second, "59:59.999": time.Hour - time.Millisecond, "00:00:00": 0} {
		if got, ok := parseCPUTime(text); !ok || got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{"", "INVALID", "7", "a-1:2:3", "1:2:3:4"} {
		if got, ok := parseCPUTime(text); ok {
			t.Errorf("%q: %s", text, got)
		}
	}
	if n, ok := parseSize(""); ok {
		t.Errorf("no size is %d", n)
	}
}

// TestUsedNowIsRead: rows as sstat prints them. A step is numbered as in accounting, its use is that of all its tasks.
//
// Seen to fail with the use of one task.
func TestUsedNowIsRead(t *testing.T) {
	got, err := parseUsedNow("7.extern|1|00:00:00|0\n7.batch|1|00:01:02.500|4096K\n7.0|4|1-00:00:10|1.50G\n9.interactive|1|00:00:01|1M\n9.12+0|1||\n9.13|1|213503982334-14:25:51|16.00E\n")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, j := range got {
		for i := range j.Steps {
			s := &j.Steps[i]
			rows = append(rows, fmt.Sprintf("%d.%d %d %s %d", j.ID, s.Step.Step, s.Running, s.Sum.CPUTime(), s.Sum.Now))
		}
	}
	want := []string{fmt.Sprintf("7.%d 1 0s 0", engine.ExternStep), fmt.Sprintf("7.%d 1 1m2.5s 4194304", engine.BatchStep), "7.0 4 96h0m40s 6442450944", "9.12 1 0s 0", "9.13 1 0s 0"}
	if !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	for i := range got[1].Steps {
		if use := got[1].Steps[i].Sum; use.Known != 0 {
			t.Errorf("of a step that was not measured: %+v", use)
		}
	}
	if _, err := parseUsedNow("slurmctld is busy\n"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
