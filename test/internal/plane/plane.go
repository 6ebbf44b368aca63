package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/internal/exectest"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

// patience ends a wait that is in vain; nothing is concluded from it.
const patience = 3 * time.Minute

// Plane is a server and its state directory, which outlives the server.
type Plane struct {
	*client.Client // of the server that runs, or will run

	T      testing.TB
	Dir    string // of the test: scripts, output and evidence; it is the jobs' working directory
	State  string // state directory
	Config config.Config

	stop func()          // the server, if one runs
	kill func()          // the same at once, if it is a process of its own
	dead <-chan struct{} // closed when that process is gone
	log  *os.File
}

// New makes a plane without a server: Start or StartProcess begins one. change is for
// the configuration, which is by default 4 virtual nodes of 8 CPUs without GPUs.
func New(t testing.TB, change func(*config.Config)) *Plane {
	t.Helper()
	p := &Plane{T: t, Dir: t.TempDir(), Config: config.Default()}
	p.State = filepath.Join(p.Dir, "state")
	if os.Getuid() == 0 { // other users pass through to their jobs' supervisors
		p.failOn(os.Chmod(filepath.Dir(p.Dir), 0o755))
		p.failOn(os.Chmod(p.Dir, 0o755))
	}
	c := &p.Config
	c.State.Dir, c.Listen.Socket, c.Listen.TCP = p.State, filepath.Join(p.Dir, "sock"), "none"
	c.Room.Nodes, c.Room.CPUs, c.Room.Memory, c.Room.GPUsPerNode = 4, 8, 32<<30, 0
	if change != nil {
		change(c)
	}
	var err error
	p.Client, err = client.New(client.Options{Socket: c.Listen.Socket})
	p.failOn(err)
	p.log, err = os.Create(filepath.Join(p.Dir, "server.log"))
	p.failOn(err)
	t.Cleanup(p.cleanUp)
	return p
}

// failOn ends the test if there is an error.
func (p *Plane) failOn(err error) {
	p.T.Helper()
	if err != nil {
		p.T.Fatal(err)
	}
}

// Start begins a server inside of the test's process.
func (p *Plane) Start(change ...func(*daemon.Options)) *Plane {
	p.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	opt := daemon.Options{
		Config: p.Config, Version: "test", Log: slog.New(slog.NewTextHandler(p.log, nil)),
		Ready: func(daemon.Info) { close(ready) },
	}
	for _, f := range change {
		f(&opt)
	}
	go func() { ended <- daemon.Run(ctx, opt) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		p.T.Fatalf("the server did not start: %v", err)
	case <-time.After(patience):
		cancel()
		p.T.Fatalf("the server does not start\n%s", p.serverLog())
	}
	p.kill = nil
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				p.T.Errorf("the server ended: %v", err)
			}
		case <-time.After(patience):
			p.T.Errorf("the server does not end\n%s", p.serverLog())
		}
	})
	return p
}

// StartProcess begins a server as a process of its own, with a fault that Main knows;
// "" is none.
func (p *Plane) StartProcess(fault string) *Plane {
	p.T.Helper()
	file := filepath.Join(p.Dir, "server.json")
	b, err := json.Marshal(p.Config)
	p.failOn(err)
	p.failOn(os.WriteFile(file, b, 0o600))
	self, err := os.Executable()
	p.failOn(err)
	cmd := exec.Command(self, serverArg, file, fault)
	cmd.Stderr = p.log
	out, err := cmd.StdoutPipe()
	p.failOn(err)
	p.failOn(cmd.Start())
	dead := make(chan struct{})
	said := bufio.NewReader(out)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	line, _ := said.ReadString('\n')
	late.Stop()
	go func() {
		defer close(dead)
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait() // how it ends is the test's story
	}()
	end := func(sig os.Signal) func() {
		return sync.OnceFunc(func() {
			_ = cmd.Process.Signal(sig)
			select {
			case <-dead:
			case <-time.After(patience):
				p.T.Errorf("the server does not end by %v\n%s", sig, p.serverLog())
				_ = cmd.Process.Kill()
				<-dead
			}
		})
	}
	p.stop, p.kill, p.dead = end(unix.SIGTERM), end(unix.SIGKILL), dead
	if line != "ready\n" {
		p.kill()
		p.T.Fatalf("the server did not start: see its log\n%s", p.serverLog())
	}
	return p
}

// Stop ends the server in order. Jobs go on.
func (p *Plane) Stop() {
	if p.stop != nil {
		p.stop()
	}
	p.stop, p.kill = nil, nil
}

// Dies waits until a server that is a process of its own has died of its fault.
func (p *Plane) Dies() {
	p.T.Helper()
	select {
	case <-p.dead:
	case <-time.After(patience):
		p.T.Fatalf("the server does not die\n%s", p.describeState())
	}
	p.stop, p.kill = nil, nil
}

// Kill ends a server that is a process of its own with SIGKILL, and returns when it is
// gone.
func (p *Plane) Kill() {
	p.T.Helper()
	if p.kill == nil {
		p.T.Fatal("only a server that is a process of its own can be killed")
	}
	p.kill()
	p.stop, p.kill = nil, nil
}

// serverLog is the end of what the servers said.
func (p *Plane) serverLog() string {
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-8<<10):])
}

// Run runs one of Slurm's commands against the server, as a user types it, and returns
// what it printed and how it ended.
func (p *Plane) Run(env []string, name string, args ...string) (out, errs string, code int) {
	p.T.Helper()
	self, err := os.Executable()
	p.failOn(err)
	cmd := exectest.Command(p.T, nil, self, args...)
	cmd.Args[0], cmd.Dir = name, p.Dir
	cmd.Env = append(append(os.Environ(), "COX_SERVER=unix://"+p.Config.Listen.Socket), env...)
	var o, e writer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		p.T.Fatal(err)
	}
	return string(o), string(e), cmd.ProcessState.ExitCode()
}

type writer []byte

func (w *writer) Write(b []byte) (int, error) { *w = append(*w, b...); return len(b), nil }

// String is for a test's log.
func (p *Plane) String() string { return fmt.Sprintf("plane in %s", p.Dir) }
