package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/engine/local/proc"
	"github.com/coxswain-sched/coxswain/engine/local/supervise"
)

// follow starts the supervisor if it may be started and is not there, listens to
// it until it is dead, and then makes sure that nothing else lives.
func (p *part) follow(start bool) {
	ctx := p.gang.e.ctx
	conn, err := p.attach(start)
	if err != nil {
		p.event(func() { p.state.Apply(attempt.Record{Kind: attempt.KindRefuse, Text: err.Error()}) })
	}
	for conn != nil {
		p.listen(ctx, conn)
		_ = conn.Close()
		conn = nil
		if ctx.Err() != nil {
			return
		}
		conn = p.again(ctx)
		if conn == nil && p.busy() {
			conn = p.other(ctx)
		}
	}
	if ctx.Err() == nil {
		p.bury(ctx)
	}
}

// busy reports whether the supervisor that was started ended because the node has
// another one, which an engine before this one started.
func (p *part) busy() bool {
	if p.process == nil {
		return false
	}
	st, err := p.process.Wait()
	p.process = nil
	return err == nil && st.ExitCode() == supervise.ExitBusy
}

// other connects to the node's other supervisor, which has not said yet who it is.
func (p *part) other(ctx context.Context) net.Conn {
	deadline := time.Now().Add(p.gang.e.cfg.Ready)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if p.identity = p.readIdentity(); p.alive() {
			pid := p.identity.PID
			p.event(func() { p.pid = pid })
			return p.again(ctx)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// attach connects to the supervisor that is there, or starts one.
func (p *part) attach(start bool) (net.Conn, error) {
	if p.identity.PID == 0 {
		p.identity = p.readIdentity()
	}
	if p.alive() {
		if c := p.again(p.gang.e.ctx); c != nil {
			return c, nil
		}
	}
	if !start || p.gang.e.ctx.Err() != nil {
		return nil, nil
	}
	return p.spawn()
}

func (p *part) readIdentity() attempt.Identity {
	var id attempt.Identity
	err := attempt.ReadJSON(filepath.Join(p.gang.dir.Node(p.node.Name), "supervisor.json"), &id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.gang.e.cfg.Log.Warn("read who a supervisor is", "err", err)
	}
	return id
}

// alive reports whether the supervisor's process exists.
func (p *part) alive() bool {
	id := p.identity
	return id.PID != 0 && (id.BootID == "" || id.BootID == p.gang.e.boot) && proc.Alive(id.PID, id.Start)
}

// again connects to a supervisor as long as it lives. It may not listen yet.
func (p *part) again(ctx context.Context) net.Conn {
	for wait := time.Millisecond; p.alive() && ctx.Err() == nil; wait = min(2*wait, 200*time.Millisecond) {
		c, err := net.Dial("unix", p.gang.launch.ControlSocket(p.index))
		if err == nil {
			return c
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// spawn starts a supervisor with one end of a connection as its descriptor 3.
func (p *part) spawn() (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to a supervisor: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	log, err := os.OpenFile(filepath.Join(p.gang.dir.Node(p.node.Name), "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	e := p.gang.e
	process, err := os.StartProcess(e.cox(), []string{"cox", "supervise", string(p.gang.dir), p.node.Name}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), supervisorVariable + "=1"},
		Files: []*os.File{null, log, log, theirs},
		Sys:   namespaces(p.naming()),
	})
	if err != nil {
		return nil, fmt.Errorf("start the supervisor of %s: %w", p.node.Name, err)
	}
	p.process = process
	p.identity = attempt.Identity{PID: process.Pid, BootID: e.boot}
	if st, err := proc.Read(process.Pid); err == nil {
		p.identity.Start = st.Start
	}
	pid := process.Pid
	p.event(func() { p.pid = pid })
	return net.FileConn(ours)
}

// supervisorVariable marks a process as a supervisor, for binaries that serve as
// cox in tests.
const supervisorVariable = "COX_SUPERVISOR"

func (p *part) naming() Naming {
	if !p.node.Virtual {
		return NamedByAddr
	}
	return p.gang.launch.Naming
}

// listen passes records to the gang and commands to the supervisor until the
// connection ends. A supervisor that does not act on a command to end in time is
// ended with SIGKILL.
func (p *part) listen(ctx context.Context, conn net.Conn) {
	gone := make(chan struct{})
	heard := make(chan struct{}, 1)
	p.gang.e.wg.Go(func() {
		defer close(gone)
		in := json.NewDecoder(conn)
		for {
			var r attempt.Record
			if err := in.Decode(&r); err != nil {
				return
			}
			select {
			case heard <- struct{}{}:
			default:
			}
			p.event(func() { p.apply(r) })
		}
	})
	defer func() { _ = conn.Close(); <-gone }()
	var deaf <-chan time.Time
	for {
		select {
		case c := <-p.commands:
			b, err := json.Marshal(c)
			if err != nil {
				panic("command: " + err.Error()) // plain data
			}
			_ = conn.SetWriteDeadline(time.Now().Add(p.gang.e.cfg.Deaf))
			if _, err := conn.Write(append(b, '\n')); err != nil {
				p.requeue(c)
				return
			}
			if c.Op != attempt.OpSignal && deaf == nil {
				deaf = time.After(p.gang.e.cfg.Deaf)
				drainOne(heard)
			}
		case <-heard:
			deaf = nil
		case <-deaf:
			deaf = nil
			p.execute()
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

func drainOne(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// requeue keeps a command that could not be written for the next connection.
func (p *part) requeue(c attempt.Command) {
	select {
	case p.commands <- c:
	default:
	}
}

// execute ends a supervisor that no longer answers; bury does the rest.
func (p *part) execute() {
	if p.alive() {
		p.gang.e.cfg.Log.Warn("a supervisor does not answer and is killed", "attempt", p.gang.launch.Ref, "node", p.node.Name, "pid", p.identity.PID)
		_ = unix.Kill(p.identity.PID, unix.SIGKILL)
	}
}
