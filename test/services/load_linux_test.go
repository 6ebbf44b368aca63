package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/internal/exectest"
)

// replicaVariable has a test binary serve instead: its value is what each answer says.
const replicaVariable = "COX_TEST_REPLICA"

func TestMain(m *testing.M) {
	if tag := os.Getenv(replicaVariable); tag != "" {
		serveReplica(tag)
	}
	os.Exit(m.Run())
}

// serveReplica answers with its tag and 1 KB after 20 ms of work, and ends at SIGTERM when what is in
// flight has ended.
func serveReplica(tag string) {
	text := tag + " " + strings.Repeat("x", 1024)
	s := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(20 * time.Millisecond)
		_, _ = io.WriteString(w, text)
	})}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = s.Close() }) // at once: nothing is to be in flight
	fmt.Println(s.ListenAndServe())
	os.Exit(0)
}

// site is a server with its gateway.
type site struct {
	t       testing.TB
	bin     string
	dir     string
	client  *client.Client
	gateway string // host:port
	room    string // of its one node, beside CPUs and memory
}

func newSite(t testing.TB) *site { return newSiteWith(t, "") }

// newSiteWith starts a server with room for more than CPUs and memory, and its gateway.
func newSiteWith(t testing.TB, room string) *site {
	t.Helper()
	s := &site{t: t, bin: t.TempDir(), dir: t.TempDir(), room: room}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", s.bin+"/", "../../cmd/cox", "../../cmd/cox-slurm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.bin+"/replica", own, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if s.client, err = client.New(client.Options{Socket: filepath.Join(s.dir, "cox.sock")}); err != nil {
		t.Fatal(err)
	}
	// A port of this test's own: that of gateway.listen: auto may be another server's.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.gateway = l.Addr().String()
	_ = l.Close()
	s.configure("")
	s.up()
	t.Cleanup(func() {
		s.cox("down", "--cancel")
		s.client.Close()
		if t.Failed() {
			for _, name := range []string{"server.log", "gateway/gateway.log"} {
				text, _ := os.ReadFile(filepath.Join(s.dir, name))
				t.Logf("%s:\n%s", name, text[max(0, len(text)-6000):])
			}
		}
	})
	return s
}

// configure writes the settings; accessLog is a name in the folder of the site, or none.
func (s *site) configure(accessLog string) {
	s.t.Helper()
	if accessLog != "" {
		accessLog = ", access_log: " + filepath.Join(s.dir, accessLog)
	}
	config := fmt.Sprintf("state: {dir: %s}\nlisten: {socket: %s/cox.sock, tcp: none}\ngateway: {listen: %q%s}\nroom: {nodes: 1, cpus: 16, memory: 16G%s}\njobs: {grace: 2s}\n", s.dir, s.dir, s.gateway, accessLog, s.room)
	if err := os.WriteFile(s.dir+"/cox.yaml", []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// gatewayPID is the process of the gateway that has the site's folder.
func (s *site) gatewayPID() int {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "gateway", api.GatewayRecordFile))
	var r api.GatewayRecord
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r.PID
}

// replaceGateway starts the server with other settings of the gateway, and waits until the gateway of
// before has ended.
func (s *site) replaceGateway(accessLog string) {
	s.t.Helper()
	old := s.gatewayPID()
	s.killServer()
	s.configure(accessLog)
	s.up()
	for late := time.Now().Add(60 * time.Second); !isGone(old); <-time.After(10 * time.Millisecond) {
		if time.Now().After(late) {
			s.t.Fatalf("the gateway of before, process %d, has not ended; that of now is %d", old, s.gatewayPID())
		}
	}
	if now := s.gatewayPID(); now == old || isGone(now) {
		s.t.Errorf("the gateway of now is process %d, that of before was %d", now, old)
	}
}

// isGone says whether a process has ended.
func isGone(pid int) bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) }

// up starts the server in the background.
func (s *site) up() { s.cox("up", "-d", "--config", s.dir+"/cox.yaml") }

