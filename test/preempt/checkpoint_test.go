// Package preempt tells stories of jobs that make room for others, with real processes
// under the server as it is shipped.
package preempt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

func TestMain(m *testing.M) { plane.Main(m, nil) }

// site is a server with one node of so many GPUs, where jobs of QOS high take the place
// of those of low; rules are lines of preemption.
func site(t *testing.T, gpus int, rules string) *plane.Plane {
	t.Helper()
	s := plane.New(t, func(c *config.Config) { c.Room.Nodes, c.Room.GPUsPerNode = 1, gpus })
	s.Start()
	apply(s, "qos: [{name: high, priority: 10, preempts: [low]}, {name: low}]\npreemption: {by: [qos], "+rules+"}\n")
	return s
}

func apply(s *plane.Plane, text string) {
	s.T.Helper()
	if _, err := s.SetPolicy(s.T.Context(), &api.SetPolicy{Text: text}); err != nil {
		s.T.Fatal(err)
	}
}

// saves is a script that runs on until it gets USR1, then saves and reports that by the
// file, and runs on; started again it says what it finds.
const saves = `
if [ -n "$COX_RESTORE_FROM" ]; then
	echo "attempt $((SLURM_RESTART_COUNT+1)) goes on from $(cat "$COX_RESTORE_FROM")" >> DIARY
	exit 0
fi
report() { echo step 7 > "$COX_CHECKPOINT_DIR/step-7"; echo step-7 > "$COX_CHECKPOINT_DIR/done.new"; mv "$COX_CHECKPOINT_DIR/done.new" "$COX_CHECKPOINT_DIR/done"; }
trap report USR1
echo runs >> DIARY
while :; do sleep 0.1; done`

// TestCheckpointContract: a job gets its signal, saves and reports by the file while it
// runs on; it is ended then, long before its grace, waits again, and goes on from what it
// saved once the other one is done. So it is with a restart of the server in between.
func TestCheckpointContract(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "one server", true: "restart"}[restart], func(t *testing.T) {
			p := site(t, 1, "mode: checkpoint, grace: 1h")
			diary, gate := p.Diary("diary"), p.Gate("gate")
			low := p.Submit(strings.ReplaceAll(saves, "DIARY", diary.Path), "--qos=low", "--gpus=1", "--requeue", "--signal=B:USR1@3600")
			diary.Await(1)
			high := p.Submit(gate.Wait, "--qos=high", "--gpus=1")
			p.Until(high, "runs", plane.Is("RUNNING"))
			j := p.Until(low, "waits again", plane.Is("PENDING"))
			if j.Saved.IsZero() || j.SavedAs != "step-7" {
				t.Errorf("it has saved %q at %s", j.SavedAs, j.Saved)
			}
			if restart {
				p.Stop()
				p.Start()
			}
			gate.Open()
			p.Ends(high, "COMPLETED")
			j = p.Ends(low, "COMPLETED")
			diary.Expect("runs", "attempt 2 goes on from step 7")
			if j.Attempt != 2 || j.SavedAs != "step-7" {
				t.Errorf("attempt %d, saved as %q", j.Attempt, j.SavedAs)
			}
		})
	}
}

// TestGraceEnds: a job that does not save is ended when its grace is over, and begins
// anew: it is told of nothing to go on from.
func TestGraceEnds(t *testing.T) {
	p := site(t, 1, "mode: checkpoint, grace: 1s, signal: USR2")
	diary := p.Diary("diary")
	low := p.Submit("trap '"+diary.Note("told")+"' USR2; "+diary.Note("runs with ${COX_RESTORE_FROM:-nothing}")+"; [ -n \"$SLURM_RESTART_COUNT\" ] || while :; do sleep 0.1; done",
		"--qos=low", "--gpus=1", "--requeue")
	diary.Await(1)
	high := p.Submit("true", "--qos=high", "--gpus=1")
	p.Ends(high, "COMPLETED")
	p.Ends(low, "COMPLETED")
	lines := diary.Lines()
	if len(lines) != 3 || lines[0] != "runs with nothing" || lines[1] != "told" || lines[2] != "runs with nothing" {
		t.Errorf("%q", lines)
	}
}

// TestReportBeforeTheEnd: a job that saves and exits at once is noticed: it waits again,
// although it ended well. What it reports by the command, with a name of its own choice,
// is what it gets.
func TestReportBeforeTheEnd(t *testing.T) {
	p := site(t, 1, "mode: requeue, grace: 1h")
	diary := p.Diary("diary")
	low := p.Submit(`[ -n "$COX_RESTORE_FROM" ] && { echo "from $COX_RESTORE_FROM" >> `+diary.Path+`; exit 0; }
trap 'echo > "$COX_CHECKPOINT_DIR/done"; exit 0' TERM
`+diary.Note("in $COX_CHECKPOINT_DIR")+`
while :; do sleep 0.1; done`, "--qos=low", "--gpus=1", "--requeue")
	dir := strings.TrimPrefix(diary.Await(1)[0], "in ")
	p.Change(api.VerbSaved, low, func(ch *api.Change) { ch.Saved = "/elsewhere/step-3" })
	if j := p.Get(low); j.SavedAs != "/elsewhere/step-3" {
		t.Errorf("saved as %q", j.SavedAs)
	}
	high := p.Submit("true", "--qos=high", "--gpus=1")
	p.Ends(high, "COMPLETED")
	p.Ends(low, "COMPLETED")
	diary.Expect("in "+dir, "from "+dir)
	if filepath.Base(dir) != low {
		t.Errorf("the directory of job %s is %s", low, dir)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("what is saved does not stay, or is everybody's: %v %v", st, err)
	}
	never := p.Submit("true", "--qos=low")
	p.Ends(never, "COMPLETED")
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), never)); !os.IsNotExist(err) {
		t.Errorf("an empty directory stays: %v", err)
	}
	if _, err := p.TrySubmit("true"); err != nil {
		t.Fatal(err)
	}
	if done, err := p.Client.Change(t.Context(), &api.Change{Verb: api.VerbSaved, Select: api.Select{IDs: []string{low}}, Saved: "../x"}); err == nil {
		t.Errorf("a name that leads out is taken: %+v", done)
	}
}
