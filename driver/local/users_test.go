package local_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Users without an entry in the system's database, and one with.
var (
	anna   = job.Owner{User: "anna", UID: 61001, GID: 61001}
	bert   = job.Owner{User: "bert", UID: 61002, GID: 61002}
	nobody = job.Owner{User: "nobody", UID: 65534, GID: 65534}
)

// passable is a directory that other users can reach.
func passable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// home is a directory of a user.
func home(t *testing.T, o job.Owner) string {
	t.Helper()
	dir := passable(t)
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, int(o.UID), int(o.GID))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// userEngine is an engine that may run work of every user.
func userEngine(t *testing.T, cfg local.Config) *local.Engine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root runs work of other users")
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Cox = filepath.Join(passable(t), "cox")
	if b, err := os.ReadFile(me); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(cfg.Cox, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg.Root = passable(t)
	return newEngine(t, cfg)
}

// planFor is a plan of a user's script.
func planFor(t *testing.T, e *local.Engine, o job.Owner, n int, script ...string) *engine.Launch {
	t.Helper()
	l := plan(t, e, n, script...)
	l.Job.Spec.Owner, l.Job.Spec.WorkDir = o, home(t, o)
	l.Env = append(l.Env, "HOME="+l.Job.Spec.WorkDir, "SHELL=/bin/sh")
	return l
}

// asUser runs a command of the shell as a user, outside of every job.
func asUser(t *testing.T, o job.Owner, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.UID, Gid: o.GID}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestJobsRunAsTheirOwner(t *testing.T) {
	for _, naming := range namings(t) {
		t.Run(string(naming), func(t *testing.T) {
			e := userEngine(t, local.Config{Naming: naming})
			for i, o := range []job.Owner{anna, nobody, bert} {
				l := planFor(t, e, o, 2,
					"id -u; id -g; id -G; umask; pwd",
					"grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):' /proc/self/status | tr -d '\\n\\t '; echo",
					"srun sh -c 'id -u > rank.$SLURM_PROCID; id -u'; echo step $?",
					`echo "$HOME|$USER|$LOGNAME|$SHELL"`)
				l.Ref.Allocation, l.Job.ID = uint64(i+1), job.ID(i+1)
				r := run(t, e, l)
				succeeded(t, r)
				uid := fmt.Sprint(o.UID)
				zero := ":" + strings.Repeat("0", 16)
				want := []string{
					uid, uid, uid, "0022", l.Job.Spec.WorkDir,
					"CapInh" + zero + "CapPrm" + zero + "CapEff" + zero + "CapAmb" + zero + "NoNewPrivs:0",
					uid, uid, "step 0", l.Job.Spec.WorkDir + "|" + o.User + "|" + o.User + "|/bin/sh",
				}
				if got := read(t, r.Files[0]); got != strings.Join(want, "\n")+"\n" {
					t.Errorf("%s:\n%swant\n%s", o.User, got, strings.Join(want, "\n"))
				}
				for _, name := range []string{r.Files[0], filepath.Join(l.Job.Spec.WorkDir, "rank.1"), tasks(r, 0)[0].Log} {
					var st unix.Stat_t
					if err := unix.Stat(name, &st); err != nil || st.Uid != o.UID || st.Gid != o.GID {
						t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
					}
				}
			}
		})
	}
}

