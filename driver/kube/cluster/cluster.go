// Package cluster is a lean client of a Kubernetes API server: kubeconfig or the service
// account of the pod it runs in, list and watch with resume, discovery. It speaks in the
// types of k8s.io/api and knows nothing of jobs.
//
// Where what is: cluster.go has the way in, and in whose name; call.go how something is asked and
// what an error means, wire.go in which form; object.go reads and writes one object, pod.go what
// pods have beside that (binding, logs, commands); list.go lists and watches many; resources.go names those beside jobs; discover.go says
// what is served.
package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-sched/coxswain/model/fault"
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
	kubectl   string        // the command by which somebody asks the same server
	quiet     time.Duration // in place of the constant; 0: that
	plain     atomic.Bool   // the server takes JSON alone
}

// quiet has client-go not write to the standard error stream what it returns as errors too, as
// the end of every stream that is cut.
var quiet = sync.OnceFunc(func() { runtime.ErrorHandlers = nil })

// Open reads the configuration. The cluster need not answer.
func Open(c Config) (*Cluster, error) {
	quiet()
	loader, kubectl := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{}, &clientcmd.ConfigOverrides{}), "kubectl"
	if c.Kubeconfig != "" {
		if err := checkKubeconfig(c); err != nil {
			return nil, err
		}
		kubectl += " --kubeconfig " + c.Kubeconfig
		if c.Context != "" {
			kubectl += " --context " + c.Context
		}
		loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: c.Context},
		)
	}
	cfg, err := loader.ClientConfig()
	if c.Kubeconfig == "" { // asked of the loader, a pod without a token is none
		cfg, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, unusableConfigError(c, err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, unusableConfigError(c, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, unusableConfigError(c, err)
	}
	out := &Cluster{http: client, rest: cfg, base: base, namespace: c.Namespace, kubectl: kubectl}
	if out.namespace == "" {
		if out.namespace, _, err = loader.Namespace(); err != nil {
			return nil, unusableConfigError(c, err)
		}
	}
	return out, nil
}

// checkKubeconfig refuses a kubeconfig that cannot be read, is none, or has not the context that is
// named, in words of the file.
func checkKubeconfig(c Config) error {
	is := func(remedy, format string, args ...any) error {
		return fault.New(fault.Invalid, "kubeconfig "+c.Kubeconfig+": "+format, args...).Advise("%s", remedy)
	}
	text, err := os.ReadFile(c.Kubeconfig)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return is("name a file of the server's machine: the server reads it", "there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return is(fmt.Sprintf("let user %d, as whom the server runs, read it", os.Getuid()), "the server may not read it")
	case errors.As(err, &at):
		return is("name a kubeconfig", "it cannot be read: %w", at.Err)
	case err != nil:
		return is("name a kubeconfig", "it cannot be read: %w", err)
	}
	file, err := clientcmd.Load(text)
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), ";")
		return is("kubectl --kubeconfig "+c.Kubeconfig+" config view has to show it", "this is no kubeconfig: %s", what)
	}
	all := slices.Sorted(maps.Keys(file.Contexts))
	there := "there are " + strings.Join(all, ", ")
	switch {
	case len(all) == 0:
		return is("name a file that kubectl works with", "it has no context")
	case c.Context != "" && file.Contexts[c.Context] == nil:
		return is(there, "it has no context %.70q", c.Context)
	case c.Context == "" && file.CurrentContext == "":
		return is("--context NAME; "+there, "it does not say which context is its current one")
	case c.Context == "" && file.Contexts[file.CurrentContext] == nil:
		return is("--context NAME; "+there, "its current context is %.70q, which it does not have", file.CurrentContext)
	}
	return nil
}

// unusableConfigError is the error of a kubeconfig, or of a pod's service account, that says what cannot be.
func unusableConfigError(c Config, err error) error {
	if c.Kubeconfig == "" {
		return outsidePodReason(err)
	}
	return fault.New(fault.Invalid, "kubeconfig %s: %w", c.Kubeconfig, err).Advise("kubectl --kubeconfig %s config view shows what it has", c.Kubeconfig)
}

// outsidePodReason says why this process does not reach a cluster by the service account of its pod.
func outsidePodReason(err error) error {
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return fault.New(fault.Invalid, "this server runs in no pod: there is no service account to reach a cluster by").Advise("--kubeconfig FILE in place of inside")
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Invalid, "this server's pod has no token of its service account: %w", err).
			Advise("automountServiceAccountToken: true in the pod's spec, or in the service account where the pod does not say; or --kubeconfig FILE in place of inside")
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Invalid, "the server may not read the token of its pod's service account: %w", err).
			Advise("let user %d, as whom the server runs, read it: fsGroup in the securityContext of the pod", os.Getuid())
	}
	return fault.New(fault.Invalid, "the service account of this server's pod: %w", err).
		Advise("/var/run/secrets/kubernetes.io/serviceaccount of the server's pod needs a token and a ca.crt; or --kubeconfig FILE in place of inside")
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
	return &Cluster{http: client, rest: cfg, base: c.base, namespace: c.namespace, kubectl: c.kubectl}, nil
}

// Namespace is where what has no other is made.
func (c *Cluster) Namespace() string { return c.namespace }
