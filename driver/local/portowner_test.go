package local_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// webBinary is a program that all users may run and that serves as webMain says.
func webBinary(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(passable(t), "web")
	if err := os.WriteFile(name, self, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return name
}

// TestPortOfAnotherUser: whoever listens first on the port of a replica has it, and is not taken for
// the replica. When it has gone the replica is ready.
//
// Seen to fail with: a readiness probe that asks nobody whose socket it is.
func TestPortOfAnotherUser(t *testing.T) {
	e, web := userEngine(t, local.Config{}), webBinary(t)
	l := planFor(t, e, anna, 1, "echo $PORT > port.new; mv port.new port; while [ ! -e go ]; do sleep 0.05; done; exec "+web+" web .")
	l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Readiness: &job.Probe{HTTP: "/health", Every: 50 * time.Millisecond, Failures: 1}}
	launch(t, e, l)
	name := filepath.Join(l.Job.Spec.WorkDir, "port")
	eventually(t, "the job has written its port", func() bool {
		_, err := os.Stat(name)
		return err == nil
	})
	squatter := exec.Command(web, "web", "/nonexistent")
	squatter.Env = []string{"PORT=" + strings.TrimSpace(read(t, name))}
	squatter.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bert.UID, Gid: bert.GID}}
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = squatter.Process.Kill(); _ = squatter.Wait() }()
	want := fmt.Sprintf("(process %d) listens there, which is not of this job", squatter.Process.Pid)
	untilServes(t, e, l.Ref, func(s engine.Endpoints) bool {
		if s.Ready {
			t.Fatal("the replica is said to be ready, and another user listens on its port")
		}
		return strings.Contains(s.Failed, want)
	})
	if err := squatter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = squatter.Wait()                                                                       // it was killed
	if err := os.WriteFile(filepath.Join(l.Job.Spec.WorkDir, "go"), nil, 0o644); err != nil { //nolint:gosec // for another user
		t.Fatal(err)
	}
	untilServes(t, e, l.Ref, ready)
}

// TestPortOfAProcessBelow: a program of the replica that works as another user is one of the replica.
func TestPortOfAProcessBelow(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("setpriv is not there")
	}
	e, web := userEngine(t, local.Config{}), webBinary(t)
	l := plan(t, e, 1, "setpriv --reuid 61002 --regid 61002 --clear-groups "+web+" web /nonexistent & wait")
	l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Readiness: &job.Probe{HTTP: "/health", Every: 50 * time.Millisecond}}
	launch(t, e, l)
	untilServes(t, e, l.Ref, ready)
}

// TestPortsAreFenced: where nodes have networks of their own, the port of a replica takes connections
// of its user and of root, who has the gateway, and of no other user.
//
// Seen to fail with: an engine that has no fence.
func TestPortsAreFenced(t *testing.T) {
	naming, why := local.FindNaming(t.Context(), "")
	if naming != local.NamedByRoot {
		t.Skip("nodes have no networks of their own: " + why)
	}
	root := filepath.Join(passable(t), "engine")
	if err := attempt.DrawIdentity(root); err != nil {
		t.Fatal(err)
	}
	net, err := local.OpenNetwork(local.NetworkRequest{Mode: local.NetworkOwn, Naming: naming, Root: root, Nodes: local.NodeNames(nil, 2), Temporary: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	web := webBinary(t)
	e := newEngine(t, local.Config{
		Root: root, Naming: naming, Network: net.Network, Cox: web,
		Nodes: local.VirtualRoom(local.RoomConfig{Naming: naming, Seed: root, Address: net.Address}, four()[:2]),
	})
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found[0].State != engine.Found {
		t.Skip(found[0].Text)
	}
	l := planFor(t, e, anna, 1, "exec "+web+" web .")
	l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Readiness: &job.Probe{HTTP: "/health", Every: 50 * time.Millisecond}}
	launch(t, e, l)
	at := untilServes(t, e, l.Ref, ready).List[0]
	connect := fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/%s/%d'", at.Host, at.Number)
	refused := func() bool {
		_, err := asUser(t, bert, connect)
		return err != nil
	}
	eventually(t, "another user is refused", refused)
	if out, err := asUser(t, anna, connect); err != nil {
		t.Errorf("the job's own user: %v %s", err, out)
	}
	if _, err := askReplica(engine.Endpoints{List: []engine.Endpoint{at}}); err != nil {
		t.Errorf("root: %v", err)
	}
	if !refused() {
		t.Error("another user is let in")
	}
}
