package lab

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// batchScheduler has a scheduler of gangs built, or takes the one that the environment names, and
// returns its folder. A test that needs one is skipped where it is not asked for.
func (l *Lab) batchScheduler(t testing.TB, name string) string {
	t.Helper()
	if given := "COX_" + strings.ToUpper(name); os.Getenv("COX_BATCH") == "" && os.Getenv(given) == "" {
		t.Skipf("neither COX_BATCH nor %s is set: make kube-batch builds %s and starts it beside Kubernetes", given, name)
	}
	return runScript(t, filepath.Join(scriptsDir(), "batch.sh"), name)
}

// installCRDs has the API server serve the kinds of a folder. The one at a path is in its lists when
// it returns.
func (l *Lab) installCRDs(t testing.TB, dir, path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Try(t.Context(), string(text), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ { // it fails at a kind that has no status yet
		if _, err := l.Try(t.Context(), "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=5m"); err == nil {
			break
		} else if n == 100 {
			t.Fatal(err)
		}
	}
	version, name := filepath.Split(path)
	if err := testcluster.Await(t.Context(), path, func() bool {
		var all struct{ Resources []struct{ Name string } }
		text, err := l.readPath(t.Context(), strings.TrimSuffix(version, "/"))
		return err == nil && json.Unmarshal(text, &all) == nil &&
			slices.ContainsFunc(all.Resources, func(r struct{ Name string }) bool { return r.Name == name })
	}); err != nil {
		t.Fatal(err)
	}
}

// volcanoConf writes the configuration of Volcano's scheduler, with arguments of its plugin
// predicates: as its installer has it, without what makes nodes shared by others.
func (l *Lab) volcanoConf(t testing.TB, arguments string) {
	t.Helper()
	conf := fmt.Sprintf(`actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
    arguments: {%s}
  - name: proportion
  - name: nodeorder
`, arguments)
	if err := os.WriteFile(l.labFile("volcano.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
}

// VolcanoGives has Volcano's scheduler give claims devices, which it does not as it is installed. It
// is started anew.
func (l *Lab) VolcanoGives(t testing.TB) {
	t.Helper()
	l.volcanoConf(t, "predicate.DynamicResourceAllocationEnable: true")
	l.Restart(t, "volcano-scheduler")
}

// Volcano adds Volcano's scheduler and controller, whose queue "default" is open when it
// returns. The usual scheduler stays beside it. It gives claims no devices.
func (l *Lab) Volcano(t testing.TB) {
	t.Helper()
	dir := l.batchScheduler(t, "volcano")
	l.installCRDs(t, dir, "/apis/scheduling.volcano.sh/v1beta1/queues")
	l.volcanoConf(t, "")
	l.Kubectl(t, "create", "namespace", "volcano-system")
	common := []string{"--kubeconfig=" + l.Kubeconfig(), "--leader-elect=false", "--enable-healthz=true", "--kube-api-qps=2000", "--kube-api-burst=4000"}
	for _, d := range []*daemon{
		{name: "volcano-controller", words: append([]string{filepath.Join(dir, "controller"), "--healthz-address=0.0.0.0:11252"}, common...)},
		{name: "volcano-scheduler", words: append([]string{
			filepath.Join(dir, "scheduler"), "--healthz-address=0.0.0.0:11251", "--scheduler-conf=" + l.labFile("volcano.conf"), "--cache-dumper=false", "--schedule-period=200ms",
		}, common...)},
	} {
		if err := l.startDaemon(t.Context(), d); err != nil {
			t.Fatalf("%v\n%s", err, l.Logs())
		}
	}
	l.awaitObject(t, "Volcano's queue", "/apis/scheduling.volcano.sh/v1beta1/queues/default", func(o status) bool { return o.Status.State == "Open" })
}

// status is what is read of an object that is waited for.
type status struct {
	Status struct {
		State      string
		Conditions []struct{ Type, Status string }
	}
}

// awaitObject waits until an object is as it should be.
func (l *Lab) awaitObject(t testing.TB, what, path string, ok func(status) bool) {
	t.Helper()
	if err := testcluster.Await(t.Context(), what, func() bool {
		var o status
		text, err := l.readPath(t.Context(), path)
		return err == nil && json.Unmarshal(text, &o) == nil && ok(o)
	}); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
}

// kueueConfig has the frameworks that the tests need; certificates are those of the lab.
const kueueConfig = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "0.0.0.0:11253"}
metrics: {bindAddress: "127.0.0.1:11254"}
webhook: {port: 9443, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
clientConnection: {qps: 2000, burst: 4000}
integrations: {frameworks: ["batch/job", "pod"]}
featureGates: {VisibilityOnDemand: false}
`

// Kueue adds Kueue, which manages pods, without any queue.
func (l *Lab) Kueue(t testing.TB) {
	t.Helper()
	dir := l.batchScheduler(t, "kueue")
	l.installCRDs(t, dir, "/apis/kueue.x-k8s.io/v1beta2/workloads")
	l.Kubectl(t, "create", "namespace", "kueue-system")
	etc, err := l.kueueFiles()
	if err != nil {
		t.Fatal(err)
	}
	// It looks for certificates below /etc, which it is given one of its own for.
	d := &daemon{name: "kueue", words: []string{
		"unshare", "--mount", "--propagation=private", "sh", "-ec", `mount --bind "$1" /etc; shift; exec "$@"`, "sh", etc,
		filepath.Join(dir, "kueue"), "--kubeconfig=" + l.Kubeconfig(), "--config=" + l.labFile("kueue.yaml"),
	}, up: func(ctx context.Context) bool {
		return probeURL(ctx, nil, "http://"+l.wire.server+":11253/readyz") == nil
	}}
	if err := l.startDaemon(t.Context(), d); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	hooks, err := os.ReadFile(filepath.Join(dir, "webhooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	service := regexp.MustCompile(`(?m)^    service:\n      name: webhook-service\n      namespace: system\n      path: (\S+)$`)
	ca := base64.StdEncoding.EncodeToString(l.pki.pem)
	l.Apply(t, service.ReplaceAllString(string(hooks), "    url: https://127.0.0.1:9443$1\n    caBundle: "+ca))
}

// kueueFiles writes Kueue's configuration and certificates, and returns its /etc.
func (l *Lab) kueueFiles() (string, error) {
	pair, err := l.pki.signKey("kueue", nil, "127.0.0.1")
	if err != nil {
		return "", err
	}
	etc, hook := l.labFile("kueue-etc"), l.labFile("kueue-hook")
	metrics := filepath.Join(etc, "kueue", "metrics", "certs")
	all := []error{os.WriteFile(l.labFile("kueue.yaml"), fmt.Appendf(nil, kueueConfig, hook), 0o600)}
	for _, dir := range []string{metrics, hook} {
		all = append(all, os.MkdirAll(dir, 0o755),
			os.WriteFile(filepath.Join(dir, "tls.crt"), pair.cert, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), pair.key, 0o600))
	}
	return etc, errors.Join(all...)
}
