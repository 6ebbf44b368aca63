package hardcase

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// A job with a process that ignores SIGTERM is cancelled with fifteen minutes of grace;
// its script ends at once. Its GPU is not given away until that process is proved gone:
// the next job finds the lock of the GPU free. (Fails where a node counts as empty once
// its script has ended.)
func TestHardCase_13_ignoresSIGTERM(t *testing.T) {
	p := plane.New(t, nodes(1, 1)).Start()
	diary := p.Diary("diary")
	gpu := p.Diary("gpu").Path
	p.Write("worker.sh", "trap '"+diary.Note("deaf")+"' TERM\nexec 9<"+gpu+"\nflock -n 9 || exit 9\n"+diary.Note("holds")+"\nwhile :; do sleep 0.05; done\n")
	stubborn := p.Submit("sh worker.sh & wait", "--gpus=1")
	diary.Await(1)
	next := p.Submit("exec 9<"+gpu+"\nflock -n 9 || exit 9", "--gpus=1")

	grace := 900.0
	p.Change(api.VerbCancel, stubborn, func(c *api.Change) { c.Grace = &grace })
	diary.Await(2) // it has heard the signal, and goes on
	p.Settle()
	if j := p.Get(stubborn); j.State != "RUNNING" || !slices.Contains(j.Flags, "STOPPING") {
		t.Errorf("the job that goes on is %s %v", j.State, j.Flags)
	}
	if j := p.Get(next); j.State != "PENDING" {
		t.Errorf("the GPU is given away: %s", j.State)
	}
	grace = 0
	p.Change(api.VerbCancel, stubborn, func(c *api.Change) { c.Grace = &grace })
	p.Ends(stubborn, "CANCELLED")
	p.Ends(next, "COMPLETED")
}

// A job has its node and never gets ready there: its prolog does not end. Cancelling it
// removes it all the same, the prolog with it, and the node is free.
func TestHardCase_14_neverReady(t *testing.T) {
	var pids *plane.Diary
	p := plane.New(t, nodes(1, 0))
	pids = p.Diary("pids")
	p.Config.Hooks = config.Hooks{Prolog: p.Program("prolog", `case $SLURM_JOB_NAME in stuck) echo $$ >> `+pids.Path+`; exec sleep 6000;; esac`), Timeout: p.Config.Hooks.Timeout}
	p.Start()
	diary := p.Diary("diary")
	job := p.Submit(diary.Note("it ran"), "--job-name=stuck", alone)
	prolog := pid(t, pids.Await(1)[0])
	if j := p.Get(job); j.State != "RUNNING" || !slices.Contains(j.Flags, "CONFIGURING") || !j.Started.IsZero() {
		t.Errorf("it is %s %v", j.State, j.Flags)
	}
	next := p.Submit("exit 0", alone)

	p.Change(api.VerbCancel, job, nil)
	p.Ends(job, "CANCELLED")
	p.Ends(next, "COMPLETED")
	if _, err := os.Stat(filepath.Join("/proc", pids.Lines()[0])); err == nil {
		t.Errorf("its prolog, process %d, lives", prolog)
	}
	diary.Expect()
}

// A node of a gang fails the launch. Nothing of the gang runs, on the other nodes
// neither; with --requeue it comes whole when the node is well again, without it fails.
func TestHardCase_27_partOfALaunch(t *testing.T) {
	p := plane.New(t, nodes(3, 0))
	broken := filepath.Join(p.Dir, "broken")
	p.Config.Hooks.Prolog = p.Program("prolog", `[ "$SLURMD_NODENAME" != "$(cat `+broken+`)" ] || { echo no GPU here; exit 1; }`)
	p.Start()
	node := p.Names()[1]
	p.Write("broken", node)
	diary := p.Diary("diary")
	script := "srun sh -c '" + diary.Note("$SLURM_JOB_ID rank $SLURM_PROCID") + "'"
	once := p.Submit(script, "--nodes=3", "--no-requeue")
	j := p.Ends(once, "FAILED")
	if !slices.Contains(j.Flags, "LAUNCH_FAILED") || !strings.Contains(j.Message, node) || !strings.Contains(j.Message, "no GPU here") {
		t.Errorf("it says %v %q", j.Flags, j.Message)
	}
	diary.Expect()

	again := p.Submit(script, "--nodes=3", "--requeue")
	p.Until(again, "waits for its next try", func(j *api.Job) bool { return j.State == "PENDING" && j.Attempt >= 1 })
	diary.Expect()
	p.Write("broken", "none")
	if j := p.Ends(again, "COMPLETED"); j.Attempt < 2 {
		t.Errorf("it ended in attempt %d", j.Attempt)
	}
	lines := diary.Lines()
	slices.Sort(lines)
	if want := []string{again + " rank 0", again + " rank 1", again + " rank 2"}; !slices.Equal(lines, want) {
		t.Errorf("ranks that ran: %q", lines)
	}
}

// A job is requeued, its processes are ended, and the server dies before it is written
// that they are: what it held is free once, not never and not twice, and it runs again
// once. Its array's limit is the quota that it must give back.
func TestHardCase_34_halfEvicted(t *testing.T) {
	p := plane.New(t, nodes(1, 2)).StartProcess("dies before an end is written")
	diary, gate := p.Diary("diary"), p.Gate("gate")
	array := p.Submit(diary.Note("task $SLURM_ARRAY_TASK_ID attempt $((SLURM_RESTART_COUNT+1))")+"; "+gate.Wait, "--array=1-2%1", "--gpus=2", "--requeue")
	diary.Await(1)
	p.Until(array+"_1", "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	p.Change(api.VerbRequeue, array+"_1", nil)
	p.Dies()

	p.StartProcess("")
	lines := diary.Await(2)
	if lines[0] != "task 1 attempt 1" || strings.HasSuffix(lines[1], "attempt 1") == strings.HasPrefix(lines[1], "task 1") {
		t.Errorf("%q", lines)
	}
	n := p.Node(p.Names()[0])
	if held := len(n.Jobs) + len(n.Devices[0].Jobs) + len(n.Devices[1].Jobs); held != 3 || n.CPUsUsed != 1 {
		t.Errorf("one task runs, and the node says %+v", n)
	}
	gate.Open()
	first := p.Ends(array+"_1", "COMPLETED")
	second := p.Ends(array+"_2", "COMPLETED")
	if first.Attempt != 2 || second.Attempt != 1 || len(diary.Lines()) != 3 {
		t.Errorf("attempts %d and %d, %q", first.Attempt, second.Attempt, diary.Lines())
	}
}
