package slurm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
)

var update = flag.Bool("update", false, "write the rules and reports of testdata anew")

// files reads the files of a case by their names.
func files(t *testing.T, dir string, names ...string) (out []File) {
	t.Helper()
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, File{n, string(b)})
	}
	return out
}

func include(dir string) func(string, string) (File, error) {
	return func(_, name string) (File, error) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		return File{name, string(b)}, err
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", name, d)
	}
}

// TestImport: the rules and the report of a cluster, as they were looked through.
func TestImport(t *testing.T) {
	dir := filepath.Join("testdata", "hpc")
	p, report, err := Import(files(t, dir, "slurm.conf", "dump.cfg", "qos.txt"), Options{Include: include(dir)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	report.Write(&b, false)
	golden(t, filepath.Join(dir, "report.txt"), b.String())
	text := policy.Write(p)
	golden(t, filepath.Join(dir, "queues.yaml"), string(text))
	if _, err := policy.Parse("queues.yaml", text); err != nil {
		t.Errorf("what was made cannot be applied: %v", err)
	}
}

// TestNothingIsDropped: every setting of the files is in the report.
func TestNothingIsDropped(t *testing.T) {
	dir := filepath.Join("testdata", "hpc")
	_, report, err := Import(files(t, dir, "slurm.conf", "dump.cfg", "qos.txt"), Options{Include: include(dir)})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]map[int]int{}
	for _, f := range report.Findings {
		if told[f.File] == nil {
			told[f.File] = map[int]int{}
		}
		told[f.File][f.Line]++
		if f.Verdict != policy.Kept && f.How == "" {
			t.Errorf("%s:%d: %s is %s, and nothing says why", f.File, f.Line, f.What, f.Verdict)
		}
	}
	n := 0
	for _, f := range files(t, dir, "slurm.conf", "nodes.conf") {
		for _, l := range confLines(f.Text) {
			want := len(l.splitSettings(f.Name))
			if strings.HasPrefix(l.text, "Include") {
				want = 1 // the line is one setting
			}
			n += want
			if got := told[f.Name][l.line]; got < want {
				t.Errorf("%s:%d: %d findings about %d settings: %s", f.Name, l.line, got, want, l.text)
			}
		}
	}
	for _, f := range files(t, dir, "dump.cfg") {
		for i, text := range strings.Split(f.Text, "\n") {
			if text == "" || strings.HasPrefix(text, "#") {
				continue
			}
			d, _ := dumpLineOf(f.Name, i+1, text)
			n += 1 + len(d.options)
			if got := told[f.Name][i+1]; got != 1+len(d.options) {
				t.Errorf("%s:%d: %d findings about %d options: %s", f.Name, i+1, got, len(d.options), text)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d settings", n)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	_, _, err := Import([]File{{"x", "hello\n"}}, Options{})
	if fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Error(err)
	}
	round := func(_, name string) (File, error) { return File{name, "Include b\nInclude a\n"}, nil }
	if _, _, err := Import([]File{{"a", "Include b\n"}}, Options{Include: round}); err == nil || !strings.Contains(err.Error(), "included by itself") {
		t.Error(err)
	}
	p, report, err := Import([]File{{"x", "Include /none.conf\n"}}, Options{})
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Verdict != policy.Refused || len(p.Partitions) > 0 {
		t.Error(report, err)
	}
}

// Any text is read without harm, and what is made can be written and read.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"slurm.conf", "dump.cfg", "qos.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", "hpc", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("Configuration data as of 2026\nPriorityWeightAge = 3\nKillWait = 30 sec\nOther Configuration:\nx = y\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		p, report, err := Import([]File{{"x", text}}, Options{})
		if err != nil {
			return
		}
		var b strings.Builder
		report.Write(&b, false)
		out := policy.Write(p)
		if _, err := policy.Parse("x", out); err != nil && report.Count(policy.Refused) == 0 {
			t.Fatalf("%q is made\n%s\nwhich cannot be applied, and the report says nothing: %v", text, out, err)
		}
	})
}

