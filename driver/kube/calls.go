package kube

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// looksAtMost bounds how many of the lists are under way that attempts with claims ask for: each
// may be of all claims of a large cluster.
const looksAtMost = 4

// clusterCalls makes the engine's calls of the cluster: it bounds their time and how many are under
// way. It is safe for concurrent use.
type clusterCalls struct {
	k        *cluster.Cluster
	server   string          // value of render.LabelServer on what is ours
	ctx      context.Context //nolint:containedctx // ends with the engine
	patience time.Duration   // for one answer
	lanes    chan struct{}   // calls under way of those that are made for each pod or node
	looks    chan struct{}   // lists under way that attempts with claims ask for

	mu   sync.Mutex
	ways map[string]*cluster.Cluster // to the cluster as somebody else, by the name
}

// newCalls returns the calls of an engine that ends with ctx.
func newCalls(ctx context.Context, c *cluster.Cluster, server string, patience time.Duration) *clusterCalls {
	return &clusterCalls{
		k: c, server: server, ctx: ctx, patience: patience,
		lanes: make(chan struct{}, callsAtMost), looks: make(chan struct{}, looksAtMost), ways: map[string]*cluster.Cluster{},
	}
}

// podName is the name of an attempt's pod.
func (c *clusterCalls) podName(ref engine.Ref, i int) string { return render.PodName(c.server, ref, i) }

// callContext bounds one call of the cluster.
func (c *clusterCalls) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, c.patience)
}

// forEach calls f for 0 to n-1, a few at a time, and returns the first error that is final, or
// else any. f does not call it.
func (c *clusterCalls) forEach(n int, f func(i int) error) error {
	errs := make([]error, n)
	turn := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			c.lanes <- struct{}{}
			errs[i] = f(i)
			<-c.lanes
			<-turn
		})
	}
	wg.Wait()
	var out error // one, and not all: of a thousand pods an API server that is gone says a thousand times the same
	for _, err := range errs {
		if err != nil && classifyError(err) != nil {
			return err
		}
		if out == nil {
			out = err
		}
	}
	return out
}

// clusterAs is the way to the cluster of somebody as whom an attempt's objects are made; empty: our own.
func (c *clusterCalls) clusterAs(user string) (*cluster.Cluster, error) {
	if user == "" {
		return c.k, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if as := c.ways[user]; as != nil {
		return as, nil
	}
	as, err := c.k.As(user)
	if err == nil {
		c.ways[user] = as
	}
	return as, err
}

// execTarget is the pod of a member.
func (c *clusterCalls) execTarget(a *attempt, i int) seat {
	return seat{a.namespace, render.PodName(c.server, a.ref, i)}
}

// inPod runs cox-pod in the pod of a member, and returns its exit code; another than 0 is an
// error too, with what it said of it.
func (c *clusterCalls) inPod(ctx context.Context, at seat, in io.Reader, out io.Writer, args ...string) (int, error) {
	said := beginning{most: fewBytes}
	code, err := c.k.Exec(ctx, cluster.Command{
		Namespace: at.namespace, Pod: at.pod, Container: render.Container,
		Args: append([]string{podagent.BinDir + "/cox-pod"}, args...), Stdin: in, Stdout: out, Stderr: &said,
	})
	if err == nil && code != 0 {
		err = fault.New(fault.Unavailable, "cox-pod %s: exit %d: %s", args[0], code, strings.TrimSpace(said.String()))
	}
	return code, err
}

// letGo takes our finalizer from a pod, and leaves others'.
func (c *clusterCalls) letGo(ctx context.Context, p *corev1.Pod) error {
	patch := map[string]any{"metadata": map[string]any{"uid": p.UID, "$deleteFromPrimitiveList/finalizers": []string{render.Finalizer}}}
	if err := c.k.Patch(ctx, cluster.Pods, p.Namespace, p.Name, "", cluster.Keyed, patch, nil); !isSettledError(err) {
		return err
	}
	return nil
}

// deleteRoot deletes the root of an attempt, if there is one that is ours; the cluster collects
// what belongs to it.
func (c *clusterCalls) deleteRoot(ctx context.Context, namespace string, ref engine.Ref) error {
	var s corev1.Secret
	name := render.Name(c.server, ref)
	err := c.k.Get(ctx, cluster.Secrets, namespace, name, &s)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil
	}
	if err != nil || s.Labels[render.LabelServer] != c.server {
		return err
	}
	if err := c.k.Delete(ctx, cluster.Secrets, s.Namespace, name, cluster.Deletion{UID: s.UID}); !isSettledError(err) {
		return err
	}
	return nil
}

// isNamespaceMissing reports whether something is forbidden because the namespace is not there: nobody has a
// role in it then.
func (c *clusterCalls) isNamespaceMissing(namespace string, err error) bool {
	if fault.KindOf(err) != fault.Permission {
		return false
	}
	ctx, cancel := c.callContext()
	defer cancel()
	err = c.k.Get(ctx, cluster.Namespaces, "", namespace, nil)
	return err != nil && fault.KindOf(err) == fault.NotFound
}

// hasService reports whether an attempt's Service is there.
func (c *clusterCalls) hasService(s *corev1.Service, root types.UID) bool {
	ctx, cancel := c.callContext()
	defer cancel()
	var there corev1.Service
	err := c.k.Get(ctx, cluster.Services, s.Namespace, s.Name, &there)
	return err == nil && isOwner(root, &there)
}

// createObject creates an object, in whose name way is, and reads it back into its place. One of that
// name that is there is read instead, if it is ours; else it is left alone.
func createObject[T any, P interface {
	*T
	metav1.Object
}](c *clusterCalls, way *cluster.Cluster, r cluster.Resource, o P, ours func(P) bool) error {
	ctx, cancel := c.callContext()
	defer cancel()
	namespace, name := o.GetNamespace(), o.GetName()
	var there T
	err := way.Create(ctx, r, namespace, o, false, &there)
	if said := err; err != nil && fault.KindOf(err) == fault.Conflict { // it is there, or something was written at the same moment, as a quota's use
		if err = c.k.Get(ctx, r, namespace, name, &there); fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.Unavailable, "%w", said) // it has just gone, or never was
		}
		if err == nil && !ours(&there) {
			return foreignObjectError(r, namespace, name)
		}
		if err == nil && P(&there).GetDeletionTimestamp() != nil {
			return &never{engine.Unready, fmt.Errorf("%s %s/%s is being deleted by somebody", r, namespace, name)}
		}
	}
	if err != nil {
		return err
	}
	*o = there
	return nil
}

// listEach calls f for every object, when its turn has come. Each part of the list has its own time
// to be answered: all of it may take long.
func listEach[T any](c *clusterCalls, r cluster.Resource, s cluster.Selection, f func(*T) error) error {
	select {
	case c.looks <- struct{}{}:
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	defer func() { <-c.looks }()
	_, err := cluster.List(c.ctx, c.k, r, s, f)
	return err
}
