package hardcase

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// The server is killed between "the engine took the launch" and "it is written that the
// job started", or when the job runs already. The next one must not start it again, here
// or on another node. (Fails where the engine does not know its attempts again.)
func TestHardCase_1_launchTaken(t *testing.T) {
	for name, fault := range map[string]string{"taken": "dies after a launch", "runs": "dies before a start is written"} {
		t.Run(name, func(t *testing.T) {
			p := plane.New(t, nodes(3, 0)).StartProcess(fault)
			diary, gate := p.Diary("diary"), p.Gate("gate")
			const job = "1"
			_, _ = p.TrySubmit(diary.Note(identity)+"; "+gate.Wait, alone) // the answer may be lost with the server
			p.Dies()

			p.StartProcess("")
			first := diary.Await(1)[0]
			j := p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
			if want := fmt.Sprintf("%s attempt 1 on %s", job, j.Claims[0].Node); j.Attempt != 1 || first != want {
				t.Errorf("attempt %d on %+v, and the job says %q", j.Attempt, j.Claims, first)
			}
			p.Settle() // two nodes are free for it
			gate.Open()
			p.Ends(job, "COMPLETED")
			diary.Expect(first)
		})
	}
}

// A node is drained and resumed after a job on it finished, and the server begins anew:
// nothing runs again.
func TestHardCase_8_toggledNode(t *testing.T) {
	p := plane.New(t, nodes(1, 0)).StartProcess("")
	diary := p.Diary("diary")
	job := p.Submit(diary.Note(identity), "--requeue")
	before := p.Ends(job, "COMPLETED")
	node := before.Claims[0].Node

	for _, verb := range []string{"drain", "resume", "drain", "resume"} {
		if _, err := p.ChangeNodes(t.Context(), &api.NodeChange{Nodes: []string{node}, Verb: verb, Reason: "a fan"}); err != nil {
			t.Fatal(err)
		}
		if verb == "resume" {
			p.Settle()
		}
	}
	p.Kill()
	p.StartProcess("")
	p.Settle()

	if after := p.Get(job); after.State != "COMPLETED" || after.Attempt != 1 || !after.Ended.Equal(before.Ended) {
		t.Errorf("it was %+v and is %+v", before, after)
	}
	diary.Expect(job + " attempt 1 on " + node)
}

// A server begins on a store full of finished work: nothing is admitted again, and what
// the finished jobs held is free. (The quota here is the nodes' capacity and an array's
// limit; quotas of accounts come with the policies.)
func TestHardCase_10_finishedWork(t *testing.T) {
	p := plane.New(t, nodes(2, 2)).StartProcess("")
	diary := p.Diary("diary")
	array := p.Submit(diary.Note("task $SLURM_ARRAY_TASK_ID"), "--array=1-6%2", "--gpus=1", "--requeue")
	failed := p.Submit(diary.Note("failed")+"; exit 3", "--gpus=2", "--requeue")
	p.Ends(failed, "FAILED")
	for i := 1; i <= 6; i++ {
		p.Ends(fmt.Sprintf("%s_%d", array, i), "COMPLETED")
	}
	lines := len(diary.Lines())
	p.Kill()

	p.StartProcess("")
	last, err := p.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Submit("exit 0", "--nodes=2", "--gpus-per-node=2", alone) // everything there is
	p.Ends(whole, "COMPLETED")
	for _, e := range p.Events(last.Change) {
		if e.Name != whole {
			t.Errorf("after the restart: %+v", e)
		}
	}
	if got := len(diary.Lines()); got != 7 || lines != 7 {
		t.Errorf("%d lines before and %d after the restart, of 7 jobs", lines, got)
	}
}

// A pipeline of three steps, the first done, the second waiting, when the server is
// killed: it goes on with the second. (Pipelines as one object come with their own
// subject; here they are jobs that depend on each other.)
func TestHardCase_5_pipeline(t *testing.T) {
	p := plane.New(t, nodes(1, 0)).StartProcess("")
	diary, gate := p.Diary("diary"), p.Gate("gate")
	step0 := p.Submit(diary.Note("step 0 " + identity))
	blocker := p.Submit(gate.Wait, alone, "--dependency=afterok:"+step0)
	step1 := p.Submit(diary.Note("step 1 "+identity), "--dependency=afterok:"+step0, "--nice=100")
	step2 := p.Submit(diary.Note("step 2 "+identity), "--dependency=afterok:"+step1)
	p.Ends(step0, "COMPLETED")
	p.Until(blocker, "keeps the node", plane.Is("RUNNING"))
	p.Kill()

	p.StartProcess("")
	if s1, s2 := p.Get(step1), p.Get(step2); s1.State != "PENDING" || s2.State != "PENDING" || p.Get(step0).State != "COMPLETED" {
		t.Errorf("after the restart step 1 is %s, step 2 %s", s1.State, s2.State)
	}
	gate.Open()
	p.Ends(step2, "COMPLETED")
	node := p.Get(step2).Claims[0].Node
	diary.Expect("step 0 "+step0+" attempt 1 on "+node, "step 1 "+step1+" attempt 1 on "+node, "step 2 "+step2+" attempt 1 on "+node)
}

