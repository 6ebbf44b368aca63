package lab

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// K3s is the binary of K3s that COX_K3S names; empty: there is none. With it a lab's control
// plane and kubelets are K3s' own: "k3s server", which is apiserver, controller-manager and
// scheduler in one process, whichever of them is killed, on the lab's etcd, and one "k3s agent"
// for each node, which is its kubelet. Containerd, the pods' network and the cluster's names
// are the lab's as ever.
func K3s() string { return os.Getenv("COX_K3S") }

// joinToken lets agents join. The lab's network is nobody else's.
const joinToken = "lab"

// controlParts are the names by which tests know what one process is in K3s.
var controlParts = []string{"apiserver", "controller-manager", "scheduler"}

// k3sControl are the daemons of K3s' control plane, in the order in which they begin.
func (l *Lab) k3sControl() []*daemon {
	words := slices.Concat([]string{
		K3s(), "server", "--disable-agent", "--data-dir=" + l.labFile("k3s"), "--write-kubeconfig=" + l.labFile("k3s.yaml"), "--token=" + joinToken,
		"--datastore-endpoint=http://" + etcdAddress,
		"--node-ip=" + l.wire.server, "--advertise-address=" + l.wire.server, "--tls-san=" + l.wire.server, "--https-listen-port=443",
		"--service-cidr=" + services, "--cluster-cidr=" + allPods, "--cluster-dns=" + dnsAddress, "--cluster-domain=cluster.local",
		"--flannel-backend=none", "--disable-network-policy", "--disable-kube-proxy", "--egress-selector-mode=disabled",
		"--disable-cloud-controller", "--disable-helm-controller", "--disable=coredns,servicelb,traefik,local-storage,metrics-server",
		"--kube-apiserver-arg=max-requests-inflight=2000", "--kube-apiserver-arg=max-mutating-requests-inflight=1000",
		"--kube-controller-manager-arg=kube-api-qps=2000", "--kube-controller-manager-arg=kube-api-burst=4000",
		"--kube-controller-manager-arg=node-monitor-grace-period=" + l.nodeSilence().String(),
	}, k3sArgs("--kube-apiserver-arg=", slices.Concat(l.featureGateArg(), l.runtimeConfigArg(), l.config.APIServer)),
		k3sArgs("--kube-controller-manager-arg=", l.featureGateArg()))
	if l.config.NoScheduler {
		words = append(words, "--disable-scheduler")
	} else {
		words = append(words, k3sArgs("--kube-scheduler-arg=", l.featureGateArg())...)
	}
	return []*daemon{l.etcdDaemons()[0], {name: controlParts[0], words: words, up: l.isReady}}
}

// k3sArgs are arguments of a part, as K3s takes them.
func k3sArgs(flag string, args []string) (out []string) {
	for _, a := range args {
		out = append(out, flag+a[len("--"):])
	}
	return out
}

// k3sAgent are the words that begin a node's kubelet. All nodes have one network, so what
// agents listen to has ports of its own for each.
func (l *Lab) k3sAgent(n *node) []string {
	words := []string{
		K3s(), "agent", "--server=https://" + l.wire.server + ":443", "--token=" + joinToken, "--data-dir=" + filepath.Join(n.dir, "k3s"),
		"--node-name=" + n.name, "--node-ip=" + nodeAddress(n.index), "--container-runtime-endpoint=/run/containerd/containerd.sock",
		fmt.Sprintf("--lb-server-port=%d", 7000+2*n.index),
		"--kubelet-arg=config=" + filepath.Join(n.dir, "kubelet.yaml"), "--kubelet-arg=address=" + nodeAddress(n.index),
		"--kubelet-arg=healthz-bind-address=" + nodeAddress(n.index),
	}
	return append(words, k3sArgs("--kubelet-arg=", l.featureGateArg())...)
}

// writeK3s has K3s take the lab's authority for its own, as it takes those that are there when
// it begins for the first time.
func (l *Lab) writeK3s() error {
	tls := filepath.Join(l.labFile("k3s"), "server", "tls")
	if err := os.MkdirAll(tls, 0o700); err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(l.pki.key)
	if err != nil {
		return err
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	for _, name := range []string{"server-ca", "client-ca", "request-header-ca"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(tls, name+".crt"), l.pki.pem, 0o600), os.WriteFile(filepath.Join(tls, name+".key"), key, 0o600))
	}
	return err
}
