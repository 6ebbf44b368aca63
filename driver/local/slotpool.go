package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
)

// supervisorSlot is the engine's end of a supervisor. It belongs to one part of a gang, or to
// the pool.
type supervisorSlot struct {
	attempt.Slot
	kind
	process *os.Process // child of this process; nil: adopted
	conn    net.Conn
	records chan attempt.Record // what it says; closed when the connection has ended
	idle    time.Time           // since when it is in the pool
}

// kind is for which parts a seat serves.
type kind struct {
	named bool   // its process is in namespaces of its own
	node  string // the name it has there; empty: none yet, or none at all
	uid   uint32 // whose attempts it takes
	fresh bool   // it has had none yet: uid and node are open
	hosts uint64 // of the machine's hosts file, of which it has a copy

	network string // Launch.Network of the attempts that it takes
}

// canServe reports whether a seat can take an attempt that needs want.
func (k kind) canServe(want kind) bool {
	if k.named != want.named || k.hosts != want.hosts || k.network != want.network {
		return false
	}
	return k.fresh || k.uid == want.uid && k.node == want.node
}

// pool keeps supervisors that have no attempt, so that the next one need not wait
// for a process to start. A kept one ends when its time is over, when there are too
// many, or when the engine closes its connection, by its death too.
type pool struct {
	e *Engine

	mu     sync.Mutex
	idle   []*supervisorSlot // the one that has waited longest first
	closed bool
	timer  *time.Timer
	made   uint64
	wg     sync.WaitGroup
}

// How many supervisors without work are kept, beside one for each node, and how
// long.
const (
	keptSeats = 4
	keptFor   = 30 * time.Second
)

func newPool(e *Engine) *pool {
	p := &pool{e: e}
	p.timer = time.AfterFunc(time.Hour, p.trimSlots)
	if e.cfg.Spare {
		p.timer.Reset(0)
	}
	return p
}

// takeSlot returns a seat for an attempt of a kind on a node.
func (p *pool) takeSlot(want kind, node string) (*supervisorSlot, error) {
	p.mu.Lock()
	for i, s := range slices.Backward(p.idle) {
		if s.canServe(want) {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.mu.Unlock()
			s.kind = want
			return s, nil
		}
	}
	p.mu.Unlock()
	s, err := p.spawnSupervisor(want, node)
	if err == nil {
		s.kind = want
	}
	return s, err
}

