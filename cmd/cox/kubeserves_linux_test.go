package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// webManifest is a Deployment that answers from its first moment, is ready when its file says so, and a Service of it.
const webManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: ` + lab.Base + `
        command: [sh, -c]
        args: ["mkdir /tmp/www && echo $HOSTNAME >/tmp/www/name && exec httpd -f -p 8080 -h /tmp/www"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 1, failureThreshold: 1}
        resources: {requests: {cpu: 100m}}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`

// kubeServes: a Deployment of a manifest is behind the gateway when its own readiness probe passes and no sooner, though
// its pod answers before, and leaves when it fails again.
//
// Seen to fail with a readiness probe of /name, which passes at once.
func kubeServes(t *testing.T, s *slurmSite, l *lab.Lab) {
	t.Helper()
	file := filepath.Join(s.dir, "web.yaml")
	if err := os.WriteFile(file, []byte(webManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok(t, "service web, revision 1", "submit", "--pool", "k8s-a", file)
	address := s.gatewayWithin(t, l)

	l.Kubectl(t, "wait", "--namespace=cox", "--for=jsonpath={.status.containerStatuses[0].started}=true", "--timeout=5m", "pod", "--selector=app=web")
	pod := l.Kubectl(t, "get", "pods", "--namespace=cox", "--selector=app=web", "--output=name")
	at := l.Kubectl(t, "get", "pods", "--namespace=cox", "--selector=app=web", "--output=jsonpath={.items[0].status.podIP}")
	direct := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, to string) (net.Conn, error) { return l.Dial(ctx, to) }}}
	defer direct.CloseIdleConnections()
	if body := untilAnswers(t, direct, "http://"+at+":8080", http.StatusOK); !strings.HasPrefix(body, "web-") {
		t.Errorf("the pod says that it is %q", body)
	}
	s.eventually(t, "RUNNING", "show", "web.0") // the server knows of its pod
	if code, body := askService(t, http.DefaultClient, address); code != http.StatusServiceUnavailable {
		t.Errorf("before its probe passes the gateway answers %d: %s", code, body)
	}
	l.Kubectl(t, "exec", "--namespace=cox", pod, "--", "touch", "/tmp/www/ready")
	s.ok(t, "", "service", "rollout", "status", "web")
	if body := untilAnswers(t, http.DefaultClient, address, http.StatusOK); !strings.HasPrefix(body, "web-") {
		t.Errorf("the pod says that it is %q", body)
	}
	l.Kubectl(t, "exec", "--namespace=cox", pod, "--", "rm", "/tmp/www/ready")
	untilAnswers(t, http.DefaultClient, address, http.StatusServiceUnavailable)
	s.ok(t, "", "service", "stop", "web")
}

// gatewayWithin starts a gateway where the addresses of pods are known, and returns its own.
func (s *slurmSite) gatewayWithin(t *testing.T, l *lab.Lab) (address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cox := filepath.Join(t.TempDir(), "cox")
	if err := os.Symlink(self, cox); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(l.Server())
	if err != nil {
		t.Fatal(err)
	}
	c := l.Within(t.Context(), cox, "gateway", "--server", s.server, "--listen", server.Hostname()+":0", "--hold", "100ms")
	said, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if word := strings.Fields(lines.Text()); len(word) > 1 && word[0] == "gateway" {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return word[1]
		}
	}
	t.Fatal("no gateway has begun")
	return ""
}

// askService asks the service web of a gateway for its name.
func askService(t *testing.T, by *http.Client, address string) (code int, body string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/name", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "web.localhost"
	a, err := by.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// untilAnswers waits until a gateway answers in a way, of which nothing tells.
func untilAnswers(t *testing.T, by *http.Client, address string, want int) (body string) {
	t.Helper()
	code := 0
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if code, body = askService(t, by, address); code == want {
			return body
		}
	}
	t.Fatalf("the gateway never answers %d, but %d: %s", want, code, body)
	return ""
}
