package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Bind gives the pod with this UID to a node. A pod of that name that has another UID, or is
// bound, is fault.Conflict.
func (c *Cluster) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	b := &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, UID: uid},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	}
	a := Pods.newCall("bind", http.MethodPost, Pods.name(namespace, pod)+" to node "+node, Pods.objectPath(namespace, pod, "binding"))
	a.body = b
	return c.sendAndDecode(ctx, a, nil)
}

// Log opens what a container printed, from its beginning; with follow it goes on until the
// container ends. It ends with ctx; the caller closes it.
func (c *Cluster) Log(ctx context.Context, namespace, pod, container string, follow bool) (io.ReadCloser, error) {
	q := url.Values{"container": {container}}
	if follow {
		q.Set("follow", "true")
	}
	return c.sendRequest(ctx, call{verb: "get", method: http.MethodGet, what: Pods.name(namespace, pod) + "'s log", path: Pods.objectPath(namespace, pod, "log"), query: q, accept: "*/*"})
}

// Begin is by when the first line was printed of what Log would give, as the kubelet writes it; empty:
// nothing was. A kubelet that begins another file of a container's output has another first line.
func (c *Cluster) Begin(ctx context.Context, namespace, pod, container string) (string, error) {
	q := url.Values{"container": {container}, "timestamps": {"true"}, "limitBytes": {"64"}}
	r, err := c.sendRequest(ctx, call{verb: "get", method: http.MethodGet, what: Pods.name(namespace, pod) + "'s log", path: Pods.objectPath(namespace, pod, "log"), query: q, accept: "*/*"})
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, 64))
	at, _, _ := strings.Cut(string(text), " ")
	return at, err
}

// Command is what Exec runs in a container.
type Command struct {
	Namespace, Pod, Container string
	Args                      []string
	Stdin                     io.Reader // nil: none
	Stdout, Stderr            io.Writer // nil: dropped
	TTY                       bool      // all output goes to Stdout
	Resize                    remotecommand.TerminalSizeQueue
}

// Exec runs a command and returns its exit status once it has ended. It ends with ctx; the
// command itself goes on then.
func (c *Cluster) Exec(ctx context.Context, x Command) (status int, err error) {
	out, errs := x.Stdout, x.Stderr
	if out == nil {
		out = io.Discard
	}
	if errs == nil && !x.TTY {
		errs = io.Discard
	}
	q := url.Values{"container": {x.Container}, "command": x.Args, "stdout": {"true"}}
	q.Set("stdin", strconv.FormatBool(x.Stdin != nil))
	q.Set("stderr", strconv.FormatBool(!x.TTY))
	q.Set("tty", strconv.FormatBool(x.TTY))
	u := c.base.JoinPath(Pods.objectPath(x.Namespace, x.Pod, "exec"))
	u.RawQuery = q.Encode()
	what := "exec " + Pods.name(x.Namespace, x.Pod)
	newer, err := remotecommand.NewWebSocketExecutor(c.rest, http.MethodGet, u.String())
	if err != nil {
		return 0, fault.New(fault.Internal, "%s: %w", what, err)
	}
	older, err := remotecommand.NewSPDYExecutor(c.rest, http.MethodPost, u)
	if err != nil {
		return 0, fault.New(fault.Internal, "%s: %w", what, err)
	}
	both, err := remotecommand.NewFallbackExecutor(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return 0, fault.New(fault.Internal, "%s: %w", what, err)
	}
	err = both.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: x.Stdin, Stdout: out, Stderr: errs, Tty: x.TTY, TerminalSizeQueue: x.Resize})
	var code exec.CodeExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &code):
		return code.Code, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, fault.New(fault.Unavailable, "%s: %w", what, err)
}