func TestUmaskOfTheSubmitter(t *testing.T) {
	e := userEngine(t, local.Config{})
	l := planFor(t, e, anna, 1, "umask")
	l.Env = append(l.Env, "SLURM_UMASK=0077")
	r := run(t, e, l)
	succeeded(t, r)
	if got := read(t, r.Files[0]); got != "0077\n" {
		t.Errorf("umask %q", got)
	}
	if st, err := os.Stat(r.Files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// What a user names is opened with his rights, not with those of the server.
func TestForbiddenPaths(t *testing.T) {
	e := userEngine(t, local.Config{})
	secret := filepath.Join(passable(t), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	locked := passable(t) // of root, not writable
	hidden := home(t, bert)
	for i, c := range []struct {
		name  string
		spoil func(l *engine.Launch, dir string)
		names string
	}{
		{"output", func(l *engine.Launch, _ string) { l.Job.Spec.Output.Stdout = filepath.Join(locked, "out") }, filepath.Join(locked, "out")},
		{"over a file of root", func(l *engine.Launch, _ string) { l.Job.Spec.Output.Stdout = secret }, secret},
		{"output by a link", func(l *engine.Launch, dir string) {
			l.Job.Spec.Output.Stdout = "link"
			symlink(t, secret, filepath.Join(dir, "link"))
		}, "link"},
		{"error", func(l *engine.Launch, _ string) { l.Job.Spec.Output.Stderr = filepath.Join(locked, "err") }, filepath.Join(locked, "err")},
		{"input", func(l *engine.Launch, _ string) { l.Job.Spec.Output.Stdin = secret }, secret},
		{"input by a link", func(l *engine.Launch, dir string) {
			l.Job.Spec.Output.Stdin = "link"
			symlink(t, secret, filepath.Join(dir, "link"))
		}, "link"},
		{"working directory", func(l *engine.Launch, _ string) { l.Job.Spec.WorkDir = hidden }, hidden},
		{"working directory that is missing", func(l *engine.Launch, _ string) { l.Job.Spec.WorkDir = hidden + "/none" }, hidden + "/none"},
		{"interpreter", func(l *engine.Launch, _ string) { l.Script = []byte("#!" + secret + "\n") }, secret},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := planFor(t, e, anna, 1, "cat; id")
			l.Ref.Allocation = uint64(i + 1)
			c.spoil(l, l.Job.Spec.WorkDir)
			r := run(t, e, l)
			if r.Cause != engine.Refused || !strings.Contains(r.Message, c.names) || len(r.Tasks) != 0 {
				t.Errorf("%s: %q, files %v", r.Cause, r.Message, r.Files)
			}
			t.Log(r.Message)
		})
	}
	if read(t, secret) != "secret\n" {
		t.Error("root's file was written")
	}
	// The same in a step: its files are opened by the supervisor too.
	l := planFor(t, e, anna, 1, "ln -s "+secret+" link", "srun -o link id; echo $?", "srun -i link cat; echo $?")
	l.Ref.Allocation = 100
	r := run(t, e, l)
	if got := read(t, r.Files[0]); strings.Contains(got, "secret\n") || strings.Count(got, "ermission denied") != 2 || read(t, secret) != "secret\n" {
		t.Errorf("%s", got)
	}
	if entries, err := os.ReadDir(locked); err != nil || len(entries) != 0 {
		t.Errorf("made in root's directory: %v, %v", entries, err)
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// One user can neither signal another's tasks nor connect to his supervisor nor read
// what the engine keeps of his job.
func TestUsersAreKeptApart(t *testing.T) {
	e := userEngine(t, local.Config{})
	l := planFor(t, e, anna, 1, "srun sh -c 'echo secret; exec sleep 600'")
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 1 && tasks(r, 0)[0].Running })
	seat, _ := seatOf(t, e.Root(), l.Ref, l.Claims[0].Node)
	log := tasks(r, 0)[0].Log
	eventually(t, "the rank has written", func() bool { b, _ := os.ReadFile(log); return len(b) > 0 })
	for _, p := range r.Tasks {
		if out, err := asUser(t, bert, fmt.Sprintf("kill -9 %d", p.PID)); err == nil {
			t.Errorf("killed %d: %s", p.PID, out)
		}
	}
	if out, err := asUser(t, anna, fmt.Sprintf("kill -0 %d", tasks(r, 0)[0].PID)); err != nil {
		t.Errorf("the owner cannot signal his own task: %v, %s", err, out)
	}
	for _, file := range []string{seat.Dir + "/script", seat.Dir + "/alloc.json", seat.Journal(), seat.Words(), log, e.Root() + "/attempts"} {
		if out, err := asUser(t, bert, "cat "+file); err == nil {
			t.Errorf("%s can be read: %q", file, out)
		}
		if out, err := asUser(t, bert, "echo >> "+file); err == nil {
			t.Errorf("%s can be written: %q", file, out)
		}
	}
	for _, file := range []string{seat.Journal(), seat.Words(), e.Root() + "/attempts"} { // not by its owner either
		if out, err := asUser(t, anna, "cat "+file); err == nil {
			t.Errorf("%s can be read: %q", file, out)
		}
	}
	for _, dir := range []string{e.Root(), seat.Dir, filepath.Dir(log), e.Root() + "/bin"} {
		if out, err := asUser(t, anna, "rm -rf "+dir+"/*; echo > "+dir+"/new"); err == nil {
			t.Errorf("%s can be written: %q", dir, out)
		}
	}
	// By the socket's file mode, and by peer credentials where that is worked around.
	for _, socket := range []string{seat.StepSocket(), seat.ControlSocket()} {
		if err := connectAs(t, bert, socket); !errors.Is(err, unix.EACCES) {
			t.Errorf("%s: bert: %v", socket, err)
		}
	}
	if err := connectAs(t, anna, seat.ControlSocket()); !errors.Is(err, unix.EACCES) {
		t.Errorf("anna: %v", err)
	}
	if err := os.Chmod(seat.StepSocket(), 0o777); err != nil {
		t.Fatal(err)
	}
	if out := ask(t, bert, seat.StepSocket()); !strings.Contains(out, "does not own job") {
		t.Errorf("bert is told %q", out)
	}
	if err := os.Chmod(seat.ControlSocket(), 0o777); err != nil {
		t.Fatal(err)
	}
	if out := ask(t, anna, seat.ControlSocket()); out != "" {
		t.Errorf("anna is told %q", out)
	}
	if now, err := e.Inspect(t.Context(), l.Ref); err != nil || now.Phase != engine.Running {
		t.Errorf("%s, %v", now.Phase, err)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, gone)
}

// connectAs connects to a socket as a user.
func connectAs(t *testing.T, o job.Owner, socket string) error {
	t.Helper()
	var err error
	inThread(t, o, func() {
		var c net.Conn
		if c, err = net.Dial("unix", socket); err == nil {
			_ = c.Close()
		}
	})
	return err
}

// ask connects to a socket as a user, and returns what is said before the end.
func ask(t *testing.T, o job.Owner, socket string) string {
	t.Helper()
	var out string
	inThread(t, o, func() {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			out += string(b[:n])
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection was not closed")
				}
				return
			}
		}
	})
	return out
}

