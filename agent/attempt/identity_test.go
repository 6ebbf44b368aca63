package attempt

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIdentity: two roots at the same path have different prefixes, a root keeps its prefix, and
// a root that an older version made has the prefix of its path.
func TestIdentity(t *testing.T) {
	root := filepath.Join(t.TempDir(), "engine")
	byPath := GroupPrefix(root)
	seen := map[string]bool{byPath: true}
	for range 3 { // three machines that have this path
		for range 2 { // the second start draws nothing
			if err := DrawIdentity(root); err != nil {
				t.Fatal(err)
			}
		}
		prefix := GroupPrefix(root)
		if seen[prefix] {
			t.Errorf("%s is given a second time", prefix)
		}
		seen[prefix] = true
		if err := os.MkdirAll(SlotsOf(root), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := DrawIdentity(root); err != nil || GroupPrefix(root) != prefix || SlotOf(root, "7").Group != prefix+"7" {
			t.Errorf("with slots: %s, before %s, %v", GroupPrefix(root), prefix, err)
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(SlotsOf(root), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := DrawIdentity(root); err != nil || GroupPrefix(root) != byPath {
		t.Errorf("of an older version: %s, want %s, %v", GroupPrefix(root), byPath, err)
	}
}
