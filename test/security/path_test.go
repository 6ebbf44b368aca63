package security

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
)

// fortress is what a user must not change or read: a folder of root's with files, and
// another user's home. look fails the test if anything of it is not as it was.
type fortress struct {
	t     *testing.T
	dir   string // root's, readable by all
	home  string // ben's
	taken map[string]string
}

const wall = "as it was\n"

func newFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{t: t, dir: folder(t), home: home(t, benUID)}
	for name, mode := range map[string]os.FileMode{"open": 0o644, "closed": 0o600, "script": 0o755} {
		text := wall
		if mode&0o004 != 0 {
			text = "for everybody\n"
		}
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	theirs := filepath.Join(f.home, "theirs")
	if err := errors.Join(os.WriteFile(theirs, []byte(wall), 0o600), os.Chown(theirs, benUID, benUID)); err != nil {
		t.Fatal(err)
	}
	f.taken = f.list()
	return f
}

// list is every file with its owner, mode and contents.
func (f *fortress) list() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	for _, dir := range []string{f.dir, f.home} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			var b []byte
			if st.Mode().IsRegular() {
				if b, err = os.ReadFile(name); err != nil {
					return err
				}
			}
			out[name] = fmt.Sprint(st.Mode(), st.Sys().(*syscall.Stat_t).Uid, string(b))
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}

func (f *fortress) look(after string) {
	f.t.Helper()
	now := f.list()
	for name, was := range f.taken {
		if now[name] != was {
			f.t.Errorf("after %s: %s is %q and was %q", after, name, now[name], was)
		}
	}
	for name := range now {
		if _, ok := f.taken[name]; !ok {
			f.t.Errorf("after %s: %s was made", after, name)
			f.taken[name] = now[name]
		}
	}
}

// TestNamesThatLeadElsewhere submits jobs whose names, output files, input files,
// folders and interpreters point out of what their owner may touch.
func TestNamesThatLeadElsewhere(t *testing.T) {
	onlyRoot(t)
	f := newFortress(t)
	m := newMachine(t, nil)
	anna := m.as(annaUID)
	dir := home(t, annaUID)
	link := func(to, name string) string {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.Symlink(to, name), os.Lchown(name, annaUID, annaUID)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	link(f.dir+"/open", "to-open")
	link(f.dir+"/closed", "to-closed")
	link(f.dir, "to-dir")
	link("to-dir/new", "to-new")
	link("loop", "loop")
	link("/proc/self/fd/3", "to-fd")
	link("/proc/self/environ", "to-environ")
	link("/proc/self/cwd/../x", "to-cwd")
	if err := errors.Join(unix.Mkfifo(dir+"/fifo", 0o600), os.Chown(dir+"/fifo", annaUID, annaUID)); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 12)
	long := strings.Repeat("x", 200)
	var names []string
	for _, args := range [][]string{
		{"--output=" + f.dir + "/new"},
		{"--output=" + f.dir + "/open"},
		{"--output=" + f.dir + "/closed"},
		{"--output=" + f.dir + "/%j-%x-%u-%A-%a-%N-%n-%s-%t"},
		{"--output=" + up + f.dir + "/new"},
		{"--output=%x", "--job-name=" + f.dir + "/new"},
		{"--output=%x", "--job-name=" + up + f.dir + "/open"},
		{"--output=x/%x", "--job-name=../" + up + f.dir + "/new"},
		{"--output=%50x%j%u%%", "--job-name=../../" + f.dir},
		{"--output=%x", "--job-name=a\nb/../" + up + f.dir + "/new"},
		{"--output=" + strings.Repeat(long+"/", 10)},
		{"--output=%x%x%x%x", "--job-name=" + long},
		{"--output=to-open"},
		{"--output=to-closed"},
		{"--output=to-dir/new"},
		{"--output=to-new"},
		{"--output=loop"},
		{"--output=to-fd"},
		{"--output=to-cwd"},
		{"--output=/proc/self/fd/3"},
		{"--output=/proc/self/mem"},
		{"--output=/proc/self/oom_score_adj"},
		{"--output=/dev/kmsg"},
		{"--output=" + dir},
		{"--output=out/"},
		{"--output=."},
		{"--output=.."},
		{"--output=out1", "--error=" + f.dir + "/open"},
		{"--output=out2", "--error=to-closed"},
		{"--output=out3", "--input=to-closed"},
		{"--output=out4", "--input=" + f.home + "/theirs"},
		{"--output=out5", "--input=to-environ"},
		{"--output=out6", "--input=to-fd"},
		{"--output=out7", "--chdir=" + f.home},
		{"--output=out8", "--chdir=to-dir"},
		{"--output=../" + filepath.Base(f.home) + "/new"},
		{"--output=out9", "--open-mode=truncate", "--job-name=..", "--comment=" + up},
	} {
		b, err := json.Marshal(&api.Submit{
			Form: api.FormSbatch, Text: "#!/bin/sh\ncat\n", File: "job.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Args: append(args, "--time=5"),
		})
		if err != nil {
			t.Fatal(err)
		}
		resp, text := ask(t, anna, http.MethodPost, "/v1/jobs", string(b))
		var got api.Submitted
		switch {
		case resp.StatusCode == http.StatusCreated && json.Unmarshal([]byte(text), &got) == nil:
			names = append(names, got.ID.String())
		case resp.StatusCode != http.StatusBadRequest:
			t.Errorf("%q: %s %s", args, resp.Status, text)
		}
	}
	for _, n := range names {
		j := m.ended(anna, n)
		f.look("job " + n + " with the output " + j.Spec.Output.Stdout)
		if resp, text := ask(t, anna, http.MethodGet, "/v1/jobs/"+n+"/logs", ""); strings.Contains(text, wall) {
			t.Errorf("job %s: its log shows what is not its owner's: %s", n, resp.Status)
		}
	}
	for _, out := range []string{"out3", "out4", "out5", "out6"} {
		if b, err := os.ReadFile(filepath.Join(dir, out)); err == nil && len(b) > 0 {
			t.Errorf("%s was read into %s: %.60q", "what is not its owner's", out, b)
		}
	}
	if len(names) < 20 {
		t.Errorf("only %d of the jobs were tried", len(names))
	}
	for _, name := range []string{"/", "/tmp", os.TempDir()} {
		if st, err := os.Stat(filepath.Join(name, "new")); err == nil {
			t.Errorf("%s has a file new: %v", name, st.Mode())
		}
	}
}

