package preflight

import (
	"context"
	"errors"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
)

// answersWithin is how long a pod may take to answer.
const answersWithin = 2 * time.Second

// dnsPort is the port of the cluster's name service.
const dnsPort = "53"

// checkPodAddresses is whether the addresses of pods answer from here: a gateway beside this server
// needs that for services. A pod of the name service is asked.
func (l *scan) checkPodAddresses(ctx context.Context) error {
	stop := errors.New("found")
	address := ""
	_, err := cluster.List(ctx, l.cluster, cluster.Pods, cluster.Selection{Labels: "k8s-app=kube-dns"}, func(p *corev1.Pod) error {
		if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" && !p.Spec.HostNetwork {
			address = p.Status.PodIP
			return stop
		}
		return nil
	})
	if address == "" {
		if ctx.Err() == nil && err == nil {
			l.addFinding("pod addresses", engine.Found, "", "whether they answer from this server is not known: no pod of the name service runs; services need it")
		}
		return nil //nolint:nilerr // what may not be looked at says nothing
	}
	d := net.Dialer{Timeout: answersWithin}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, dnsPort))
	switch {
	case err == nil:
		_ = c.Close()
		fallthrough
	case errors.Is(err, unix.ECONNREFUSED):
		l.addFinding("pod addresses", engine.Found, "", "they answer from this server (%s): a gateway here reaches services", address)
	default:
		l.addFinding("pod addresses", engine.Warning, "run a gateway in the cluster: cox gateway manifest --server https://HOST --ca FILE | kubectl apply -f -; or route the pods' network to this machine",
			"they do not answer from this server (%v): a gateway here cannot reach services of this pool", err)
	}
	return nil
}
