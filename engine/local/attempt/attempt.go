// Package attempt is what the local engine and its supervisors share: the files
// of one attempt on disk, the facts that supervisors report, and the commands
// that they take.
//
// The engine writes the directory of an attempt once, whole, by renaming it into
// place. From then on each supervisor writes in its own node's directory only,
// and the engine in the attempt's. Whether the program may run is one file with
// three names (see Marker), moved by rename, so that it is decided exactly once
// and needs no free disk space.
package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/cgroup"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// Marker is how far the decision to run an attempt is: a file of that name
// stands in its directory.
type Marker string

// The markers.
const (
	Pending Marker = "pending" // the gang is being made ready; nothing of the program runs
	Go      Marker = "go"      // the barrier may be opened, by this or a later server
	Abort   Marker = "abort"   // it will never be opened
	Forgot  Marker = "forgot"  // the attempt ended and is forgotten; only output copies may be left
)

// Naming says how a virtual node gets its host name.
type Naming string

// The ways to name a node.
const (
	NamedByRoot Naming = "root"    // UTS and mount namespaces, made as root
	NamedByUser Naming = "user"    // the same inside a user namespace
	NamedByAddr Naming = "address" // no namespace: the address is the name
)

// Host is one line of the private hosts file: an address and its name.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Launch is launch.json: engine.Launch without script and environment, and what
// the engine adds for its supervisors. It is not written again.
type Launch struct {
	Ref     engine.Ref    `json:"ref"`
	Digest  string        `json:"digest"` // of the whole engine.Launch, to tell a repeated call from another one
	Job     *job.Job      `json:"job"`
	Claims  []fleet.Claim `json:"claims"`
	Nodes   []fleet.Node  `json:"nodes"` // distinct, in the order of the claims
	Hosts   []Host        `json:"hosts"` // every node of the room
	Grace   time.Duration `json:"grace"`
	Naming  Naming        `json:"naming"`
	Root    string        `json:"root"`    // the engine's state directory
	Sockets string        `json:"sockets"` // directory of the sockets
	Groups  cgroup.Base   `json:"groups"`  // where control groups are made; nowhere: none
	BootID  string        `json:"boot_id"` // of the machine's run in which it was launched
	Orphan  time.Duration `json:"orphan"`  // how long a supervisor waits for the barrier without a server
	Tether  time.Duration `json:"tether"`  // how long work goes on without a server; 0: to its end
}

// Dir is the directory of one attempt.
type Dir string

// DirOf returns the directory of an attempt below an engine's root.
func DirOf(root string, ref engine.Ref) Dir {
	return Dir(filepath.Join(root, "a", ref.String()))
}

// ParseRef reads the name of an attempt's directory.
func ParseRef(name string) (engine.Ref, error) {
	var r engine.Ref
	if _, err := fmt.Sscanf(name, "%d.%d", &r.Allocation, &r.Attempt); err != nil || r.String() != name {
		return engine.Ref{}, fmt.Errorf("%q does not name an attempt", name)
	}
	return r, nil
}

// File returns the name of a file in the directory.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// Node returns the directory that belongs to a node's supervisor.
func (d Dir) Node(node string) string { return filepath.Join(string(d), "n", node) }

// Ranks is the directory with the copies of the ranks' output.
func (d Dir) Ranks() string { return d.File("ranks") }

// Script, Environment and Alloc are the script, the submitted environment
// (NUL-separated) and what processes inside may know.
func (d Dir) Script() string { return d.File("script") }

// Environment is the file with the submitted environment, NUL-separated.
func (d Dir) Environment() string { return d.File("env") }

// Alloc is the file that tells processes inside what the attempt holds.
func (d Dir) Alloc() string { return d.File("alloc.json") }

// ReadLaunch reads launch.json.
func (d Dir) ReadLaunch() (*Launch, error) {
	var l Launch
	if err := ReadJSON(d.File("launch.json"), &l); err != nil {
		return nil, err
	}
	return &l, nil
}

// Marker returns which marker stands in the directory.
func (d Dir) Marker() (Marker, error) {
	for _, m := range []Marker{Forgot, Go, Abort, Pending} {
		if _, err := os.Lstat(d.File(string(m))); err == nil {
			return m, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: no marker: %w", d, fs.ErrNotExist)
}

// Decide moves the marker from Pending and returns the one that stands then: a
// decision that was taken before is not changed.
func (d Dir) Decide(m Marker) (Marker, error) {
	err := os.Rename(d.File(string(Pending)), d.File(string(m)))
	if err == nil {
		return m, nil
	}
	was, merr := d.Marker()
	if merr != nil {
		return "", errors.Join(err, merr)
	}
	if was == Pending {
		return "", err
	}
	return was, nil
}

// Forget removes everything but the copies of the ranks' output, and that
// directory too if there are none. A crash in between leaves a marker.
func (d Dir) Forget() error {
	m, err := d.Marker()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.Rename(d.File(string(m)), d.File(string(Forgot))); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	_ = os.Remove(d.Ranks()) // succeeds if it is empty
	for _, e := range entries {
		if name := d.File(e.Name()); name != d.Ranks() && e.Name() != string(Forgot) {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	if _, rerr := os.Lstat(d.Ranks()); errors.Is(rerr, fs.ErrNotExist) && err == nil {
		return os.RemoveAll(string(d))
	}
	return err
}

// ControlSocket is where the supervisor of the i-th node takes commands.
func (l *Launch) ControlSocket(i int) string {
	return filepath.Join(l.Sockets, strconv.Itoa(i)+".c")
}

// StepSocket is where the supervisor of the i-th node serves steps.
func (l *Launch) StepSocket(i int) string {
	return filepath.Join(l.Sockets, strconv.Itoa(i)+".s")
}

// Group is the control group of the i-th node's tasks. Its name is unique to the
// engine's root, the attempt and the node.
func (l *Launch) Group(i int) string {
	return GroupPrefix(l.Root) + l.Ref.String() + "." + strconv.Itoa(i)
}

// GroupPrefix begins the names of the control groups of an engine's root.
func GroupPrefix(root string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(root))
	return fmt.Sprintf("cox.%08x.", h.Sum32())
}

// NodeIndex returns the position of a node in Nodes, -1 if it is not among them.
func (l *Launch) NodeIndex(name string) int {
	for i, n := range l.Nodes {
		if n.Name == name {
			return i
		}
	}
	return -1
}

// ReadJSON reads one JSON value from a file.
func ReadJSON(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// WriteJSON writes one JSON value into a file for its owner only, whole or not
// at all.
func WriteJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return WriteFile(name, b, 0o600)
}

// WriteFile writes a file whole or not at all: into a new one beside it, which
// is then renamed.
func WriteFile(name string, b []byte, mode os.FileMode) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, b, mode); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, name)
}
