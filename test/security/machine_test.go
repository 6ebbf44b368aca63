package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

// TestMain lets the test binary stand for cox: as supervisor, srun and in a task.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "srun" {
		os.Exit(srun.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(local.SuperviseMain(os.Args[2:]))
		case "task-init":
			os.Exit(barrier.Main(os.Args[2:]))
		case holder.Command:
			os.Exit(holder.Main(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// Users without an entry in the machine's database, of this process alone: other tests
// may run beside it.
var (
	annaUID = 20_000 + 2*(os.Getpid()%20_000)
	benUID  = annaUID + 1
)

// machine is a whole server with the embedded engine, as cox up runs it.
type machine struct {
	t      *testing.T
	dir    string // everything is below it
	state  string
	socket string
	url    string // on TCP
	log    *text
}

// folder is a new directory that other users can pass through.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// home is a directory of a user, for him alone.
func home(t *testing.T, uid int) string {
	t.Helper()
	dir := folder(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if uid != os.Getuid() {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newMachine(t *testing.T, change func(*machine, *config.Config)) *machine {
	t.Helper()
	m := &machine{t: t, dir: folder(t), log: &text{}}
	m.state, m.socket = filepath.Join(m.dir, "state"), filepath.Join(m.dir, "cox.sock")
	me, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cox := filepath.Join(m.dir, "cox")
	if err := os.WriteFile(cox, me, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = m.state, m.socket, "127.0.0.1:0"
	cfg.Room.Nodes, cfg.Room.ByAddress, cfg.Room.GPUsPerNode = 2, true, 0
	cfg.Jobs.Grace = config.Duration(time.Second)
	if change != nil {
		change(m, &cfg)
	}
	log := slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan daemon.Info, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{Config: cfg, Cox: cox, Version: "test", Log: log, Ready: func(i daemon.Info) { ready <- i }})
	}()
	select {
	case i := <-ready:
		m.url = "http://" + i.TCP
	case err := <-ended:
		cancel()
		t.Fatalf("the server did not start: %v", err)
	}
	t.Cleanup(func() {
		root := m.as(os.Getuid())
		_, _ = ask(t, root, http.MethodPost, "/v1/jobs/change", `{"select":{"all":true},"verb":"cancel","grace":0}`)
		m.settle(root)
		root.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

// settle waits until no job lives.
func (m *machine) settle(root *identity) {
	for {
		var list api.Jobs
		resp, text := ask(m.t, root, http.MethodGet, "/v1/jobs", "")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			m.t.Fatalf("%s %s", resp.Status, text)
		}
		if len(list.Jobs) == 0 {
			return
		}
		_, _ = ask(m.t, root, http.MethodGet, "/v1/jobs/"+list.Jobs[0].Name+"/wait?timeout=60", "")
	}
}

// as is a user of the machine on its socket. Only root can be somebody else.
func (m *machine) as(uid int) *identity {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		if terr := inThread(uid, func() { c, err = (&net.Dialer{}).DialContext(ctx, "unix", m.socket) }); terr != nil {
			return nil, terr
		}
		return c, err
	}
	return &identity{name: fmt.Sprint(uid), url: "http://cox", client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// submit submits a script and returns the job's number.
func (m *machine) submit(id *identity, s *api.Submit) string {
	m.t.Helper()
	s.Form = api.FormSbatch
	b, err := json.Marshal(s)
	if err != nil {
		m.t.Fatal(err)
	}
	resp, text := ask(m.t, id, http.MethodPost, "/v1/jobs", string(b))
	var got api.Submitted
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != http.StatusCreated {
		m.t.Fatalf("%s %s", resp.Status, text)
	}
	return got.ID.String()
}

// ended waits for the end of a job.
func (m *machine) ended(id *identity, name string) *api.Job {
	m.t.Helper()
	for {
		resp, text := ask(m.t, id, http.MethodGet, "/v1/jobs/"+name+"/wait?timeout=60", "")
		if resp.StatusCode == http.StatusNoContent {
			continue
		}
		var j api.Job
		if err := json.Unmarshal([]byte(text), &j); err != nil || resp.StatusCode != http.StatusOK {
			m.t.Fatalf("%s %s", resp.Status, text)
		}
		return &j
	}
}

// eventually polls what other processes do, where there is no event.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// inThread runs f on a thread of another user, with none of root's rights.
func inThread(uid int, f func()) error {
	if uid == os.Getuid() {
		f()
		return nil
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		// The system calls themselves, which change one thread only.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			done <- errno
			return
		}
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
				done <- errno
				return
			}
		}
		f()
		done <- nil
	}()
	return <-done
}

// onlyRoot skips what takes users of its own.
func onlyRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root runs work of several users")
	}
}
