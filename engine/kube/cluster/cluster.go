// Package cluster is a lean client of a Kubernetes API server: kubeconfig or the service
// account of the pod it runs in, list and watch with resume, discovery. It speaks in the
// types of k8s.io/api and knows nothing of jobs.
package cluster

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-sched/coxswain/fault"
)

// Config says which cluster, and as whom.
type Config struct {
	Kubeconfig string // a file; empty: the service account of the pod that this runs in
	Context    string // of the file; empty: its current one
	Namespace  string // empty: that of the context, or of the service account
}

// Cluster is the way to one API server. It is safe for concurrent use.
type Cluster struct {
	http      *http.Client
	rest      *rest.Config
	base      *url.URL
	namespace string
	quiet     time.Duration // in place of the constant; 0: that
	plain     atomic.Bool   // the server takes JSON alone
}

// quiet has client-go not write to the standard error stream what it returns as errors too, as
// the end of every stream that is cut.
var quiet = sync.OnceFunc(func() { runtime.ErrorHandlers = nil })

// Open reads the configuration. The cluster need not answer.
func Open(c Config) (*Cluster, error) {
	quiet()
	var loader clientcmd.ClientConfig
	if c.Kubeconfig != "" {
		loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: c.Context},
		)
	} else {
		loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{}, &clientcmd.ConfigOverrides{})
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fault.New(fault.Invalid, "kubeconfig %s: %w", c.Kubeconfig, err).Advise("kubectl --kubeconfig %s config get-contexts shows what it has", c.Kubeconfig)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fault.New(fault.Invalid, "kubeconfig %s: %w", c.Kubeconfig, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	out := &Cluster{http: client, rest: cfg, base: base, namespace: c.Namespace}
	if out.namespace == "" {
		if out.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
		}
	}
	return out, nil
}

// As is the way to the same API server as another user or service account, by its name there: all
// is done in that one's name. This account needs the right to impersonate it.
func (c *Cluster) As(user string) (*Cluster, error) {
	cfg := rest.CopyConfig(c.rest)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fault.New(fault.Invalid, "as %s: %w", user, err)
	}
	return &Cluster{http: client, rest: cfg, base: c.base, namespace: c.namespace}, nil
}

// Namespace is where what has no other is made.
func (c *Cluster) Namespace() string { return c.namespace }
