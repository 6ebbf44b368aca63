package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Selection says which objects of a resource. The zero value: all.
type Selection struct {
	Namespace string // empty: every one
	Labels    string // as kubectl -l has it
	Fields    string // as kubectl --field-selector has it
	Lean      bool   // of pods: of the specification nothing is needed but node, gates and claims
}

// listCall is a call for these objects. What cannot be read from Protocol Buffers comes as JSON.
func (s Selection) listCall(r Resource, verb string, q url.Values, o any) call {
	a := r.newCall(verb, http.MethodGet, r.String(), r.objectPath(s.Namespace))
	a.query = q
	if s.Lean && r == Pods {
		a.cut = lean
	}
	_, ok := o.(message)
	a.binary = a.binary && ok
	return a
}

func (s Selection) queryValues() url.Values {
	q := url.Values{}
	if s.Labels != "" {
		q.Set("labelSelector", s.Labels)
	}
	if s.Fields != "" {
		q.Set("fieldSelector", s.Fields)
	}
	return q
}

// chunk is how many objects the server is asked for at once.
const chunk = 500

// List calls f for every object, in chunks, and returns the resource version to watch from.
// A list that takes so long that the server has dropped what it began with is Expired.
func List[T any](ctx context.Context, c *Cluster, r Resource, s Selection, f func(*T) error) (version string, err error) {
	q := s.queryValues()
	q.Set("limit", strconv.Itoa(chunk))
	for {
		bounded, cancel := context.WithTimeout(ctx, c.watchSilence())
		meta, err := readPage(bounded, c, s.listCall(r, "list", q, any(new(T))), f)
		cancel()
		if err != nil {
			return "", err
		}
		if meta.Continue == "" {
			return meta.ResourceVersion, nil
		}
		q.Set("continue", meta.Continue)
	}
}

// Unbroken calls list, and once more if the server forgot in the middle what it had begun with
// (Expired). What the first call has found does not count: list begins anew.
func Unbroken(list func() error) error {
	err := list()
	if Expired(err) {
		err = list()
	}
	return err
}

// readPage makes a request for a part of a list, and calls f for every object of it.
func readPage[T any](ctx context.Context, c *Cluster, q call, f func(*T) error) (meta metav1.ListMeta, err error) {
	resp, err := c.sendForResponse(ctx, q)
	if err != nil {
		return meta, err
	}
	defer resp.Body.Close()
	if isBinary(resp.Header) {
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return meta, c.noAnswerError(ctx, q, err)
		}
		return pageOf(text, q.cut, f)
	}
	var all struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []T             `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return meta, c.noAnswerError(ctx, q, err)
	}
	for i := range all.Items {
		if err := f(&all.Items[i]); err != nil {
			return meta, err
		}
	}
	return all.Metadata, nil
}

// turn is after how long a watch is begun anew by the server.
const turn = 5 * time.Minute

// silent is for how long nothing may be heard of a watch, or of a part of a list, before the
// connection is taken for dead: servers send a bookmark every minute.
const silent = 100 * time.Second

func (c *Cluster) watchSilence() time.Duration { return cmp.Or(c.quiet, silent) }

// Watch calls f for every change after a resource version, in order, until the server ends
// the watch or is silent for too long, which is no error, or f fails. It returns the version to
// go on from; of a version that the server has dropped the error is Expired. T has metadata, as
// all objects.
func Watch[T any](ctx context.Context, c *Cluster, r Resource, s Selection, version string, f func(watch.EventType, *T) error) (string, error) {
	q := s.queryValues()
	q.Set("watch", "1")
	q.Set("allowWatchBookmarks", "true")
	q.Set("resourceVersion", version)
	q.Set("timeoutSeconds", strconv.Itoa(int(turn/time.Second)))
	request := s.listCall(r, "watch", q, any(new(T)))
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dead := time.AfterFunc(c.watchSilence(), cancel)
	defer dead.Stop()
	resp, err := c.sendForResponse(ctx, request)
	if err != nil {
		return version, err
	}
	defer resp.Body.Close()
	all := newEvents(resp)
	for dead.Reset(c.watchSilence()); ; dead.Reset(c.watchSilence()) {
		ev, err := all.nextEvent()
		switch {
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil && parent.Err() == nil:
			return version, nil
		case err != nil:
			return version, c.noAnswerError(ctx, request, err)
		case ev.what == watch.Error:
			a := &Answer{}
			if err := all.readObject(ev, nil, &a.Status); err != nil {
				return version, c.noAnswerError(ctx, request, err)
			}
			a.Code = int(a.Status.Code)
			return version, c.faultOf(request, a)
		}
		var meta metav1.PartialObjectMetadata
		if ev.what == watch.Bookmark {
			if err := all.readObject(ev, nil, &meta); err != nil {
				return version, c.noAnswerError(ctx, request, err)
			}
			version = meta.ResourceVersion
			continue
		}
		o := new(T)
		if err := all.readObject(ev, request.cut, o); err != nil {
			return version, fault.New(fault.Unsupported, "watch %s: %w", r, err)
		}
		if err := f(ev.what, o); err != nil {
			return version, err
		}
		if m, ok := any(o).(metav1.Object); ok {
			version = m.GetResourceVersion()
		}
	}
}

// Follower is told of all objects of a kind, and of what becomes of them.
type Follower[T any] struct {
	// Begin is called before the objects of a list, Listed after them: what was known and
	// was not among them is gone. Both may be nil.
	Begin, Listed func()
	// Each is called for an object that is there or has changed, or was deleted.
	Each func(o *T, deleted bool)
	// Failed is called when the server does not answer; may be nil.
	Failed func(error)
}

// brief is how long a watch lasts at least that nobody cuts.
const brief = time.Second

// Follow lists and watches until ctx ends. It calls the follower from one goroutine. A server
// that ends watches at once, or knows no version that it has just told, is asked ever less
// often, down to every five seconds.
func Follow[T any](ctx context.Context, c *Cluster, r Resource, s Selection, f Follower[T]) {
	version, failed := "", 0
	for ctx.Err() == nil {
		var err error
		if version == "" {
			if version, err = listAndFollow(ctx, c, r, s, f); err == nil {
				continue
			}
		} else {
			began, told := time.Now(), false
			version, err = Watch(ctx, c, r, s, version, func(what watch.EventType, o *T) error {
				told = true
				f.Each(o, what == watch.Deleted)
				return nil
			})
			if told = told || time.Since(began) > brief; told {
				failed = 0
			}
			if err == nil && told {
				continue
			}
		}
		over := err == nil
		if over {
			err = fault.New(fault.Unavailable, "watch %s: the API server, or what is in front of it, ends watches at once", r)
		}
		if ctx.Err() != nil {
			return
		}
		if Expired(err) || fault.KindOf(err) == fault.Permission { // who was told that nothing may be seen forgets what there was
			version = ""
		}
		if failed == 0 && (Expired(err) || over) {
			failed++
			continue
		}
		if f.Failed != nil {
			f.Failed(err)
		}
		t := time.NewTimer(min(firstWait<<min(failed, 10), 5*time.Second))
		failed++
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

func listAndFollow[T any](ctx context.Context, c *Cluster, r Resource, s Selection, f Follower[T]) (string, error) {
	var all []*T
	version, err := List(ctx, c, r, s, func(o *T) error {
		all = append(all, o)
		return nil
	})
	if err != nil {
		return "", err
	}
	if f.Begin != nil {
		f.Begin()
	}
	for _, o := range all {
		f.Each(o, false)
	}
	if f.Listed != nil {
		f.Listed()
	}
	return version, nil
}
