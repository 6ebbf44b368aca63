package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Resource is a kind of object as the API's addresses name it.
type Resource struct {
	Group   string // empty: the core
	Version string
	Name    string // in the plural, as "pods"
	Global  bool   // it is in no namespace
}

// Resources that every cluster has.
var (
	Pods       = Resource{Version: "v1", Name: "pods"}
	Nodes      = Resource{Version: "v1", Name: "nodes", Global: true}
	Secrets    = Resource{Version: "v1", Name: "secrets"}
	Services   = Resource{Version: "v1", Name: "services"}
	Namespaces = Resource{Version: "v1", Name: "namespaces", Global: true}
	Events     = Resource{Version: "v1", Name: "events"}
)

// String is "pods" or "podgroups.scheduling.k8s.io".
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// objectPath is the address of all objects of a resource, or of one, or of a part of it.
func (r Resource) objectPath(namespace string, more ...string) string {
	root := "/api/" + r.Version
	if r.Group != "" {
		root = "/apis/" + r.Group + "/" + r.Version
	}
	if !r.Global && namespace != "" {
		root += "/namespaces/" + url.PathEscape(namespace)
	}
	root += "/" + r.Name
	for _, m := range more {
		root += "/" + url.PathEscape(m)
	}
	return root
}

// Answer is an error that the API server gave. It is wrapped in a fault of the kind that its
// code stands for.
type Answer struct {
	Code   int           // of HTTP
	Status metav1.Status // as it was said; empty: in another form
	After  time.Duration // in which it may be asked again; 0: not said
}

// Error is the server's message.
func (a *Answer) Error() string {
	if a.Status.Message != "" {
		return a.Status.Message
	}
	return fmt.Sprintf("HTTP %d %s", a.Code, http.StatusText(a.Code))
}

// Reason is the server's word for why a call failed, as metav1.StatusReasonAlreadyExists;
// empty if it gave none.
func Reason(err error) metav1.StatusReason {
	var a *Answer
	if errors.As(err, &a) {
		return a.Status.Reason
	}
	return ""
}

// IsNamespace reports whether a call failed because its namespace does not exist.
func IsNamespace(err error) bool {
	var a *Answer
	return errors.As(err, &a) && a.Code == http.StatusNotFound && a.Status.Details != nil && a.Status.Details.Kind == Namespaces.Name
}

// Expired reports whether a resource version is too old to go on from: list again.
func Expired(err error) bool {
	var a *Answer
	return errors.As(err, &a) && a.Code == http.StatusGone
}

// call is one request.
type call struct {
	verb   string // as Kubernetes' rights have it: get, list, create …
	method string
	what   string // that it is about, for errors
	path   string
	query  url.Values
	body   any    // nil: none
	kind   string // content type of body; empty: as binary has it
	accept string // empty: as binary has it
	binary bool   // objects are Protocol Buffers, if they can be; else JSON
	cut    *cut   // of an answer in that form: what is not read
}

// newCall is a request for objects of a resource.
func (r Resource) newCall(verb, method, what, path string) call {
	return call{verb: verb, method: method, what: what, path: path, binary: r.isBinary(), cut: managed}
}

// How often a server that asks for patience is asked again, and how long it is waited for.
const (
	tries     = 6
	firstWait = 250 * time.Millisecond
	lastWait  = 30 * time.Second
)

// sendRequest makes a request, again while the server is too busy, and returns the body of the
// answer, which the caller closes.
func (c *Cluster) sendRequest(ctx context.Context, q call) (io.ReadCloser, error) {
	resp, err := c.sendForResponse(ctx, q)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// sendForResponse is send with the head of the answer.
func (c *Cluster) sendForResponse(ctx context.Context, q call) (*http.Response, error) {
	q.binary = q.binary && !c.plain.Load()
	body, kind, err := encodeBody(&q)
	if err != nil {
		return nil, fault.New(fault.Internal, "%s %s: %w", q.verb, q.what, err)
	}
	out, err := c.sendWithRetries(ctx, q, body, kind)
	var a *Answer
	if kind == protobuf && errors.As(err, &a) && a.Code == http.StatusUnsupportedMediaType {
		c.plain.Store(true)
		return c.sendForResponse(ctx, q)
	}
	return out, err
}

// sendWithRetries makes a request, again while the server is too busy.
func (c *Cluster) sendWithRetries(ctx context.Context, q call, body []byte, kind string) (*http.Response, error) {
	for n := 1; ; n++ {
		out, err := c.sendOnce(ctx, q, body, kind)
		var a *Answer
		if err == nil || n == tries || !errors.As(err, &a) || !a.isBusy() {
			return out, err
		}
		wait := min(max(a.After, firstWait<<(n-1)), lastWait)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, c.noAnswerError(ctx, q, err)
		}
	}
}