// cox runs a command, which has to succeed.
func (s *site) cox(args ...string) string {
	s.t.Helper()
	cmd := exectest.Command(s.t, nil, s.bin+"/cox", args...)
	cmd.Env = append(os.Environ(), "COX_SERVER=unix://"+s.dir+"/cox.sock")
	if args[0] == "up" {
		cmd.Env = os.Environ()
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("cox %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// submit submits a revision whose answers begin with a tag.
func (s *site) submit(tag string, replicas int) { s.submitScaled(tag, strconv.Itoa(replicas), "") }

// submitScaled submits a revision with the fields replicas and scale.
func (s *site) submitScaled(tag, replicas, scale string) {
	s.t.Helper()
	text := fmt.Sprintf("kind: service\nname: chat\nreplicas: %s\nports: [http]\ncpus: 1\nmemory: 100M\ndrain: 1s\nenv: {%s: %s}\ncommand: exec %s\nupdate: {surge: 1, unavailable: 0}\n", replicas, replicaVariable, tag, s.bin+"/replica")
	if scale != "" {
		text += "scale: " + scale + "\n"
	}
	name := filepath.Join(s.dir, "chat.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.cox("submit", name)
}

// until waits until a service is as wanted.
func (s *site) until(what string, is func(*api.Service) bool) *api.Service {
	s.t.Helper()
	var last *api.Service
	for late := time.Now().Add(60 * time.Second); time.Now().Before(late); <-time.After(20 * time.Millisecond) {
		if is == nil {
			return nil
		}
		if v, err := s.client.Service(s.t.Context(), "chat"); err == nil {
			if last = v; is(v) {
				return v
			}
		}
	}
	text, _ := json.Marshal(last)
	s.t.Fatalf("not %s: %s", what, text)
	return nil
}

// settled says that a revision has so many replicas, all ready, and that there are no others.
func settled(revision uint32, replicas int) func(*api.Service) bool {
	return func(v *api.Service) bool {
		if v.Revision != revision || v.Replicas.Ready != replicas || len(v.Parts) != replicas {
			return false
		}
		for _, p := range v.Parts {
			if p.Revision != revision || !p.Ready {
				return false
			}
		}
		return true
	}
}

// load asks all the while and counts.
type load struct {
	stop   context.CancelFunc
	wait   sync.WaitGroup
	asked  atomic.Int64
	failed atomic.Int64

	mu    sync.Mutex
	first []string // failures
	seen  map[string]int
}

// clients is how many ask at once. Each asks again 4 ms after its answer.
const clients = 8

func (s *site) startLoad() *load {
	ctx, cancel := context.WithCancel(s.t.Context())
	l := &load{stop: cancel, seen: map[string]int{}}
	for i := range clients {
		method := []string{http.MethodGet, http.MethodPost}[i%2]
		l.wait.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
			defer c.CloseIdleConnections()
			for ctx.Err() == nil {
				l.askOnce(c, method, s.gateway)
				<-time.After(4 * time.Millisecond)
			}
		})
	}
	return l
}

func (l *load) askOnce(c *http.Client, method, address string) {
	req, err := http.NewRequest(method, "http://"+address+"/", bytes.NewReader([]byte("question"))) //nolint:noctx // it has a time limit
	if err != nil {
		panic(err)
	}
	req.Host = "chat.localhost"
	if method == http.MethodGet {
		req.Body, req.ContentLength, req.GetBody = nil, 0, nil
	}
	l.asked.Add(1)
	resp, err := c.Do(req)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			err = errors.Join(err, fmt.Errorf("%s: %s", resp.Status, text))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed.Add(1)
		if len(l.first) < 10 {
			l.first = append(l.first, method+": "+err.Error())
		}
		return
	}
	tag, _, _ := strings.Cut(string(text), " ")
	l.seen[tag]++
}

// check fails the test if requests failed, beyond those that may.
func (l *load) check(t *testing.T, part string, may int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s: %d requests so far, %d failed, by revision %v", part, l.asked.Load(), l.failed.Load(), l.seen)
	if n := l.failed.Load(); n > may {
		t.Errorf("%s: %d requests failed, %d may: %q", part, n, may, l.first)
	}
	l.failed.Store(0)
	l.first = nil
}

// leastTime is how long the parts of the test are gone through again and again: once, about 20 s, or 2
// minutes at least with COX_LONG.
func leastTime() time.Duration {
	if os.Getenv("COX_LONG") != "" {
		return 2 * time.Minute
	}
	return 0
}

// TestNoRequestFails: requests go through the gateway during rolling updates, scale-out and scale-in,
// while the server is killed, while it is away and while a gateway of other settings takes over, and none
// fails. wrk of Debian asks too. When a supervisor is killed, at most
// the requests fail that were in flight at its replica.
//
// Seen to fail with: a gateway that sends requests to replicas that are not ready.
func TestNoRequestFails(t *testing.T) {
	s := newSite(t)
	s.submit("r1", 2)
	s.until("two replicas", settled(1, 2))
	l := s.startLoad()
	defer l.wait.Wait()
	defer l.stop()
	wrk := s.startWrk()
	defer wrk.end()
	revision := uint32(1)
	check := func(part string, lost int64) { // lost: replicas that were killed
		t.Helper()
		l.check(t, part, lost*clients)
		wrk.check(t, part, lost*wrkConnections)
	}
	for round, begun := 0, time.Now(); round == 0 || time.Since(begun) < leastTime(); round++ {
		revision++
		s.submit(fmt.Sprintf("r%d", revision), 2)
		s.until("the update", settled(revision, 2))
		check("rolling update", 0)

		s.cox("service", "scale", "chat", "4")
		s.until("four replicas", settled(revision, 4))
		check("scale-out", 0)

		s.killServer()
		check("the server is killed", 0)
		asked := l.asked.Load()
		for l.asked.Load() < asked+200 {
			<-time.After(10 * time.Millisecond)
		}
		check("the server is away", 0)
		s.up()
		s.until("the server knows the replicas", settled(revision, 4))
		check("the server is back", 0)

		s.replaceGateway(fmt.Sprintf("access.%d", round))
		check("the gateway is replaced", 0)

		revision++
		s.submit(fmt.Sprintf("r%d", revision), 4)
		s.until("half an update", func(v *api.Service) bool { return v.Revision == revision && v.Replicas.Ready >= 4 && len(v.Parts) > 4 })
		s.killServer()
		s.up()
		s.until("the update goes on", settled(revision, 4))
		check("the server is killed during an update", 0)

		s.cox("service", "scale", "chat", "2")
		v := s.until("two replicas", settled(revision, 2))
		check("scale-in", 0)

		s.killSupervisor(v.Parts[0].Job.String())
		s.until("a new replica", func(n *api.Service) bool {
			return settled(revision, 2)(n) && (n.Parts[0].Job != v.Parts[0].Job || n.Parts[0].Address != v.Parts[0].Address)
		})
		check("the supervisor of a replica is killed", 1)
	}
	l.stop()
	l.wait.Wait()
	wrk.end()
	check("the end", 1) // of the last replica that was killed
	if wrk != nil && wrk.asked == 0 {
		t.Error("wrk has not asked")
	}
	for i := uint32(1); i <= revision; i++ {
		if l.seen[fmt.Sprintf("r%d", i)] == 0 {
			t.Errorf("no answer came from revision %d: %v", i, l.seen)
		}
	}
}

// killServer kills the server at once.
func (s *site) killServer() {
	s.t.Helper()
	info, err := s.client.Info(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Kill(info.PID, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	for !isGone(info.PID) {
		<-time.After(time.Millisecond)
	}
}

func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(text, ')')
	return err != nil || i > 0 && len(text) > i+2 && text[i+2] == 'Z'
}

// killSupervisor kills the supervisor of a job: the parent of its task, which is a process with the
// variable of a replica and the job's number.
func (s *site) killSupervisor(job string) {
	s.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !bytes.Contains(env, []byte(replicaVariable+"=")) || !bytes.Contains(env, []byte("\x00SLURM_JOB_ID="+job+"\x00")) {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		parent, err := strconv.Atoi(fields[1])
		if err != nil || parent <= 1 {
			continue
		}
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
		s.t.Logf("job %s: process %s, supervisor %d: %q", job, e.Name(), parent, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}))
		if !bytes.Contains(cmdline, []byte("supervise")) {
			continue // of the task's own
		}
		if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatalf("no supervisor of job %s was found", job)
}
