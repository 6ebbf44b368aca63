package settings_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// TestMisnamed: what Kubernetes says of names, without what only it understands.
// Seen to fail with the expression left out.
func TestMisnamed(t *testing.T) {
	for _, c := range []struct {
		wrong []string
		want  string
	}{
		{validation.IsDNS1123Label("Cox_1"), "it must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"},
		{validation.IsDNS1123Subdomain("A"), "it must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"},
		{validation.IsValidLabelValue("a b"), "it must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"},
		{validation.IsQualifiedName("a b"), "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"},
		{validation.IsDNS1123Label("a23456789012345678901234567890123456789012345678901234567890abcde"), "must be no more than 63 characters"},
	} {
		if got := settings.Misnamed(c.wrong); got != c.want {
			t.Errorf("%q: %q, want %q", c.wrong, got, c.want)
		}
	}
}
