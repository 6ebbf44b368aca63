package podagent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// stopped reports whether the process whose number is in a file of the working directory is
// suspended.
func (c *crewOf) stopped(t *testing.T, file string) bool {
	t.Helper()
	pid, err := os.ReadFile(c.work(file))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[0] == 'T'
}

// TestHold: the tasks of all members are suspended by one call, and go on with the
// next one. One that comes late is not obeyed, and a suspended attempt can be ended.
//
// Seen to fail with: the turn not looked at.
func TestHold(t *testing.T) {
	c := planned(t, 2, `srun sh -c 'echo $$ > task.$SLURM_PROCID; exec sleep 600'`)
	c.plan.Grace = 1e8
	c.start()
	tasks := []string{"task.0", "task.1"}
	for _, f := range tasks {
		eventually(t, f+" runs", func() bool { pid, _ := os.ReadFile(c.work(f)); return len(pid) > 0 })
	}
	tell := func(word, want string) {
		t.Helper()
		out, err := c.members[0].command("tell", word).CombinedOutput()
		if err != nil != (want != "") || !strings.Contains(string(out), want) {
			t.Fatalf("%s: %v: %s, want %q", word, err, out, want)
		}
	}
	tell(`{"hold":{"on":true,"turn":2}}`, "")
	for _, f := range tasks {
		eventually(t, f+" is stopped", func() bool { return c.stopped(t, f) }) // a signal needs a moment
	}
	tell(`{"hold":{"on":true,"turn":3}}`, "") // again is no harm
	tell(`{"hold":{"on":false,"turn":1}}`, "told otherwise")
	for _, f := range tasks {
		if !c.stopped(t, f) {
			t.Errorf("%s goes on by a call that came late", f)
		}
	}
	tell(`{"hold":{"on":false,"turn":4}}`, "")
	for _, f := range tasks {
		eventually(t, f+" goes on", func() bool { return !c.stopped(t, f) })
	}
	tell(`{"hold":{"on":true,"turn":5}}`, "")
	tell(`{"grace":100000000}`, "")
	for _, p := range c.members {
		if o, code := p.end(); code == 0 || p.index == 0 && (o == nil || o.Cause != engine.Stopped) {
			t.Errorf("member %d: exit code %d, %+v", p.index, code, o)
		}
	}
}
