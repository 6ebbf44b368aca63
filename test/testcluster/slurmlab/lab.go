// Package lab starts whole clusters of real Slurm for tests, and breaks them.
//
// The model. A Lab is one cluster in a folder of its own: slurmctld, some slurmd, a database
// with slurmdbd, slurmrestd, a login over SSH when asked for. It is this machine's Slurm
// (22.05 of Debian 12), or a newer one (24.11) from a root directory that
// scripts/slurm/trixie.sh unpacked. Nodes have fake GPUs (devices that are /dev/null) and
// lie in a tree of two leaves. Jobs run for real, as root.
//
// Guarantees: names of nodes, ports, sockets and control groups are the lab's own, so labs
// run beside each other and beside anything else. All processes of a lab, jobs included, are
// in a namespace that ends with the test, even if that, or the go test above it, is killed:
// nothing is left running, nothing mounted outside. What such a test leaves in the folder for
// temporary files the next lab removes.
//
// It needs root and Debian, and is for tests alone: without COX_SLURM=1 they are skipped,
// and where Slurm cannot be had too, unless CI is set.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Config says what a cluster is to be.
type Config struct {
	Modern bool   // 24.11, else this machine's 22.05
	Nodes  int    // 0: 4; at most 16
	Blocks bool   // blocks of two nodes instead of a tree; Modern alone knows them
	More   string // lines of slurm.conf beyond the usual ones
	Apart  bool   // each node has a disk of its own at Disk("own")
	State  int64  // bytes of a file system of StateSaveLocation's own, for Fill; 0: it has none
}

// Lab is a cluster that runs.
type Lab struct {
	Dir   string   // its folder
	Conf  string   // slurm.conf
	Nodes []string // names
	Env   []string // what a command needs: SLURM_CONF
	// Inside are the words that a command has to stand behind to run where this Slurm's
	// commands are; none: here. Files in the folder for temporary files have the same names
	// there.
	Inside []string

	modern bool
	apart  bool
	ports  ports
	held   *os.File // that nobody else has the ports
	hold   *holder
	slurm  id // who slurmctld is
	mysql  id

	sshMu   sync.Mutex // held while the sshd is started; before mu
	mu      sync.Mutex
	daemons map[string]*daemon
}

// folders begins the names of labs' folders.
const folders = "cox-lab-"

// labSuffix is what a lab's nodes and folder have in their names.
func labSuffix(dir string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Base(dir), folders))
}

// Start starts a cluster, which ends with the test. A test that cannot have one is skipped.
func Start(t testing.TB, c Config) *Lab {
	t.Helper()
	if os.Getenv("COX_SLURM") == "" {
		t.Skip("COX_SLURM is not set: make slurm starts clusters of real Slurm")
	}
	testcluster.EndWithGo()
	root := installSlurm(t, c.Modern)
	dir := testcluster.Folder(t, folders, func(dir string) error {
		for i := range 16 {
			removeGroups(fmt.Sprintf("c%sn%d", labSuffix(dir), i+1))
		}
		return nil
	})
	l := &Lab{Dir: dir, Conf: filepath.Join(dir, "slurm.conf"), modern: c.Modern, apart: c.Apart, daemons: map[string]*daemon{}}
	l.Env = []string{"SLURM_CONF=" + l.Conf}
	t.Cleanup(func() { l.endLab(t) })
	if err := l.startAll(t.Context(), root, c); err != nil {
		t.Fatalf("a cluster of real Slurm does not start: %v\n%s", err, l.lastLogLines())
	}
	return l
}

// startAll starts everything.
func (l *Lab) startAll(ctx context.Context, root string, c Config) error {
	var err error
	if l.ports, l.held, err = freePorts(); err != nil {
		return err
	}
	prefix := labSuffix(l.Dir)
	for i := range max(c.Nodes, 4*boolToInt(c.Nodes == 0)) {
		l.Nodes = append(l.Nodes, fmt.Sprintf("c%sn%d", prefix, i+1))
	}
	if err := l.writeFolder(root, c); err != nil {
		return err
	}
	if l.hold, err = startHolder(l.Dir, root); err != nil {
		return err
	}
	l.Inside = l.hold.insideCommand()
	if c.State > 0 {
		if err := l.ownState(ctx, c.State); err != nil {
			return err
		}
	}
	first, last := l.daemonOrder()
	for _, d := range first {
		if err := l.startDaemon(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range last { // they wait for nobody but the controller
		if err := l.startDaemon(ctx, d); err != nil {
			return err
		}
	}
	return testcluster.Await(ctx, "the nodes", func() bool {
		out, err := l.Try(ctx, "sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
		idle := strings.Fields(out) // once for each partition
		slices.Sort(idle)
		return err == nil && len(slices.Compact(idle)) == len(l.Nodes)
	})
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// installSlurm has Slurm there, and returns the root directory of the newer one.
func installSlurm(t testing.TB, modern bool) (root string) {
	t.Helper()
	names := []string{"packages.sh"}
	if modern {
		names = append(names, "trixie.sh")
	}
	for _, name := range names {
		c := exec.Command(checkout.Path("scripts", "slurm", name))
		var said strings.Builder
		c.Stderr = &said
		out, err := c.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 3 && os.Getenv("CI") == "" {
			t.Skip(said.String())
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said.String())
		}
		root = strings.TrimSpace(string(out))
	}
	return root
}

// endLab ends everything.
func (l *Lab) endLab(t testing.TB) {
	if t.Failed() {
		t.Logf("the cluster's logs:\n%s", l.lastLogLines())
	}
	if l.hold != nil {
		l.hold.endAll()
	}
	for _, d := range l.daemons {
		d.awaitExit()
	}
	for _, n := range l.Nodes {
		removeGroups(n)
	}
	if l.held != nil {
		_ = l.held.Close()
	}
	var err error
	for range 50 { // what was killed may still be writing
		if err = os.RemoveAll(l.Dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the cluster's folder: %v", err)
}

// Port is one that nobody else has, for a job to listen on: 0 to 9.
func (l *Lab) Port(i int) int { return l.ports.portOf(jobPort + i) }

// Disk is the directory that a node sees at Disk("own"), where nodes are Apart. No other node
// does, nor does this machine.
func (l *Lab) Disk(node string) string { return filepath.Join(l.Dir, "disk", node) }

// Version is that of its Slurm: "22.05" or "24.11".
func (l *Lab) Version() string {
	if l.modern {
		return "24.11"
	}
	return "22.05"
}

// Command reaches the cluster by its commands on this machine.
func (l *Lab) Command() *command.Site {
	return command.New(&command.Here{Env: l.Env, Before: l.Inside})
}

// Try runs one of Slurm's commands and returns what it printed.
func (l *Lab) Try(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := (&command.Here{Env: l.Env, Before: l.Inside}).Run(ctx, command.Call{Name: name, Args: args})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("%s %q: exit %d: %s", name, args, r.Code, r.Stderr)
	}
	return string(r.Stdout), err
}

// Run is Try, whose failure is the test's.
func (l *Lab) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := l.Try(t.Context(), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// lastLogLines are the last lines of all logs.
func (l *Lab) lastLogLines() string {
	var b strings.Builder
	found, _ := filepath.Glob(filepath.Join(l.Dir, "log", "*"))
	for _, name := range found {
		text, _ := os.ReadFile(name)
		log, err := os.Stat(strings.TrimSuffix(name, ".out") + ".log")
		if len(text) == 0 || strings.HasSuffix(name, ".out") && err == nil && log.Size() > 0 { // the same is in its log
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s:\n", filepath.Base(name))
		for _, line := range lines[max(0, len(lines)-8):] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}