// Server and supervisors are killed under load, and some jobs end meanwhile. What lives
// is known again by its processes, what ended has its exit code, and what died with its
// supervisor is not shown as running.
func TestHardCase_2_adoption(t *testing.T) {
	p := plane.New(t, nodes(4, 0)).StartProcess("")
	diary, goes, ends, shot := p.Diary("diary"), p.Gate("goes"), p.Gate("ends"), p.Diary("shot")
	script := func(gate *plane.Gate) string {
		return diary.Note("$$") + "; " + shot.Note("$PPID") + "; " + gate.Wait + "; exit 4"
	}
	var lives, ended, dies []string
	for range 4 {
		ended = append(ended, p.Submit(script(ends), "--no-requeue"))
		lives = append(lives, p.Submit(script(goes), "--no-requeue"))
	}
	diary.Await(8)
	for range 4 {
		dies = append(dies, p.Submit(script(goes), "--no-requeue"))
	}
	diary.Await(12)
	for _, j := range append(append(lives, ended...), dies...) {
		p.Until(j, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	}
	p.Kill()
	ends.Open()
	for _, line := range shot.Await(12)[8:] { // supervisors of the last four
		if err := unix.Kill(pid(t, line), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}

	p.StartProcess("")
	for _, j := range ended {
		if j := p.Ends(j, "FAILED"); j.Exit.Status != 4 || j.Attempt != 1 {
			t.Errorf("job %s ended while nobody looked: %+v", j.Name, j.Exit)
		}
	}
	for _, j := range dies {
		p.Ends(j, "NODE_FAIL")
	}
	for _, j := range lives {
		if j := p.Get(j); j.State != "RUNNING" || j.Attempt != 1 || len(j.Flags) > 0 {
			t.Errorf("job %s lives and is %s %v", j.Name, j.State, j.Flags)
		}
	}
	goes.Open()
	for _, j := range lives {
		p.Ends(j, "FAILED")
	}
	if after := diary.Lines(); len(after) != 12 {
		t.Errorf("%d jobs ran %d times", 12, len(after))
	}
}

// twice is an engine whose word that attempt 1 of the first job has ended comes a second
// time after attempt 2 has begun.
type twice struct {
	engine.Engine
	told chan struct{}
}

func (e twice) Watch(ctx context.Context, after string, f func(engine.Event) error) error {
	var old *engine.Event
	return e.Engine.Watch(ctx, after, func(ev engine.Event) error {
		err := f(ev)
		switch r := ev.Report; {
		case r.Job == 1 && r.Ref.Attempt == 1 && r.Gone:
			old = &ev
		case r.Job == 1 && r.Ref.Attempt == 2 && r.Phase == engine.Running && old != nil && err == nil:
			late := *old
			old = nil
			late.Report.Version += 1000
			late.Cursor = ev.Cursor
			err = f(late)
			close(e.told)
		}
		return err
	})
}

// The word that attempt 1 has ended comes again after attempt 2 has started: it frees
// nothing of attempt 2 and does not end the job.
func TestHardCase_3_lateReport(t *testing.T) {
	told := make(chan struct{})
	p := plane.New(t, nodes(1, 1)).Start(func(o *daemon.Options) {
		o.Engine = func(e engine.Engine) engine.Engine { return twice{e, told} }
	})
	diary, gate := p.Diary("diary"), p.Gate("gate")
	job := p.Submit(diary.Note(identity)+"; "+gate.Wait, "--gpus=1", "--requeue")
	diary.Await(1)
	p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	p.Change(api.VerbRequeue, job, nil)
	diary.Await(2)
	<-told
	other := p.Submit("exit 0", "--gpus=1")
	p.Settle()

	if j := p.Get(job); j.State != "RUNNING" || j.Attempt != 2 || len(j.Claims) != 1 {
		t.Errorf("after the late word it is %s in attempt %d with %+v", j.State, j.Attempt, j.Claims)
	}
	if j, n := p.Get(other), p.Node(p.Names()[0]); j.State != "PENDING" || len(n.Devices[0].Jobs) != 1 {
		t.Errorf("the GPU of attempt 2 was freed: %s, %+v", j.State, n.Devices)
	}
	gate.Open()
	p.Ends(job, "COMPLETED")
	p.Ends(other, "COMPLETED")
	if n := len(diary.Lines()); n != 2 {
		t.Errorf("it ran %d times", n)
	}
}
