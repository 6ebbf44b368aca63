package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	authv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Version is the API server's.
func (c *Cluster) Version(ctx context.Context) (version.Info, error) {
	var v version.Info
	err := c.sendAndDecode(ctx, call{verb: "get", method: http.MethodGet, what: "/version", path: "/version"}, &v)
	return v, err
}

// Ready asks the server whether it can serve: fault.Unavailable, it does not answer, or says that it
// cannot, as without its storage. Who may not ask that has an answer, too. One that shuts down in order
// serves until others have taken over (--shutdown-delay-duration), and only tells these that it will not.
func (c *Cluster) Ready(ctx context.Context) error {
	err := c.sendAndDecode(ctx, call{verb: "get", method: http.MethodGet, what: "/readyz", path: "/readyz", query: url.Values{"exclude": {"shutdown"}}}, nil)
	switch fault.KindOf(err) {
	case fault.Permission, fault.Unsupported, fault.NotFound, fault.Invalid, fault.Conflict:
		return nil
	}
	return err
}

// Kind is a resource that is served, in one version.
type Kind struct {
	Resource
	Kind  string   // "PodGroup"
	Verbs []string // "create", "list" …
}

// Served is what an API server has, in the order in which it prefers it.
type Served []Kind

// Find returns the resource of a group in the version that the server prefers, or in the first
// of the versions that it has, if there are any. false: it has none.
func (s Served) Find(group, name string, versions ...string) (Kind, bool) {
	if len(versions) == 0 {
		i := slices.IndexFunc(s, func(k Kind) bool { return k.Group == group && k.Name == name })
		if i < 0 {
			return Kind{}, false
		}
		return s[i], true
	}
	for _, v := range versions {
		i := slices.IndexFunc(s, func(k Kind) bool { return k.Group == group && k.Name == name && k.Version == v })
		if i >= 0 {
			return s[i], true
		}
	}
	return Kind{}, false
}

// discovery is what both versions of the aggregated answer have in common.
type discovery struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string                   `json:"resource"`
				ResponseKind *metav1.GroupVersionKind `json:"responseKind"`
				Scope        string                   `json:"scope"`
				Verbs        []string                 `json:"verbs"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

// all is what asks for one answer with everything, of servers that have it.
const all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// Served asks what the API server has.
func (c *Cluster) Served(ctx context.Context) (Served, error) {
	var out Served
	for _, root := range []string{"/api", "/apis"} {
		var text json.RawMessage
		if err := c.sendAndDecode(ctx, call{verb: "get", method: http.MethodGet, what: root, path: root, accept: all}, &text); err != nil {
			return nil, err
		}
		var d discovery
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, err
		}
		if d.Kind != "APIGroupDiscoveryList" {
			more, err := c.oneByOne(ctx, root, text)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			continue
		}
		for _, g := range d.Items {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					k := Kind{Resource: Resource{Group: g.Metadata.Name, Version: v.Version, Name: r.Resource, Global: r.Scope == "Cluster"}, Verbs: r.Verbs}
					if r.ResponseKind != nil {
						k.Kind = r.ResponseKind.Kind
					}
					out = append(out, k)
				}
			}
		}
	}
	return out, nil
}

// oneByOne asks an older server for each of its group's versions.
func (c *Cluster) oneByOne(ctx context.Context, root string, text json.RawMessage) (Served, error) {
	var have struct {
		Versions []string          `json:"versions"` // of /api
		Groups   []metav1.APIGroup `json:"groups"`   // of /apis
	}
	if err := json.Unmarshal(text, &have); err != nil {
		return nil, err
	}
	var paths [][3]string
	for _, v := range have.Versions {
		paths = append(paths, [3]string{root + "/" + v, "", v})
	}
	for _, g := range have.Groups {
		for _, v := range g.Versions {
			paths = append(paths, [3]string{root + "/" + v.GroupVersion, g.Name, v.Version})
		}
	}
	var out Served
	for _, p := range paths {
		var l metav1.APIResourceList
		if err := c.sendAndDecode(ctx, call{verb: "get", method: http.MethodGet, what: p[0], path: p[0]}, &l); err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			out = append(out, Kind{Resource: Resource{Group: p[1], Version: p[2], Name: r.Name, Global: !r.Namespaced}, Kind: r.Kind, Verbs: r.Verbs})
		}
	}
	return out, nil
}

// Can asks whether this account may do something, and the server's words why, which may be
// empty. The part is one of the resource's, as "binding"; empty: the resource itself. The name is
// that of the one object that it is about; empty: any.
func (c *Cluster) Can(ctx context.Context, verb string, r Resource, part, namespace, name string) (bool, string, error) {
	review := authv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Name, Subresource: part, Name: name,
		}},
	}
	at := Resource{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectaccessreviews", Global: true}
	err := c.sendAndDecode(ctx, call{verb: "create", method: http.MethodPost, what: at.String(), path: at.objectPath(""), body: &review}, &review)
	return review.Status.Allowed, review.Status.Reason, err
}

// Rules asks for all that this account may do in a namespace; the server may say that its
// answer is not whole (Incomplete).
func (c *Cluster) Rules(ctx context.Context, namespace string) (authv1.SubjectRulesReviewStatus, error) {
	review := authv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	at := Resource{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectrulesreviews", Global: true}
	err := c.sendAndDecode(ctx, call{verb: "create", method: http.MethodPost, what: at.String(), path: at.objectPath(""), body: &review}, &review)
	return review.Status, err
}
