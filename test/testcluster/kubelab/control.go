package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeControl writes the files of the control plane.
func (l *Lab) writeControl() error {
	api, err := l.pki.signKey("kube-apiserver", nil, l.wire.server, apiAddress, "127.0.0.1", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	reach, err := l.pki.signKey("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return err
	}
	private, public, err := tokenKeys()
	if err != nil {
		return err
	}
	scheduler := fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}
`, l.labFile("scheduler.conf")) // the usual 50 a second would bound it
	for name, text := range map[string][]byte{
		"ca.crt": l.pki.pem, "api.crt": api.cert, "api.key": api.key, "reach.crt": reach.cert, "reach.key": reach.key,
		"tokens.key": private, "tokens.pub": public, "scheduler.yaml": scheduler,
	} {
		if err := os.WriteFile(l.labFile(name), text, 0o600); err != nil {
			return err
		}
	}
	if K3s() != "" {
		if err := l.writeK3s(); err != nil {
			return err
		}
	}
	return errors.Join(
		l.pki.writeKubeconfig(l.labFile("admin.conf"), l.Server(), "admin", "system:masters"),
		l.pki.writeKubeconfig(l.labFile("controller-manager.conf"), l.Server(), "system:kube-controller-manager"),
		l.pki.writeKubeconfig(l.labFile("scheduler.conf"), l.Server(), "system:kube-scheduler"),
	)
}

func (l *Lab) labFile(name string) string { return filepath.Join(l.Dir, name) }

// controlPlane are the daemons of the control plane, in the order in which they begin.
func (l *Lab) controlPlane() []*daemon {
	if K3s() != "" {
		return l.k3sControl()
	}
	kube := filepath.Join(l.programs, "kube")
	all := append(l.etcdDaemons(),
		&daemon{name: "apiserver", words: append([]string{kube, "apiserver"}, l.apiserverArgs()...), up: l.isReady},
		&daemon{name: "controller-manager", words: append([]string{kube, "controller-manager"}, l.managerArgs()...), up: healthCheck(l.wire.server + ":10257")},
	)
	if !l.config.NoScheduler {
		all = append(all, &daemon{
			name: "scheduler",
			words: append([]string{
				kube, "scheduler", "--config=" + l.labFile("scheduler.yaml"), "--authentication-kubeconfig=" + l.labFile("scheduler.conf"),
				"--authorization-kubeconfig=" + l.labFile("scheduler.conf"),
			}, l.featureGateArg()...),
			up: healthCheck(l.wire.server + ":10259"),
		})
	}
	return all
}

func (l *Lab) apiserverArgs() []string {
	args := append([]string{
		"--etcd-servers=" + l.etcdServers(), "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address=" + apiAddress, "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + l.labFile("api.crt"), "--tls-private-key-file=" + l.labFile("api.key"), "--client-ca-file=" + l.labFile("ca.crt"),
		"--service-account-key-file=" + l.labFile("tokens.pub"), "--service-account-signing-key-file=" + l.labFile("tokens.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=" + services,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--kubelet-client-certificate=" + l.labFile("reach.crt"), "--kubelet-client-key=" + l.labFile("reach.key"), "--kubelet-preferred-address-types=InternalIP",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}, l.featureGateArg()...)
	return slices.Concat(args, l.runtimeConfigArg(), l.config.APIServer)
}

// runtimeConfigArg is the argument that has the apiserver serve more, if there is one.
func (l *Lab) runtimeConfigArg() []string {
	if len(l.config.Runtime) == 0 {
		return nil
	}
	var served []string
	for _, r := range l.config.Runtime {
		served = append(served, gateSetting(r))
	}
	return []string{"--runtime-config=" + strings.Join(served, ",")}
}

// nodeSilence is after which a node whose kubelet says nothing is not ready.
func (l *Lab) nodeSilence() time.Duration { return cmp.Or(l.config.Silent, 24*time.Hour) }

func (l *Lab) managerArgs() []string {
	conf := l.labFile("controller-manager.conf")
	return append([]string{
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf, "--leader-elect=false",
		"--use-service-account-credentials=true", // without them much is forbidden to it, and taints of fresh nodes stay
		"--service-account-private-key-file=" + l.labFile("tokens.key"), "--root-ca-file=" + l.labFile("ca.crt"),
		"--kube-api-qps=2000", "--kube-api-burst=4000", "--node-monitor-grace-period=" + l.nodeSilence().String(),
	}, l.featureGateArg()...)
}

// featureGateArg is the argument that every part takes, if there is one.
func (l *Lab) featureGateArg() []string {
	if len(l.config.Gates) == 0 {
		return nil
	}
	var all []string
	for _, g := range l.config.Gates {
		all = append(all, gateSetting(g))
	}
	return []string{"--feature-gates=" + strings.Join(all, ",")}
}

// gateSetting says of a name that it is on, unless it says itself what it is.
func gateSetting(name string) string {
	if strings.Contains(name, "=") {
		return name
	}
	return name + "=true"
}

// isReady reports whether the apiserver answers.
func (l *Lab) isReady(ctx context.Context) bool {
	return probeURL(ctx, l.admin, l.Server()+"/readyz") == nil
}

// getPath asks the apiserver for something, as the user who may do everything.
func (l *Lab) getPath(ctx context.Context, path string) error {
	_, err := l.readPath(ctx, path)
	return err
}

func (l *Lab) readPath(ctx context.Context, path string) ([]byte, error) {
	return requestURL(ctx, l.admin, http.MethodGet, l.Server()+path, nil)
}

// healthCheck asks a part whether it is well. Its certificate is its own making.
func healthCheck(at string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return probeURL(ctx, &tls.Config{InsecureSkipVerify: true}, "https://"+at+"/healthz") == nil //nolint:gosec // a part that was just started
	}
}

// probeURL wants an answer that is no error, within two seconds.
func probeURL(ctx context.Context, config *tls.Config, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := requestURL(ctx, config, http.MethodGet, url, nil)
	return err
}

// requestURL wants an answer that is no error, within twenty seconds. It keeps no connection, so
// that none of a part that was killed is in its way.
func requestURL(ctx context.Context, config *tls.Config, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	way := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := (&http.Client{Transport: way}).Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %.1000s", url, r.Status, text)
	}
	return text, err
}