// TestAThresholdHoldsWithItsFlag: UsageThreshold is taken over where Slurm looks at it,
// whichever of it and the flag comes first; flags that are not built are named with what
// does their work.
func TestAThresholdHoldsWithItsFlag(t *testing.T) {
	text := "Name|UsageThres|Flags\nx|0.250000|EnforceUsageThreshold,Relative,UsageFactorSafe\ny|0.5|\n"
	p, report, err := Import([]File{{"qos.txt", text}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x, y := p.QOS[0], p.QOS[1]; x.UsageThreshold == nil || *x.UsageThreshold != 0.25 || !slices.Equal(x.Flags, []string{"relative"}) || y.UsageThreshold != nil {
		t.Errorf("imported %+v and %+v", x, y)
	}
	var b strings.Builder
	report.Write(&b, true)
	for _, want := range []string{"without the flag EnforceUsageThreshold Slurm does not look at it", "without UsageFactorSafe, which is not built: "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
}

// TestWhatTheCoreHasIsKept: settings that once had no place and have one now.
//
// Seen to fail with: SUSPEND taken as REQUEUE, time slices of all partitions, FORCE:1 taken as
// turns.
func TestWhatTheCoreHasIsKept(t *testing.T) {
	text := `SchedulerParameters=max_switch_wait=600
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerTimeSlice=60
AccountingStorageEnforce=associations,limits,qos,safe
PartitionName=DEFAULT OverSubscribe=FORCE:2
PartitionName=shared
PartitionName=many OverSubscribe=FORCE
PartitionName=room OverSubscribe=FORCE:1
PartitionName=alone OverSubscribe=NO
PartitionName=asked OverSubscribe=YES
`
	p, report, err := Import([]File{{"slurm.conf", text}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Topology.SwitchWait != account.Duration(10*time.Minute) || p.Preemption.Mode != account.PreemptSuspend {
		t.Errorf("imported %+v, %+v", p.Topology, p.Preemption)
	}
	var got []string
	for _, x := range p.Partitions {
		got = append(got, fmt.Sprint(x.Name, " ", time.Duration(x.TimeSlice), " ", x.PreemptMode))
	}
	if diff := cmp.Diff([]string{"shared 1m0s ", "many 1m0s ", "room 0s ", "alone 0s off", "asked 0s "}, got); diff != "" {
		t.Errorf("turns (-want +got)\n%s", diff)
	}
	var b strings.Builder
	report.Write(&b, false)
	for _, want := range []string{"two jobs take turns (time_slice), not 4, on GPUs too,", "approximated OverSubscribe=FORCE:2", "kept         OverSubscribe=FORCE:1", "approximated OverSubscribe=NO", "refused      OverSubscribe=YES", "12 kept, 0 ignored, 0 elsewhere, 3 approximated, 1 refused"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
}

// TestBatchHabits: JobRequeue and JobFileAppend are rules here, and the report says what
// JobRequeue=0 does to preemption.
//
// Seen to fail with: JobRequeue=0 taken as 1.
func TestBatchHabits(t *testing.T) {
	for _, k := range []struct {
		text string
		want account.Batch
		says string
	}{
		{"PreemptMode=REQUEUE\n", account.Batch{}, "1 kept"},
		{"JobRequeue=1\nJobFileAppend=0\n", account.Batch{}, "2 kept"},
		{"PreemptMode=REQUEUE\nJobRequeue=0\n", account.Batch{Requeue: account.RequeueOff}, "preemption by requeue ends the others for good"},
		{"JobFileAppend=1\n", account.Batch{OpenMode: account.OpenAppend}, "kept         JobFileAppend=1"},
		{"RequeueExit=1-9,18\nRequeueExitHold=75\n", account.Batch{RequeueExit: "1-9,18", RequeueExitHold: "75"}, "2 kept"},
		{"PropagateResourceLimits=stack,CORE\n", account.Batch{Propagate: "STACK,CORE"}, "1 kept"},
		{"PropagateResourceLimitsExcept=MEMLOCK,NOFILE\n", account.Batch{Propagate: "CPU,FSIZE,DATA,STACK,CORE,RSS,NPROC,AS"}, "1 kept"},
		{"PropagateResourceLimitsExcept=ALL\n", account.Batch{Propagate: "NONE"}, "1 kept"},
		{"PropagateResourceLimits=x\n", account.Batch{}, `"x" is not ALL, NONE or a list of limits`},
		{"RequeueExit=0-3\n", account.Batch{}, `"0-3" is not a list of exit codes`},
		{"JobRequeue=maybe\n", account.Batch{}, `"maybe" is not 0 or 1`},
	} {
		p, report, err := Import([]File{{"slurm.conf", k.text}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		report.Write(&b, false)
		if p.Batch != k.want || !strings.Contains(b.String(), k.says) {
			t.Errorf("%q: %+v\n%s", k.text, p.Batch, b.String())
		}
	}
}

// TestSharingIsReportedOnce: OverSubscribe and SchedulerTimeSlice, whose meanings depend on other
// lines.
func TestSharingIsReportedOnce(t *testing.T) {
	const suspend = "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"
	for name, c := range map[string]struct {
		text string
		want []string // findings about them
	}{
		"of DEFAULT, for two partitions": {
			suspend + "PartitionName=DEFAULT OverSubscribe=FORCE:2\nPartitionName=a\nPartitionName=b\n",
			[]string{"approximated OverSubscribe=FORCE:2"},
		},
		"of DEFAULT, for nobody": {
			suspend + "PartitionName=DEFAULT OverSubscribe=FORCE\nPartitionName=a OverSubscribe=FORCE:1\n",
			[]string{"kept OverSubscribe=FORCE", "kept OverSubscribe=FORCE:1"},
		},
		"turns that nobody takes": {
			suspend + "SchedulerTimeSlice=60\nPartitionName=a OverSubscribe=FORCE:1\n",
			[]string{"kept OverSubscribe=FORCE:1", "approximated SchedulerTimeSlice=60"},
		},
		"turns said twice": {
			suspend + "SchedulerTimeSlice=60\nSchedulerTimeSlice=20\nPartitionName=a OverSubscribe=FORCE:2\n",
			[]string{"approximated OverSubscribe=FORCE:2", "approximated SchedulerTimeSlice=60", "kept SchedulerTimeSlice=20"},
		},
		"forced without turns": {
			"PartitionName=a OverSubscribe=FORCE:4\nPartitionName=b OverSubscribe=FORCE:1\n",
			[]string{"refused OverSubscribe=FORCE:4", "kept OverSubscribe=FORCE:1"},
		},
		"nothing is said where jobs would be suspended": {
			suspend + "PartitionName=a\nPartitionName=b PreemptMode=REQUEUE\n",
			[]string{"approximated partition a"},
		},
		"nobody is preempted": {
			"PreemptMode=SUSPEND,GANG\nPartitionName=a OverSubscribe=NO\n",
			[]string{"kept OverSubscribe=NO"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, report, err := Import([]File{{"slurm.conf", c.text}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Findings {
				if strings.Contains(f.What, "OverSubscribe") || strings.Contains(f.What, "Slice") || f.File == "(together)" {
					got = append(got, f.Verdict.String()+" "+f.What)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
