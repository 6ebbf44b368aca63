package podagent_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
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
// Seen to fail with: the file, whatever was reported after it.
func TestCheckpoints(t *testing.T) {
	top := t.TempDir()
	own := filepath.Join(top, "all", fmt.Sprintf("uid-%d", os.Getuid()))
	dir := filepath.Join(own, "cox-ab-42")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
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
	if st, err := os.Stat(own); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the user's own: %v %v", st, err)
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
}

// TestPlantedCheckpoints: what somebody else could have put in the place of a job's directory, or of
// its user's, is not used, and nothing of the job runs; what stands beside it, where directories
// were before there were users', does no harm. One of the user's from then is gone on with.
//
// Seen to fail with: a directory whoever it is of; one to which everybody may write; one whose group
// may, and which stays so.
func TestPlantedCheckpoints(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const user, other = 54321, 12345
	for what, x := range map[string]struct {
		at    string // below the setting's
		owner int    // of it
		mode  os.FileMode
		link  bool
		say   string // empty: the job runs
		saves string // where; empty: in its user's
	}{
		"another's, of its name":       {at: "uid-54321/cox-ab-42", owner: other, mode: 0o777, say: "is of user 12345, and the job's is 54321"},
		"a link":                       {at: "uid-54321/cox-ab-42", owner: user, link: true, say: "is not a directory"},
		"everybody may write":          {at: "uid-54321/cox-ab-42", owner: user, mode: 0o777, say: "chmod 0700"},
		"a group may write":            {at: "uid-54321/cox-ab-42", owner: user, mode: 0o770},
		"the user's, of another":       {at: "uid-54321", owner: other, mode: 0o777, say: "is of user 12345, and the job's is 54321"},
		"the user's, a link":           {at: "uid-54321", owner: other, link: true, say: "is not a directory"},
		"the user's, for everybody":    {at: "uid-54321", owner: user, mode: 0o777, say: "chmod 0700"},
		"another's, where it was":      {at: "cox-ab-42", owner: other, mode: 0o777},
		"another's link, where it was": {at: "cox-ab-42", owner: other, link: true},
		"its own, where it was":        {at: "cox-ab-42", owner: user, mode: 0o700, saves: "cox-ab-42"},
		"its own, there, of everybody": {at: "cox-ab-42", owner: user, mode: 0o777, say: "chmod 0700"},
	} {
		t.Run(what, func(t *testing.T) {
			top := open(t)
			all, ran := filepath.Join(top, "all"), filepath.Join(top, "ran")
			at := filepath.Join(all, x.at)
			err := errors.Join(os.Mkdir(all, 0o700), os.Chmod(all, 0o777|os.ModeSticky))
			if own := filepath.Dir(at); own != all {
				err = errors.Join(err, os.Mkdir(own, 0o700), os.Chown(own, user, user))
			}
			if x.link {
				err = errors.Join(err, os.Symlink("/tmp", at), os.Lchown(at, x.owner, x.owner))
			} else {
				err = errors.Join(err, os.Mkdir(at, 0o700), os.Chmod(at, x.mode), os.Chown(at, x.owner, x.owner))
			}
			if err != nil {
				t.Fatal(err)
			}
			c := saving(t, top, `touch "$COX_CHECKPOINT_DIR/it"; echo "$COX_CHECKPOINT_DIR" >`+ran, engine.Saved{})
			c.plan.Job.Spec.Owner = job.Owner{User: "anna", UID: user, GID: user}
			c.user = &syscall.Credential{Uid: user, Gid: user}
			c.start()
			o, code := c.members[0].end()
			if x.say != "" && (code == 0 || o.Cause != engine.LaunchFailed || !strings.Contains(o.Message, x.say) || !strings.Contains(o.Message, at)) {
				t.Errorf("%d %+v", code, o)
			}
			want := ""
			if x.say == "" {
				want = filepath.Join(all, cmp.Or(x.saves, "uid-54321/cox-ab-42")) + "\n"
			}
			if st, err := os.Lstat(at); x.say == "" && x.owner == user && (err != nil || st.Mode().Perm() != 0o700) {
				t.Errorf("%s: %v %v", at, st, err)
			}
			if text, _ := os.ReadFile(ran); string(text) != want {
				t.Errorf("%d %+v: it saves in %q, not in %q", code, o, text, want)
			}
		})
	}
}

// open is a directory into which everybody may go, and write.
func open(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil { // nothing but its own place keeps the job from making it
			t.Fatal(err)
		}
	}
	return top
}

// TestWhereCheckpointsAre: the directory in which jobs have theirs is made by an administrator, and
// nobody else could exchange what is in it.
//
// Seen to fail with: a directory that the job makes itself; nothing asked of whose it is, of whose
// the link to it is, or of the sticky bit; that only where everybody may write.
func TestWhereCheckpointsAre(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const user, other = 54321, 12345
	top := open(t)
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
		{"root's, without the sticky bit", 0, 0o777, false, "chmod +t " + all},
		{"root's, of a group, without it", 0, 0o775, false, "its group could exchange"},
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
