package attempt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
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

// TestNamesOfTheIdentity: the marks and addresses of two roots at one path differ; those of a root
// that an older version made, and of an attempt that it launched, are as they were.
func TestNamesOfTheIdentity(t *testing.T) {
	root := filepath.Join(t.TempDir(), "engine")
	ref := engine.Ref{Allocation: 7, Attempt: 1}
	seen := map[string]bool{}
	for range 2 { // two containers that have this path
		seed, err := AddressSeed(root, "old")
		again, _ := AddressSeed(root, "old")
		if err != nil || seed == "old" || seed != again {
			t.Errorf("seed %q, then %q, %v", seed, again, err)
		}
		drawn, err := ReadIdentity(root)
		if err != nil || drawn == "" {
			t.Errorf("identity %q, %v", drawn, err)
		}
		mark := (&Launch{Root: root, Drawn: drawn, Ref: ref}).Mark("v1")
		if seen[seed] || seen[mark] {
			t.Errorf("%s or %s is given a second time", seed, mark)
		}
		seen[seed], seen[mark] = true, true
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := (&Launch{Root: root, Ref: ref}).Mark("v1"), "COX_NODE="+root+"/7.1/v1"; got != want {
		t.Errorf("mark of an older version's launch: %s, want %s", got, want)
	}
	if err := os.MkdirAll(SlotsOf(root), 0o700); err != nil {
		t.Fatal(err)
	}
	if seed, err := AddressSeed(root, "old"); err != nil || seed != "old" {
		t.Errorf("seed of an older version's root: %q, %v", seed, err)
	}
	owner, err := DeviceOwner(root)
	if again, _ := DeviceOwner(root); err != nil || owner == "" || again != owner {
		t.Errorf("owner of devices of an older version's root: %q, then %q, %v", owner, again, err)
	}
	for id, want := range map[string]string{"KQ7\n": "old", "a-KQ7\n": "a-KQ7"} {
		if err := os.WriteFile(identityFile(root), []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
		if seed, err := AddressSeed(root, "old"); err != nil || seed != want {
			t.Errorf("seed with the identity %q: %q, %v; want %q", id, seed, err, want)
		}
	}
	if err := os.WriteFile(identityFile(root), []byte("../x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := ReadIdentity(root); err == nil {
		t.Errorf("a damaged identity is read as %q", id)
	}
}