// isBusy reports whether nothing was done, and asking again later is what the server wants.
func (a *Answer) isBusy() bool {
	return a.Code == http.StatusTooManyRequests || a.After > 0 && (a.Code == http.StatusServiceUnavailable || a.Code == http.StatusInternalServerError || a.Code == http.StatusGatewayTimeout)
}

// sendOnce makes a request.
func (c *Cluster) sendOnce(ctx context.Context, q call, body []byte, kind string) (*http.Response, error) {
	u := c.base.JoinPath(q.path)
	u.RawQuery = q.query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s %s: %w", q.verb, q.what, err)
	}
	req.Header.Set("Accept", orDefault(q.accept, acceptHeader(q.binary)))
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.noAnswerError(ctx, q, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusalError(q, resp)
}

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// noAnswerError is the error of a call without an answer: its context's own, or that nobody answered.
func (c *Cluster) noAnswerError(ctx context.Context, q call, err error) error {
	var of *url.Error
	at := ""
	if errors.As(err, &of) { // it would repeat the call, with the whole address
		err, at = of.Err, " at "+c.base.Host
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fault.New(fault.Unavailable, "%s %s%s: %w", q.verb, q.what, at, err).Advise("see whether the API server answers: %s get --raw /readyz", c.kubectl)
}

// refusalError is what an answer that is no success means.
func (c *Cluster) refusalError(q call, resp *http.Response) error {
	a := &Answer{Code: resp.StatusCode}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil && a.Code != http.StatusTooManyRequests { // cut in its middle: what is refused, and why, was not heard
		return c.noAnswerError(resp.Request.Context(), q, fmt.Errorf("HTTP %d, and then: %w", a.Code, err))
	}
	read := json.Unmarshal
	if isBinary(resp.Header) {
		read = func(text []byte, into any) error { return decodeBinary(text, nil, into) }
	}
	if read(text, &a.Status) != nil || a.Status.Kind != "Status" {
		a.Status = metav1.Status{}
		if s := strings.TrimSpace(string(text)); s != "" {
			a.Status.Message = fmt.Sprintf("HTTP %d: %.200s", a.Code, s)
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		a.After = time.Duration(s) * time.Second
	} else if d := a.Status.Details; d != nil && d.RetryAfterSeconds > 0 {
		a.After = time.Duration(d.RetryAfterSeconds) * time.Second
	}
	return c.faultOf(q, a)
}

// faultOf gives an answer its kind.
func (c *Cluster) faultOf(q call, a *Answer) error {
	is := func(k fault.Kind) *fault.Error { return fault.New(k, "%s %s: %w", q.verb, q.what, a) }
	switch {
	case a.Code == http.StatusNotFound && a.Status.Reason == metav1.StatusReasonNotFound && a.Status.Details != nil && a.Status.Details.Name != "":
		return is(fault.NotFound)
	case a.Code == http.StatusNotFound, a.Code == http.StatusMethodNotAllowed, a.Code == http.StatusUnsupportedMediaType, a.Code == http.StatusNotAcceptable:
		return is(fault.Unsupported).Advise("this API server does not serve that; kubectl api-resources shows what it has")
	case a.Code == http.StatusConflict:
		return is(fault.Conflict)
	case a.Code == http.StatusGone:
		return is(fault.Unavailable)
	case a.Code == http.StatusUnauthorized:
		return is(fault.Permission).Advise("the API server does not know who asks: renew the token or the certificate of the kubeconfig")
	case a.Code == http.StatusForbidden:
		return is(fault.Permission).Advise("give the account of the message the right to %s %s, or a policy that refused it is to let it pass", q.verb, q.what)
	case a.Code == http.StatusTooManyRequests, a.Code == http.StatusRequestTimeout, a.Code >= 500:
		return is(fault.Unavailable)
	}
	return is(fault.Invalid)
}

// sendAndDecode makes a request and reads its answer into a value; nil: it does not matter.
func (c *Cluster) sendAndDecode(ctx context.Context, q call, into any) error {
	if _, ok := into.(message); into != nil && !ok {
		q.accept = orDefault(q.accept, plain)
	}
	resp, err := c.sendForResponse(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case into == nil:
		_, err = io.Copy(io.Discard, resp.Body)
	case isBinary(resp.Header):
		var text []byte
		if text, err = io.ReadAll(resp.Body); err == nil {
			err = decodeBinary(text, q.cut, into)
		}
	default:
		err = json.NewDecoder(resp.Body).Decode(into)
	}
	if err != nil {
		return c.noAnswerError(ctx, q, err)
	}
	return nil
}