// giveBackSlot takes back a seat whose attempt is on record as ended.
func (p *pool) giveBackSlot(s *supervisorSlot) {
	if s == nil {
		return
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.disposeSlot(s)
		return
	}
	s.idle = time.Now()
	p.idle = append(p.idle, s)
	var over *supervisorSlot
	if len(p.idle) > keptSeats+len(p.e.cfg.Nodes) {
		over = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if len(p.idle) == 1 {
		p.timer.Reset(keptFor)
	}
	p.mu.Unlock()
	if over != nil {
		p.disposeSlot(over)
	}
}

// trimSlots ends seats that nobody needed, and keeps a spare where one is wanted.
func (p *pool) trimSlots() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	var over []*supervisorSlot
	spare := p.e.cfg.Spare
	for len(p.idle) > 0 && time.Since(p.idle[0].idle) >= keptFor && (!spare || !p.idle[0].fresh || len(p.idle) > 1) {
		over = append(over, p.idle[0])
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	need := spare && !slices.ContainsFunc(p.idle, func(s *supervisorSlot) bool { return s.fresh })
	p.timer.Reset(keptFor)
	p.mu.Unlock()
	for _, s := range over {
		p.disposeSlot(s)
	}
	if !need {
		return
	}
	named := p.e.cfg.Naming != NamedByAddr && slices.ContainsFunc(p.e.cfg.Nodes, isVirtual)
	s, err := p.spawnSupervisor(p.e.kindOf(named, "", 0), "")
	if err != nil {
		p.e.cfg.Log.Warn("start a spare supervisor", "err", err)
		return
	}
	p.giveBackSlot(s)
}

// slotLost is told that a seat's connection has ended.
func (p *pool) slotLost(s *supervisorSlot) {
	p.mu.Lock()
	i := slices.Index(p.idle, s)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	closed := p.closed
	p.mu.Unlock()
	if i >= 0 && !closed {
		p.wg.Go(func() { p.disposeSlot(s) })
	}
}

// disposeSlot ends a supervisor that has no attempt and removes its seat.
func (p *pool) disposeSlot(s *supervisorSlot) {
	_ = s.conn.Close() // without work it ends with its last connection
	s.reapProcess()
	if err := s.Remove(); err != nil {
		p.e.cfg.Log.Warn("remove a seat", "seat", s.Name, "err", err)
	}
}

// reapProcess waits for the end of a process that is about to end, or has.
func (s *supervisorSlot) reapProcess() {
	if s.process != nil {
		_, _ = s.process.Wait()
		return
	}
	if pid := s.Identity.PID; pid != 0 {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // a child if an earlier engine of this process started it
	}
}

// dropSlots ends the seats that are kept, and waits for them.
func (p *pool) dropSlots() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, s := range idle {
		_ = s.conn.Close()
	}
	for _, s := range idle {
		p.disposeSlot(s)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.timer.Stop()
	p.mu.Unlock()
	p.dropSlots()
	p.wg.Wait()
}

// spawnSupervisor starts a supervisor on a new seat, with one end of a connection as its
// descriptor 3. Its arguments tell who lists processes for which node it was made.
func (p *pool) spawnSupervisor(want kind, node string) (*supervisorSlot, error) {
	e := p.e
	p.mu.Lock()
	p.made++
	name := fmt.Sprintf("%d.%d", e.epoch, p.made)
	p.mu.Unlock()
	s := &supervisorSlot{Slot: attempt.SlotOf(e.cfg.Root, name), kind: want}
	s.fresh = true
	err := s.makeDirs()
	if err == nil {
		err = s.startProcess(e, want, node)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a supervisor: %w", err), s.Remove())
	}
	p.hearSlot(s)
	return s, nil
}

// makeDirs makes the seat's directories. The user of a job may pass through, to the
// files that are his, and see no list of them.
func (s *supervisorSlot) makeDirs() error {
	dirs := []string{s.Dir}
	if s.Sockets != s.Dir {
		dirs = append(dirs, s.Sockets)
	}
	for _, d := range dirs {
		// A directory that somebody else made first would let him listen in our place.
		if err := os.RemoveAll(d); err != nil {
			return err
		}
		if err := os.Mkdir(d, 0o711); err != nil {
			return err
		}
		if err := os.Chmod(d, 0o711); err != nil { // whatever the umask is
			return err
		}
	}
	return nil
}

func (s *supervisorSlot) startProcess(e *Engine, want kind, node string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	log, err := os.OpenFile(s.Words(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	naming := NamedByAddr
	if want.named {
		naming = e.cfg.Naming
	}
	s.process, err = os.StartProcess(e.coxPath(), []string{"cox", "supervise", s.Dir, s.Sockets, node}, &os.ProcAttr{
		Dir:   "/", // Its work is small and waits mostly: threads that look for more cost more.
		Env:   []string{"PATH=" + os.Getenv("PATH"), supervisorVariable + "=1", "GOMAXPROCS=1"},
		Files: []*os.File{null, log, log, theirs},
		Sys:   namespaceAttrs(naming),
	})
	if err != nil {
		return err
	}
	s.Identity = attempt.Identity{PID: s.process.Pid, BootID: e.boot}
	if st, err := proc.Read(s.process.Pid); err == nil {
		s.Identity.Start = st.Start
	}
	s.conn, err = net.FileConn(ours)
	return err
}

// supervisorVariable marks a process as a supervisor, for binaries that serve as
// cox in tests.
const supervisorVariable = "COX_SUPERVISOR"

// hearSlot reads what a seat says until its connection ends.
func (p *pool) hearSlot(s *supervisorSlot) {
	s.records = make(chan attempt.Record, 16)
	out := s.records
	conn := s.conn
	p.wg.Go(func() {
		defer p.slotLost(s)
		defer close(out)
		in := json.NewDecoder(conn)
		for {
			var r attempt.Record
			err := in.Decode(&r)
			if err == nil && !r.Whole() {
				err = errors.New("a record that is not complete")
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					_ = conn.Close()
				}
				return
			}
			select {
			case out <- r:
			case <-p.e.ctx.Done():
				return
			}
		}
	})
}

// sendCommand writes a command.
func (s *supervisorSlot) sendCommand(c attempt.Command, limit time.Duration) error {
	b, err := json.Marshal(c)
	if err != nil {
		panic("command: " + err.Error()) // plain data
	}
	return s.writeLine(append(b, '\n'), limit)
}

func (s *supervisorSlot) writeLine(line []byte, limit time.Duration) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(limit))
	_, err := s.conn.Write(line)
	return err
}

// isAlive reports whether the seat's process exists.
func (s *supervisorSlot) isAlive(boot string) bool {
	id := s.Identity
	return id.PID != 0 && id.BootID == boot && proc.Alive(id.PID, id.Start)
}

// kindOf is what an attempt needs.
func (e *Engine) kindOf(named bool, node string, uid uint32) kind {
	k := kind{uid: uid, network: e.cfg.Network.Prefix}
	if named {
		k.named, k.node, k.hosts = true, node, e.hosts.sum()
	}
	return k
}

// epochOf is the epoch in which a seat was made; 0 if the name is not one's.
func epochOf(seat string) uint64 {
	for i, c := range seat {
		if c == '.' {
			n, _ := strconv.ParseUint(seat[:i], 10, 64)
			return n
		}
	}
	return 0
}