// TestNULAndOtherBytesInNames sends names that no file can have.
func TestNULAndOtherBytesInNames(t *testing.T) {
	m := newMachine(t, nil)
	uid := os.Getuid()
	if uid == 0 {
		uid = annaUID
	}
	id := m.as(uid)
	dir := home(t, uid)
	for _, s := range []*api.Submit{
		{Args: []string{"--output=a\x00b"}},
		{Args: []string{"--job-name=a\x00b"}},
		{Args: []string{"--export=ALL,A=\x00B=1"}},
		{Environ: []string{"A=1\x00LD_PRELOAD=/tmp/x"}},
		{Dir: dir + "\x00/x"},
		{Text: "#!/bin/sh\necho \x00\n"},
		{ScriptArgs: []string{"a\x00b"}},
		{Args: []string{"--job-name=" + strings.Repeat("x", 100_000)}},
		{Args: []string{"--output=" + strings.Repeat("x/", 500_000)}},
	} {
		s.Form, s.File = api.FormSbatch, "job.sh"
		if s.Text == "" {
			s.Text = "#!/bin/sh\n"
		}
		if s.Dir == "" {
			s.Dir = dir
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		resp, text := ask(t, id, http.MethodPost, "/v1/jobs", string(b))
		var e api.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || resp.StatusCode != http.StatusBadRequest || e.Remedy == "" && len(e.Errors) == 0 || len(text) > 64<<10 {
			t.Errorf("%.60q %.60q: %s %.300s", s.Args, s.Environ, resp.Status, text)
		}
	}
}

// TestALinkThatIsSwappedIn exchanges the output file, and the folder that a job works
// in, again and again for links that lead to what is not the owner's, while jobs start.
func TestALinkThatIsSwappedIn(t *testing.T) {
	onlyRoot(t)
	f := newFortress(t)
	m := newMachine(t, nil)
	anna := m.as(annaUID)
	dir := home(t, annaUID)
	work := filepath.Join(dir, "work")
	real := filepath.Join(dir, "real")
	for _, d := range []string{work, real} {
		if err := errors.Join(os.Mkdir(d, 0o700), os.Chown(d, annaUID, annaUID)); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swap := func(name, to string) { // name is a file or folder, then a link, then …
		swapping.Go(func() {
			link := name + ".link"
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.Remove(link)
				if err := os.Symlink([]string{to, real}[i%2], link); err != nil {
					continue
				}
				_ = os.Lchown(link, annaUID, annaUID)
				_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE)
				_ = os.RemoveAll(link) // what it was
			}
		})
	}
	out := filepath.Join(dir, "out")
	if err := errors.Join(os.WriteFile(out, nil, 0o600), os.Chown(out, annaUID, annaUID)); err != nil {
		t.Fatal(err)
	}
	swap(out, filepath.Join(f.dir, "open"))
	swap(work, f.home)
	var names []string
	for i := range 16 {
		args := []string{"--output=" + out, "--time=5"}
		if i%2 == 1 {
			args = []string{"--output=new", "--chdir=" + work, "--time=5"}
		}
		names = append(names, m.submit(anna, &api.Submit{
			Text: "#!/bin/sh\necho mine; echo mine > made; cat theirs\n", File: "job.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Args: args,
		}))
	}
	for _, n := range names {
		m.ended(anna, n)
		_, text := ask(t, anna, http.MethodGet, "/v1/jobs/"+n+"/logs", "")
		if strings.Contains(text, wall) {
			t.Errorf("job %s shows %q", n, text)
		}
	}
	close(stop)
	swapping.Wait()
	f.look("links were swapped")
}

// TestFoldersThatOthersMadeFirst makes what a server or a supervisor might make, before
// it does.
func TestFoldersThatOthersMadeFirst(t *testing.T) {
	onlyRoot(t)
	m := newMachine(t, func(m *machine, c *config.Config) {
		// So long that the sockets in it have no name that the kernel takes.
		m.state = filepath.Join(m.dir, strings.Repeat("long-", 30), "state")
		if err := os.MkdirAll(m.state, 0o755); err != nil {
			t.Fatal(err)
		}
		c.State.Dir = m.state
	})
	before, err := filepath.Glob(filepath.Join(os.TempDir(), "cox*"))
	if err != nil {
		t.Fatal(err)
	}
	anna := m.as(annaUID)
	dir := home(t, annaUID)
	name := m.submit(anna, &api.Submit{
		Text: "#!/bin/sh\nsrun echo step\nls " + os.TempDir() + "\n", File: "job.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Args: []string{"--output=out", "--time=5"},
	})
	j := m.ended(anna, name)
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil || j.State != "COMPLETED" || !strings.HasPrefix(string(b), "step\n") {
		t.Errorf("%s: %q, %v", j.State, b, err)
	}
	for line := range strings.Lines(string(b)) {
		name := filepath.Join(os.TempDir(), strings.TrimSpace(line))
		if strings.HasPrefix(line, "cox.") && !contains(before, name) {
			t.Errorf("the folder for all has %s", name)
		}
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
