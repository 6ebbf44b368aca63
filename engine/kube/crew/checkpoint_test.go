package crew_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
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
	dir := filepath.Join(top, "all", "cox-ab-42")
	if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	tell := `echo "from ${COX_RESTORE_FROM:-nothing}"
`
	c := saving(t, top, tell+"sleep 0", engine.Saved{}).start()
	if o, code := c.members[0].end(); code != 0 || o.Saved != nil || c.members[0].out.String() != "from nothing\n" {
		t.Errorf("%d %+v %s", code, o, c.members[0].out.String())
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left, and nothing in it", dir)
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

// TestWhereCheckpointsAre: the directory in which jobs have theirs is made by an administrator, and
// nobody else could exchange what is in it.
//
// Seen to fail with: a directory that the job makes itself; nothing asked of whose it is, of whose
// the link to it is, or of the sticky bit.
func TestWhereCheckpointsAre(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const user, other = 54321, 12345
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil { // nothing but its own place keeps the job from making it
			t.Fatal(err)
		}
	}
	all, ran := filepath.Join(top, "all"), filepath.Join(top, "ran")
	const sticky = 0o777 | os.ModeSticky
	for _, x := range []struct {
		what  string
		owner int // -1: it is not there
		mode  os.FileMode
		link  bool // of that owner, to one of root's
		say   string
	}{
		{"there is none", -1, 0, false, "install -d -m 1777 " + all},
		{"another user's", other, sticky, false, "is of user 12345"},
		{"another user's link", other, sticky, true, "is of user 12345"},
		{"root's, without the sticky bit", 0, 0o777, false, "chmod 1777 " + all},
		{"root's, and nobody may write to it", 0, 0o755, false, "install -d -m 1777 " + all},
		{"root's", 0, sticky, false, ""},
		{"the user's own", user, 0o700, false, ""},
	} {
		at := all
		err := errors.Join(os.RemoveAll(all), os.RemoveAll(all+"2"), os.RemoveAll(ran))
		if x.link {
			at += "2"
			err = errors.Join(err, os.Symlink(at, all), os.Lchown(all, x.owner, x.owner))
			x.owner = 0
		}
		if x.owner >= 0 {
			err = errors.Join(err, os.Mkdir(at, 0o700), os.Chmod(at, x.mode), os.Chown(at, x.owner, x.owner))
		}
		if err != nil {
			t.Fatal(x.what, err)
		}
		c := saving(t, top, "touch "+ran, engine.Saved{})
		c.plan.Job.Spec.Owner = job.Owner{User: "anna", UID: user, GID: user}
		c.user = &syscall.Credential{Uid: user, Gid: user}
		c.start()
		o, code := c.members[0].end()
		if x.say == "" && code != 0 || x.say != "" && (code == 0 || o.Cause != engine.LaunchFailed || !strings.Contains(o.Message, x.say)) {
			t.Errorf("%s: %d %+v", x.what, code, o)
		}
		if _, err := os.Stat(ran); (err == nil) != (x.say == "") {
			t.Errorf("%s: that the job ran is %v", x.what, err == nil)
		}
	}
}
