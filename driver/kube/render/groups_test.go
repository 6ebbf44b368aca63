package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestGroups: a pod is kept to the groups that are named for it where its node can do that, and
// where its user is not the image's.
// Seen to fail with: Strict wherever the node is; Strict for an image's user.
func TestGroups(t *testing.T) {
	a := sample()
	a.Nodes[1].Strict = true
	is := func(i int) string {
		if p := a.Pods("uid-1")[i].Spec.SecurityContext.SupplementalGroupsPolicy; p != nil {
			return string(*p)
		}
		return ""
	}
	if is(0) != "" || is(1) != string(corev1.SupplementalGroupsPolicyStrict) {
		t.Errorf("%q on a node that cannot, %q on one that can", is(0), is(1))
	}
	a.AsImage = true
	if is(1) != "" {
		t.Errorf("%q for the image's user", is(1))
	}
}
