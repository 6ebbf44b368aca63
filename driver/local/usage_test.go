package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// hungry writes a program and returns its name. `python3 NAME MIB SECONDS [stay]` takes so much
// memory, spends so much CPU time and 0.1 s more for each rank, writes 1 MiB to a disk, prints how
// many bytes the kernel says that it wrote to disks, makes the file ready.RANK, and then stays.
func hungry(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "hungry.py")
	text := `import os, sys, time
rank = os.environ.get("SLURM_PROCID", "0")
x = bytearray(int(sys.argv[1]) << 20)
for i in range(0, len(x), 4096): x[i] = 1
with open("written." + rank, "wb") as f:
    f.write(x[:1 << 20]); f.flush(); os.fsync(f.fileno())
end = float(sys.argv[2]) + 0.1 * int(rank)
while time.process_time() < end: pass
print([l.split()[1] for l in open("/proc/self/io") if l.startswith("write_bytes")][0], flush=True)
open("ready." + rank, "w").close()
if len(sys.argv) > 3: time.sleep(600)
`
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// isAbout reports whether the peak of a program that takes so many MiB is plausible.
func isAbout(x *rusage.Extreme, mib int64) bool {
	return x != nil && x.Value >= mib<<20 && x.Value < (mib+25)<<20
}

func TestUsageByStepAndNode(t *testing.T) {
	e := newEngine(t, local.Config{})
	prog := hungry(t)
	l := plan(t, e, 2, "python3 "+prog+" 90 0.3", "srun --job-name=first python3 "+prog+" 60 0.3", "srun -N1 -n1 true")
	r := run(t, e, l)
	succeeded(t, r)
	u := r.Used
	if u == nil || len(u.Nodes) != 2 || u.Nodes[0].Name != l.Claims[0].Node || len(u.Steps) != 3 {
		t.Fatalf("%+v", u)
	}
	var written int64
	for line := range strings.Lines(read(t, r.Files[0])) {
		var n int64
		if _, err := fmt.Sscan(line, &n); err != nil {
			t.Fatalf("output %q", read(t, r.Files[0]))
		}
		written += n
	}
	all := rusage.CPU | rusage.Memory | rusage.IO
	if !u.Total.Has(all) || u.Total.CPUTime() < time.Second || u.Total.CPUTime() > 20*time.Second || u.Total.Written < written || u.Total.Written > written+8<<20 {
		t.Errorf("in all %+v, written %d", u.Total, written)
	}
	batch, first := u.Step(engine.BatchStep), u.Step(0)
	if batch.Tasks != 1 || batch.Sum.CPUTime() < 300*time.Millisecond || !isAbout(batch.MaxMemory, 90) || batch.MaxMemory.Node != l.Claims[0].Node {
		t.Errorf("batch %+v, %+v", batch, batch.MaxMemory)
	}
	if first.Tasks != 2 || first.Sum.CPUTime() < 700*time.Millisecond || !isAbout(first.MaxMemory, 60) || first.Sum.Memory < 120<<20 {
		t.Errorf("step 0 %+v, %+v", first, first.MaxMemory)
	}
	if least := first.MinCPU; least.Task != 0 || least.Node != l.Claims[0].Node || least.Value < int64(300*time.Millisecond) {
		t.Errorf("least CPU time %+v", least)
	}
	if one := u.Step(1); one.Tasks != 1 || !one.Sum.Has(rusage.CPU) || one.Sum.CPUTime() > time.Second || one.Sum.Memory > 30<<20 {
		t.Errorf("step 1 %+v", one)
	}
	if n := u.Nodes[1]; !n.Has(all) || n.Memory < 60<<20 || n.Memory > 85<<20 || n.CPUTime() < 400*time.Millisecond {
		t.Errorf("the second node %+v", n)
	}
	for _, task := range tasks(r, 0) {
		if task.Name != "first" {
			t.Errorf("the step is called %q", task.Name)
		}
	}
}

// TestUsageOfWhatWasLeftBehind: a process that its parent left behind counts for the batch script.
func TestUsageOfWhatWasLeftBehind(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "(setsid python3 "+hungry(t)+" 80 0.5 stay &)", "until test -e ready.0; do sleep 0.02; done")
	r := run(t, e, l)
	if u := r.Used; u == nil || u.Total.CPUTime() < 500*time.Millisecond || u.Total.Memory < 80<<20 || u.Step(engine.BatchStep).Sum.CPUTime() < 500*time.Millisecond || u.Total.Written < 1<<20 {
		t.Errorf("%+v", u)
	}
}

func TestUsageWhileItRuns(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, "srun python3 "+hungry(t)+" 70 0.3 stay")
	launch(t, e, l)
	for _, rank := range []string{"0", "1"} {
		eventually(t, "rank "+rank+" is ready", func() bool { _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ready."+rank)); return err == nil })
	}
	u, err := e.Usage(t.Context(), l.Ref)
	if err != nil || u == nil {
		t.Fatal(u, err)
	}
	step := u.Step(0)
	if step == nil || step.Tasks != 2 || step.Sum.CPUTime() < 600*time.Millisecond || !isAbout(step.MaxMemory, 70) || len(u.Nodes) != 2 || u.Total.Memory < 140<<20 {
		t.Errorf("%+v", u)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, gone)
	if end := r.Used.Step(0); end == nil || end.Sum.CPUTime() < step.Sum.CPUTime()-50*time.Millisecond {
		t.Errorf("at the end %+v", r.Used)
	}
	if _, err := e.Usage(t.Context(), l.Ref); err == nil {
		t.Error("an attempt that has ended is measured")
	}
}
