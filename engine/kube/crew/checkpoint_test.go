package crew_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// saving is an attempt whose job has a directory for what it saves.
func saving(t *testing.T, top, script string, saved engine.Saved) *crewOf {
	t.Helper()
	c := planned(t, 1, script)
	c.plan.Checkpoint, c.plan.Saved = filepath.Join(top, "all", "cox-ab-42"), saved
	return c
}

// TestCheckpoints: what a job saves is there for its next attempt, which is told what was
// reported last; the attempt says so at its end, and when it is asked; of a job that saves
// nothing nothing is left.
//
// Seen to fail with: a directory whoever it is of; the file, whatever was reported after it.
func TestCheckpoints(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "all", "cox-ab-42")
	tell := `echo "from ${COX_RESTORE_FROM:-nothing}"
`
	c := saving(t, top, tell+"sleep 0", engine.Saved{}).start()
	if o, code := c.members[0].end(); code != 0 || o.Saved != nil || c.members[0].out.String() != "from nothing\n" {
		t.Errorf("%d %+v %s", code, o, c.members[0].out.String())
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left, and nothing in it", dir)
	}
	if st, err := os.Stat(filepath.Dir(dir)); err != nil || st.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v %v", st, err)
	}

	c = saving(t, top, tell+`echo 7 >"$COX_CHECKPOINT_DIR/step-7"
echo step-7 >"$COX_CHECKPOINT_DIR/done.new"; mv "$COX_CHECKPOINT_DIR/done.new" "$COX_CHECKPOINT_DIR/done"
until [ -e `+filepath.Join(top, "go")+` ]; do sleep 0.1; done; exit 3`, engine.Saved{}).start()
	var s engine.Saved
	eventually(t, "it is known what was saved", func() bool {
		cmd := c.members[0].command("ask", `{"saved":true}`)
		out, err := cmd.Output()
		return err == nil && len(out) > 0 && json.Unmarshal(out, &s) == nil
	})
	if s.As != "step-7" || time.Since(s.At) > patience {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(filepath.Join(top, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, code := c.members[0].end()
	if code != 3 || o.Saved == nil || o.Saved.As != "step-7" || !o.Saved.At.Equal(s.At) {
		t.Errorf("%d %+v", code, o)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st, err)
	}

	for what, x := range map[string]struct {
		saved engine.Saved
		want  string
	}{
		"the file":        {engine.Saved{}, dir + "/step-7"},
		"an older report": {engine.Saved{At: time.Now().Add(-time.Hour), As: "step-1"}, dir + "/step-7"},
		"a later report":  {engine.Saved{At: time.Now().Add(time.Hour), As: "/elsewhere/9"}, "/elsewhere/9"},
		"no name":         {engine.Saved{At: time.Now().Add(time.Hour)}, dir},
	} {
		c := saving(t, top, tell, x.saved).start()
		if o, code := c.members[0].end(); code != 0 || o.Saved != nil || c.members[0].out.String() != "from "+x.want+"\n" {
			t.Errorf("%s: %d %+v %s", what, code, o, c.members[0].out.String())
		}
	}

	// One that another has put there is not used.
	if os.Getuid() == 0 {
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		c := saving(t, top, "touch "+filepath.Join(top, "ran"), engine.Saved{}).start()
		if o, code := c.members[0].end(); code == 0 || o.Cause != engine.LaunchFailed || !strings.Contains(o.Message, dir) {
			t.Errorf("%d %+v", code, o)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/tmp", dir); err != nil {
		t.Fatal(err)
	}
	c = saving(t, top, "touch "+filepath.Join(top, "ran"), engine.Saved{}).start()
	if o, code := c.members[0].end(); code == 0 || !strings.Contains(o.Message, dir) {
		t.Errorf("%d %+v", code, o)
	}
	if _, err := os.Stat(filepath.Join(top, "ran")); err == nil {
		t.Error("a job ran without its directory")
	}
}
