package preempt

import (
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// TestSuspend: a job makes room by being suspended. Its processes stand still while the
// other one runs on its device, they go on when that has ended, before a third one that
// waits gets the device, and the whole is one attempt. So it is with a restart of the
// server in between.
func TestSuspend(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "one server", true: "restart"}[restart], func(t *testing.T) {
			p := site(t, 1, "mode: suspend")
			diary, gate, end := p.Diary("diary"), p.Gate("gate"), p.Gate("end")
			low := p.Submit(diary.Note("low runs")+"; "+end.Wait+"; "+diary.Note("low ends, attempt $((SLURM_RESTART_COUNT+1))"), "--qos=low", "--gpus=1")
			diary.Await(1)
			third := p.Submit(diary.Note("third runs"), "--qos=low", "--gpus=1")
			high := p.Submit(diary.Note("high runs")+"; "+gate.Wait, "--qos=high", "--gpus=1")
			diary.Await(2)
			p.Until(low, "is suspended", plane.Is("SUSPENDED"))
			end.Open() // it would end if it ran
			if restart {
				p.Stop()
				p.Start()
				p.Until(low, "is suspended", plane.Is("SUSPENDED"))
			}
			if done, err := p.Client.Change(t.Context(), &api.Change{Verb: api.VerbResume, Select: api.Select{IDs: []string{low}}}); err != nil || len(done.Errors) != 1 {
				t.Errorf("a job is resumed beside the one that has its place: %+v %v", done, err)
			}
			gate.Open()
			p.Ends(high, "COMPLETED")
			p.Ends(low, "COMPLETED")
			p.Ends(third, "COMPLETED")
			diary.Expect("low runs", "high runs", "low ends, attempt 1", "third runs")
		})
	}
}

// TestSuspendedIsCancelled: a job that is cancelled while others have its place is killed
// at once, and the others do not notice.
func TestSuspendedIsCancelled(t *testing.T) {
	p := site(t, 1, "mode: suspend")
	diary, gate := p.Diary("diary"), p.Gate("gate")
	low := p.Submit("trap '"+diary.Note("low is told")+"' TERM; "+diary.Note("low runs")+"; while :; do sleep 0.1; done", "--qos=low", "--gpus=1")
	diary.Await(1)
	high := p.Submit(diary.Note("high runs")+"; "+gate.Wait, "--qos=high", "--gpus=1")
	diary.Await(2)
	p.Change(api.VerbCancel, low, nil)
	p.Ends(low, "CANCELLED")
	gate.Open()
	p.Ends(high, "COMPLETED")
	diary.Expect("low runs", "high runs")
}

// TestTurns: two jobs of a partition with a time slice have the same device in turns: each
// runs on while the other stands still, and neither waits for the other's end.
func TestTurns(t *testing.T) {
	p := plane.New(t, func(c *config.Config) {
		c.Room.Nodes, c.Room.GPUsPerNode = 1, 1
		c.Partitions = []config.Partition{{Name: "shared"}}
	})
	p.Start()
	apply(p, "partitions: [{name: shared, time_slice: 1s}]\n")
	a, b, end := p.Diary("a"), p.Diary("b"), p.Gate("end")
	ticks := func(d *plane.Diary) string {
		return "n=0; while [ $n -lt 4 ]; do n=$((n+1)); sleep 0.4; " + d.Note("tick") + "; done; " + end.Wait
	}
	first := p.Submit(ticks(a), "--gpus=1", "--partition=shared")
	second := p.Submit(ticks(b), "--gpus=1", "--partition=shared")
	b.Await(1) // beside the first, which has not ended
	p.Until(first, "has turns", func(j *api.Job) bool { return j.State == "SUSPENDED" || j.State == "RUNNING" })
	a.Await(4)
	b.Await(4)
	for _, job := range []string{first, second} {
		p.Until(job, "stands still for the other", plane.Is("SUSPENDED"))
	}
	end.Open()
	for _, job := range []string{first, second} {
		if j := p.Ends(job, "COMPLETED"); j.Attempt != 1 {
			t.Errorf("job %s had %d attempts", job, j.Attempt)
		}
	}
}