// A state directory that users cannot reach is said at the start, not found out by
// the first srun.
func TestStateDirectoryOutOfReach(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root runs work of other users")
	}
	root := passable(t)
	closed := filepath.Join(root, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{filepath.Join(closed, "state"): true, filepath.Join(root, "state"): false} {
		info, err := newEngine(t, local.Config{Root: dir}).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(strings.Join(info.Notes, "\n"), "cannot pass through "+closed); said != want {
			t.Errorf("%s: %q", dir, info.Notes)
		}
	}
}

// A command that every task runs directly belongs to its owner too.
func TestDirectProgramAsOwner(t *testing.T) {
	e := userEngine(t, local.Config{})
	l := planFor(t, e, anna, 3)
	l.Script, l.Job.Spec.Program = nil, job.Program{Kind: job.Direct, Args: []string{"id", "-u"}}
	r := run(t, e, l)
	succeeded(t, r)
	if got := read(t, r.Files[0]); got != strings.Repeat("61001\n", 3) {
		t.Errorf("%q", got)
	}
}

// One supervisor after the other serves different users: nothing of one is left for
// the next.
func TestUsersTakeTurns(t *testing.T) {
	e := userEngine(t, local.Config{})
	for i := range 6 {
		o := []job.Owner{anna, bert, {}}[i%3]
		uid := fmt.Sprint(o.UID)
		var l *engine.Launch
		if o == (job.Owner{}) {
			l = plan(t, e, 2, "id -u; echo $MINE", "srun id -u")
		} else {
			l = planFor(t, e, o, 2, "id -u; echo $MINE", "srun id -u")
		}
		l.Ref.Allocation, l.Job.ID = uint64(i+1), job.ID(i+1)
		l.Env = append(l.Env, "MINE="+uid)
		r := run(t, e, l)
		succeeded(t, r)
		if got := read(t, r.Files[0]); got != strings.Repeat(uid+"\n", 4) {
			t.Errorf("%s: %q", uid, got)
		}
		if err := e.Forget(t.Context(), l.Ref); err != nil {
			t.Error(err)
		}
	}
}

// A server without root's rights refuses the work of others, and says why.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root runs it")
	}
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "exit 0")
	l.Job.Spec.Owner = anna
	err := e.Launch(t.Context(), l)
	if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("%v; %s", err, fault.Remedy(err))
	}
	if _, err := e.OpenLog(t.Context(), anna, "/etc/passwd"); fault.KindOf(err) != fault.Permission {
		t.Errorf("a log: %v", err)
	}
}

func TestLogsAreOpenedAsTheirOwner(t *testing.T) {
	e := userEngine(t, local.Config{})
	secret := filepath.Join(passable(t), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := planFor(t, e, anna, 1, "echo out; srun echo rank", "rm $0.x slurm-7.out 2>/dev/null; ln -s "+secret+" slurm-7.out")
	r := run(t, e, l)
	succeeded(t, r)
	if _, err := e.OpenLog(t.Context(), anna, r.Files[0]); fault.KindOf(err) != fault.Permission {
		t.Errorf("by a link to root's file: %v", err)
	}
	if _, err := e.OpenLog(t.Context(), anna, filepath.Join(l.Job.Spec.WorkDir, "none")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a missing one: %v", err)
	}
	zero := 0
	name, err := engine.LogFile(r, "", nil, &zero)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Purge(t.Context(), l.Ref); fault.KindOf(err) != fault.Conflict {
		t.Errorf("purge before it is forgotten: %v", err)
	}
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := e.OpenLog(t.Context(), bert, name); fault.KindOf(err) != fault.Permission {
		t.Errorf("another's rank log: %v", err)
	}
	log, err := e.OpenLog(t.Context(), anna, name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	b := make([]byte, 100)
	if n, _ := log.Read(b); string(b[:n]) != "rank\n" {
		t.Errorf("%q", b[:n])
	}
	if err := errors.Join(e.Purge(t.Context(), l.Ref), e.Purge(t.Context(), l.Ref)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the purge: %v", err)
	}
}

// inThread runs f on a thread of another user.
func inThread(t *testing.T, o job.Owner, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		// The syscalls themselves, which change one thread only.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			done <- errno
			return
		}
		for _, c := range []struct{ call, id uintptr }{{unix.SYS_SETRESGID, uintptr(o.GID)}, {unix.SYS_SETRESUID, uintptr(o.UID)}} {
			if _, _, errno := unix.RawSyscall(c.call, c.id, c.id, c.id); errno != 0 {
				done <- errno
				return
			}
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
