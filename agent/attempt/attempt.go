// Package attempt is what the local engine and its supervisors share: the log of
// the engine, the journals of supervisors, the facts that these report, and the
// commands that they take.
//
// A supervisor's process sits on a Slot: a directory with its sockets and its
// journal, and a control group. Attempts sit on it one after the other. The engine
// alone writes its log (Log): that an attempt was launched, where it sits, whether
// its barrier is opened, how it ended. A supervisor alone writes its slot's journal
// (Journal): what happens to the attempt that it has. The engine logs the slot
// before it hands the attempt over and the end before the slot is used again, so
// after a crash each attempt is found from these two.
//
// Nothing here is synchronised to the disk: a process that is killed loses nothing,
// and after a crash of the machine nothing runs. What has to outlive that is the
// control plane's own journal.
package attempt

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/agent/hostsfile"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Naming says how a virtual node gets its host name.
type Naming string

// The ways to name a node.
const (
	NamedByRoot Naming = "root"    // UTS and mount namespaces, made as root
	NamedByUser Naming = "user"    // the same inside a user namespace
	NamedByAddr Naming = "address" // no namespace: the address is the name
)

// Host is one line of the private hosts file.
type Host = hostsfile.Host

// Launch is engine.Launch and what the engine adds for its supervisors. It is not
// written after it was logged.
type Launch struct {
	Ref    engine.Ref    `json:"ref"`
	Digest string        `json:"digest"` // of the engine.Launch, to tell a repeated call from another one
	Job    *job.Job      `json:"job"`
	Claims []fleet.Claim `json:"claims"`
	Nodes  []fleet.Node  `json:"nodes"` // distinct, in the order of the claims
	Script []byte        `json:"script,omitempty"`
	Env    []string      `json:"env,omitempty"`
	Grace  time.Duration `json:"grace"`
	Naming Naming        `json:"naming"`
	Hosts  []Host        `json:"hosts,omitempty"` // every node of the room; empty unless nodes are named

	// Network is where the network namespaces of virtual nodes are: a node's name comes after it.
	// Empty: nodes share the machine's network. Machine is the machine's address as nodes reach it;
	// empty: they share its 127.0.0.1.
	Network string `json:"network,omitempty"`
	Machine string `json:"machine,omitempty"`

	Root   string        `json:"root"`            // the engine's state directory
	Drawn  string        `json:"drawn,omitempty"` // the identity of Root; empty: launched by a version whose marks had none
	Groups cgroup.Base   `json:"groups"`          // where control groups are made; nowhere: none
	BootID string        `json:"boot_id"`         // of the machine's run in which it was launched
	Orphan time.Duration `json:"orphan"`          // how long a supervisor waits for the barrier without a server
	Tether time.Duration `json:"tether"`          // how long work goes on without a server; 0: to its end
	Stuck  time.Duration `json:"stuck"`           // how long after SIGKILL a process that lives counts as stuck; 0: a minute

	// Slack is how long after the job's time limit nodes other than the head end their part by
	// their own clocks, if the head has not ended it: 0: a minute.
	Slack time.Duration `json:"slack,omitempty"`

	// User is who the job's processes run as; nil: the user of the server.
	User  *barrier.Identity `json:"user,omitempty"`
	Umask int               `json:"umask"` // of the job's processes; negative: as the server's is
	Hooks Hooks             `json:"hooks,omitzero"`

	// Processes bounds processes and threads of the attempt on each node, where control
	// groups can; 0: it does not.
	Processes int64 `json:"processes,omitempty"`

	// Devices locks the attempt's devices for as long as its supervisors have it; nil: they are
	// not locked.
	Devices *devicelock.Locker `json:"devices,omitempty"`

	// Bind says on which CPUs its processes run; nodes that are not in it: on any.
	Bind []Binding `json:"bind,omitempty"`

	// Adds is the gang that it was added to; nil: none.
	Adds *engine.Joining `json:"adds,omitempty"`

	// Apart says that each node has file systems of its own, so that a supervisor must not
	// take what the head's wrote for its node to see.
	Apart bool `json:"apart,omitempty"`

	// Containers is the runtime of containers; nil: there is none. GPUs are the devices of the
	// attempt's containers, by node.
	Containers *container.Settings        `json:"containers,omitempty"`
	GPUs       map[string][]container.GPU `json:"gpus,omitempty"`

	// Own are variables that say what this node has, where it is a container of its own
	// (step.OfContainer); nil: it is none.
	Own []string `json:"own,omitzero"`

	Checkpoint string `json:"checkpoint,omitempty"` // the job's checkpoint directory
	Secrets    string `json:"secrets,omitempty"`    // the directory with the values of the job's secrets (job.Secret.FileName)
	Restore    string `json:"restore,omitempty"`    // what it may go on from; empty: nothing
	Done       Stamp  `json:"done,omitzero"`        // of the file there by which an earlier attempt reported
}

