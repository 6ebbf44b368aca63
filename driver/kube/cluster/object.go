package cluster

import (
	"context"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// name is what errors call an object.
func (r Resource) name(namespace, name string) string {
	if r.Global || namespace == "" {
		return r.String() + " " + name
	}
	return r.String() + " " + namespace + "/" + name
}

// Get reads an object; who wrote which of its fields is left out. fault.NotFound: there is none; fault.Unsupported: there is no such
// resource.
func (c *Cluster) Get(ctx context.Context, r Resource, namespace, name string, into any) error {
	return c.sendAndDecode(ctx, r.newCall("get", http.MethodGet, r.name(namespace, name), r.objectPath(namespace, name)), into)
}

// Create makes an object and reads what the server made of it into a value, which may be nil.
// The object is a type of k8s.io/api with its kind. One that is there already is
// fault.Conflict with the Reason AlreadyExists. With dry the server checks all and keeps
// nothing.
func (c *Cluster) Create(ctx context.Context, r Resource, namespace string, object metav1.Object, dry bool, into any) error {
	q := url.Values{"fieldManager": {Manager}}
	if dry {
		q.Set("dryRun", metav1.DryRunAll)
	}
	a := r.newCall("create", http.MethodPost, r.name(namespace, object.GetName()), r.objectPath(namespace))
	a.query, a.body = q, object
	return c.sendAndDecode(ctx, a, into)
}

// Manager is who owns the fields that are written here, as the server keeps it.
const Manager = "coxswain"

// Deletion says what is deleted and how.
type Deletion struct {
	UID   types.UID // only the object with this one; another of the same name is fault.Conflict. Empty: any
	Grace *int64    // seconds; nil: what the object says
	Leave bool      // what it owns is not deleted
	Dry   bool      // nothing is done
}

// Delete begins to delete an object: one with finalizers, and a pod with a grace, is there
// until these are over. fault.NotFound: there is none.
func (c *Cluster) Delete(ctx context.Context, r Resource, namespace, name string, d Deletion) error {
	policy := metav1.DeletePropagationBackground
	if d.Leave {
		policy = metav1.DeletePropagationOrphan
	}
	body := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, GracePeriodSeconds: d.Grace, PropagationPolicy: &policy}
	if d.UID != "" {
		body.Preconditions = &metav1.Preconditions{UID: &d.UID}
	}
	if d.Dry {
		body.DryRun = []string{metav1.DryRunAll}
	}
	return c.sendAndDecode(ctx, call{verb: "delete", method: http.MethodDelete, what: r.name(namespace, name), path: r.objectPath(namespace, name), body: body}, nil)
}

// Form is how a patch is written.
type Form string

// The forms of a patch.
const (
	Merge  Form = "application/merge-patch+json"           // RFC 7386
	Pieces Form = "application/json-patch+json"            // RFC 6902: with tests, so that it holds for what was seen
	Keyed  Form = "application/strategic-merge-patch+json" // lists by the keys of their elements; of Kubernetes' own kinds alone
	Apply  Form = "application/apply-patch+yaml"           // the object as it is wanted; other owners of a field are fault.Conflict
)

// Patch changes an object, or a part of it ("status"; empty: the object itself), and reads
// what became of it into a value, which may be nil.
func (c *Cluster) Patch(ctx context.Context, r Resource, namespace, name, part string, form Form, patch, into any) error {
	p := r.objectPath(namespace, name)
	if part != "" {
		p += "/" + part
	}
	q := url.Values{"fieldManager": {Manager}}
	a := r.newCall("patch", http.MethodPatch, r.name(namespace, name), p)
	a.query, a.body, a.kind = q, patch, string(form)
	return c.sendAndDecode(ctx, a, into)
}
