package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const containerdConf = `version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/lab/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true # a machine without CAP_SYS_RESOURCE cannot lower it
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

const cniConf = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "dataDir": "/run/cni-addresses", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "loopback"}
]}
`

const kubeletConf = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: 10250
readOnlyPort: 0
healthzBindAddress: %[1]s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[2]s/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: %[3]s/kubelet.crt
tlsPrivateKeyFile: %[3]s/kubelet.key
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDomain: cluster.local
clusterDNS: [%[4]s]
resolvConf: ""
nodeStatusUpdateFrequency: 5s
nodeStatusReportFrequency: 5m
nodeLeaseDurationSeconds: 12
volumeStatsAggPeriod: 10s
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
volumePluginDir: /var/lib/kubelet/volume-plugins
`

// writeNode writes the files of a node.
func (l *Lab) writeNode(n *node) error {
	address := nodeAddress(n.index)
	serves, err := l.pki.signKey("system:node:"+n.name, []string{"system:nodes"}, address, n.name)
	if err != nil {
		return err
	}
	write := func(name string, text []byte) error { return os.WriteFile(filepath.Join(n.dir, name), text, 0o600) }
	return errors.Join(
		write("containerd.toml", fmt.Appendf(nil, containerdConf, filepath.Join(n.dir, "cni"))),
		write("cni/10-lab.conflist", fmt.Appendf(nil, cniConf, podNet(n.index))),
		write("kubelet.crt", serves.cert), write("kubelet.key", serves.key),
		write("kubelet.yaml", fmt.Appendf(nil, kubeletConf, address, l.Dir, n.dir, dnsAddress)),
		l.pki.writeKubeconfig(filepath.Join(n.dir, "kubelet.conf"), l.Server(), "system:node:"+n.name, "system:nodes"),
	)
}

// startDNS starts the cluster's DNS. It knows nothing but the cluster.
func (l *Lab) startDNS(ctx context.Context) error {
	text := fmt.Appendf(nil, `.:53 {
	bind %s
	errors
	ready 0.0.0.0:8181
	kubernetes cluster.local in-addr.arpa {
		kubeconfig %s
		ttl 0
	}
}
`, dnsAddress, l.Kubeconfig())
	if err := os.WriteFile(l.labFile("Corefile"), text, 0o600); err != nil {
		return err
	}
	return l.startDaemon(ctx, &daemon{
		name: "dns", words: []string{filepath.Join(l.programs, "coredns"), "-conf", l.labFile("Corefile")},
		up: func(ctx context.Context) bool {
			return probeURL(ctx, nil, "http://"+l.wire.server+":8181/ready") == nil
		},
	})
}