// Umask is the file creation mask that sbatch put into a job's environment; negative: none.
func Umask(env []string) int {
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, "SLURM_UMASK="); ok {
			if n, err := strconv.ParseUint(text, 8, 32); err == nil && n <= 0o777 {
				return int(n)
			}
		}
	}
	return -1
}

// Binding is the CPUs of an attempt on one of its nodes.
type Binding struct {
	Node  string          `json:"node"`
	NUMA  []int           `json:"numa"`
	CPUs  []int           `json:"cpus"`  // of these
	Asked resource.Amount `json:"asked"` // CPUs that it has on the node, in thousandths
}

// CPUs is where processes run on a node; none: anywhere.
func (l *Launch) CPUs(node string) []int {
	for i := range l.Bind {
		if l.Bind[i].Node == node {
			return l.Bind[i].CPUs
		}
	}
	return nil
}

// Hooks are programs that run on each node before the first and after the last
// process of an attempt, as the server's user.
type Hooks struct {
	Prolog  string        `json:"prolog,omitempty"` // absolute; empty: none
	Epilog  string        `json:"epilog,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // of each
}

// Ranks is the directory with the copies of the ranks' output.
func (l *Launch) Ranks() string { return RanksOf(l.Root, l.Ref) }

// RanksOf is the directory with the copies of an attempt's output. It exists once
// a step was started.
func RanksOf(root string, ref engine.Ref) string {
	return filepath.Join(root, "ranks", ref.String())
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

// GangsOf is the directory with the files that say who is in elastic gangs.
func GangsOf(root string) string { return filepath.Join(root, "gangs") }

// GangFile says who is in a gang.
func GangFile(root string, ref engine.Ref) string {
	return filepath.Join(GangsOf(root), ref.String()+".json")
}

// CheckpointsOf is the directory with the checkpoint directories of jobs, by number.
func CheckpointsOf(root string) string { return filepath.Join(root, "checkpoints") }

// SecretsOf is the directory with a directory for each attempt that has secrets.
func SecretsOf(root string) string { return filepath.Join(root, "secrets") }

// MarkVariable is the name of the variable that Mark sets.
const MarkVariable = "COX_NODE"

// Mark is the environment variable that every process of an attempt on a node is started with. It
// names the identity of the root, so the marks of two containers with roots at one path differ.
func (l *Launch) Mark(node string) string {
	return MarkVariable + "=" + filepath.Join(l.Root, l.Drawn, l.Ref.String(), node)
}

// ParseRef reads what Ref.String wrote.
func ParseRef(name string) (engine.Ref, error) {
	var r engine.Ref
	if _, err := fmt.Sscanf(name, "%d.%d", &r.Allocation, &r.Attempt); err != nil || r.String() != name {
		return engine.Ref{}, fmt.Errorf("%q does not name an attempt", name)
	}
	return r, nil
}

// Identity is which process a supervisor is, so that a later process with the same
// number is not taken for it.
type Identity struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot, /proc/PID/stat field 22
	BootID string `json:"boot_id"`
}

// Slot is where a supervisor's process works.
type Slot struct {
	Name     string   `json:"name"`    // never used again under the same root
	Dir      string   `json:"dir"`     // its own directory
	Sockets  string   `json:"sockets"` // where its sockets are: Dir, whose name may be longer than the kernel's (package step/socket)
	Group    string   `json:"group"`   // name of its control group
	Identity Identity `json:"identity"`
}

// SlotOf names a slot below an engine's root.
func SlotOf(root, name string) Slot {
	dir := filepath.Join(SlotsOf(root), name)
	return Slot{Name: name, Dir: dir, Sockets: dir, Group: GroupPrefix(root) + name}
}

// SlotsOf is the directory of all slots of an engine's root.
func SlotsOf(root string) string { return filepath.Join(root, "s") }

// ControlSocket is where the supervisor takes commands.
func (s Slot) ControlSocket() string { return filepath.Join(s.Sockets, "c") }

// StepSocket is where the supervisor serves steps.
func (s Slot) StepSocket() string { return filepath.Join(s.Sockets, "s") }

// Journal is the supervisor's journal.
func (s Slot) Journal() string { return filepath.Join(s.Dir, "journal") }

// Words is what the supervisor wrote to its standard error.
func (s Slot) Words() string { return filepath.Join(s.Dir, "log") }

// Containers is where the supervisor notes containers that have to be removed: a name on each line.
func (s Slot) Containers() string { return filepath.Join(s.Dir, "containers") }

// Remove removes the slot's files.
func (s Slot) Remove() error {
	err := os.RemoveAll(s.Dir)
	if s.Sockets != s.Dir {
		err = errors.Join(err, os.RemoveAll(s.Sockets))
	}
	return err
}

// GroupPrefix begins the names of the control groups of an engine's root. It depends on the path
// and the identity of the root. So the prefixes differ if two containers that share a tree of
// control groups have roots at the same path. A root that an older version made has no identity.
func GroupPrefix(root string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(root))
	if id, err := os.ReadFile(identityFile(root)); err == nil {
		_, _ = h.Write(id)
	}
	return fmt.Sprintf("cox.%08x.", h.Sum32())
}

func identityFile(root string) string { return filepath.Join(root, "identity") }

// ReadIdentity returns the identity of a root; "" if an older version made the root.
func ReadIdentity(root string) (string, error) {
	b, err := os.ReadFile(identityFile(root))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	text := strings.TrimSpace(string(b))
	if err == nil && (text == "" || strings.ContainsAny(text, "/\x00")) {
		err = fmt.Errorf("%s is damaged: an identity is one word", identityFile(root))
	}
	return text, err
}

// DeviceOwner is the identity of a root in locks of devices: the root's own, or, where an older
// version made the root, one that is drawn at the first call. The root has to exist.
func DeviceOwner(root string) (string, error) {
	id, err := ReadIdentity(root)
	if err != nil || id != "" {
		return id, err
	}
	name := filepath.Join(root, "owner")
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		id = rand.Text()
		return id, writeFile(name, []byte(id+"\n"))
	}
	return strings.TrimSpace(string(b)), err
}

// addressed begins the identities of roots whose virtual nodes have addresses by the identity.
// Roots without it have addresses by their path, which running jobs know.
const addressed = "a-"

// AddressSeed is what the addresses of a root's virtual nodes are made from: its identity, or old
// where an older version made the root. It draws the identity of a new root.
func AddressSeed(root, old string) (string, error) {
	if err := DrawIdentity(root); err != nil {
		return "", err
	}
	id, err := ReadIdentity(root)
	if err != nil || !strings.HasPrefix(id, addressed) {
		return old, err
	}
	return id, nil
}

// DrawIdentity gives a new root an identity, and creates the root if necessary. It leaves a root
// that has slots as it is, because the control groups of its attempts have their names already.
func DrawIdentity(root string) error {
	for _, name := range []string{SlotsOf(root), identityFile(root)} {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	return writeFile(identityFile(root), []byte(addressed+rand.Text()+"\n"))
}

// NextEpoch reads, increments and writes the number in a file.
func NextEpoch(name string) (uint64, error) {
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	n, _ := strconv.ParseUint(string(b), 10, 32)
	n++
	return n, writeFile(name, []byte(strconv.FormatUint(n, 10)))
}

// writeFile writes a file whole or not at all: into a new one beside it, which is
// then renamed.
func writeFile(name string, b []byte) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, name)
}

func appendLine(to []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return to, err
	}
	return append(append(to, b...), '\n'), nil
}
