package column

import (
	"strings"
	"testing"
)

func TestColumnsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		name := c.String()
		if seen[name] || name == "" || strings.ToLower(name) != name {
			t.Errorf("column %q", name)
		}
		if got, ok := ByName(name); !ok || got != c {
			t.Errorf("column %q is found as %v, %v", name, got, ok)
		}
		seen[name] = true
	}
}
