package local_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testServingInContainer: a replica in an image has its ports and secrets in the container, is probed there by
// commands and over its node's network, and is ended by its liveness probe.
func testServingInContainer(j *podmanJobs) { testServingOn(j, j.engine, j.root, false) }

// testServingInOwnNetwork is testServingInContainer where each node has a network of its own.
func testServingInOwnNetwork(j *podmanJobs) {
	t, root := j.t, filepath.Join(j.t.TempDir(), "engine")
	if err := attempt.DrawIdentity(root); err != nil {
		t.Fatal(err)
	}
	n, err := local.OpenNetwork(local.NetworkRequest{Mode: local.NetworkOwn, Naming: local.NamedByRoot, Root: root, Nodes: local.NodeNames(nil, 2), Temporary: true, Log: slog.New(slog.DiscardHandler)})
	if fault.KindOf(err) == fault.Unsupported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	testServingOn(j, newEngine(t, local.Config{
		Root: root, Cox: j.lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: j.lab.Podman}, Naming: local.NamedByRoot, Network: n.Network,
		Nodes: local.VirtualRoom(local.RoomConfig{Naming: local.NamedByRoot, Seed: root, Address: n.Address}, four()[:2]),
	}), root, true)
}

func testServingOn(j *podmanJobs, e *local.Engine, root string, own bool) {
	t := j.t
	const value = "hush-1234"
	l := inImage(t, e, 2, `mkdir -p /tmp/www; echo "$PORT_HTTP ${#TOK}" >/tmp/www/index.html; : >/tmp/well
echo "file $(wc -c <"$COX_SECRETS_DIR/key.pem") env ${#TOK}"
srun -N2 -n2 sh -c 'echo "task $SLURM_PROCID ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem") $PORT"'
: >told; exec httpd -f -p "$PORT" -h /tmp/www`)
	l.Job.Spec.Serve = &job.Serve{
		Ports:     []job.Port{{Name: "http"}},
		Startup:   &job.Probe{Exec: []string{"sh", "-c", `test "$TOK" = ` + value + ` && test -e /etc/image`}, Every: 50 * time.Millisecond, Failures: 1000},
		Readiness: &job.Probe{HTTP: "/", Every: 50 * time.Millisecond, Failures: 1},
		Liveness:  &job.Probe{Exec: []string{"sh", "-c", `test -e /tmp/well && grep -q hush "$COX_SECRETS_DIR/key.pem"`}, Every: 50 * time.Millisecond, Timeout: patience, Failures: 1},
	}
	l.Job.Spec.Secrets = []job.Secret{{Name: "token", Env: "TOK"}, {Name: "key", File: "key.pem"}}
	for _, s := range l.Job.Spec.Secrets {
		l.Secrets = append(l.Secrets, engine.Secret{Secret: s, Value: []byte(value)})
	}
	j.number(l)
	launch(t, e, l)
	at := untilServes(t, e, l.Ref, ready)
	if isLoopback := net.ParseIP(at.List[0].Host).IsLoopback(); isLoopback == own {
		t.Errorf("it serves at %s", at.List[0].Host)
	}
	r, err := http.Get("http://" + net.JoinHostPort(at.List[0].Host, strconv.Itoa(at.List[0].Number)) + "/") //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if want := fmt.Sprintf("%d %d\n", at.List[0].Number, len(value)); err != nil || string(page) != want {
		t.Errorf("it says %q, %v; want %q", page, err, want)
	}
	var said strings.Builder
	code, err := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: []string{"sh", "-c", `echo "beside ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem")"; rm /tmp/well`}, Stdout: &said, Stderr: &said})
	if err != nil || !code.OK() || said.String() != "beside 9 9\n" {
		t.Errorf("%s, %v: %q", code, err, said.String())
	}
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Exited || r.Exit.OK() || !strings.Contains(r.Message, "liveness probe") {
		t.Errorf("%+v", r)
	}
	out := read(t, outputFile(l))
	for _, want := range []string{"file 9 env 9\n", fmt.Sprintf("task 0 9 9 %d\n", at.List[0].Number), fmt.Sprintf("task 1 9 9 %d\n", at.List[0].Number)} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(attempt.SecretsOf(root), l.Ref.String())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its secrets are left: %v", err)
	}
	j.nothingLeft()
}
