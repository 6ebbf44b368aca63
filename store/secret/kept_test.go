package secret

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestKept: values that came with a submission are apart from those of the same names that their user keeps, go when
// nobody needs them and no sooner, and a backup has them.
//
// Seen to fail with: a sweep that does not ask what is needed; one that takes what was kept just now.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	s := NewStore(dir)
	if err := s.Put(1001, "db.password", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	keep := func(uid uint32, password string) job.Secret {
		t.Helper()
		set, err := s.Keep(uid, map[string][]byte{"db.password": []byte(password), "db.empty": nil})
		if err != nil {
			t.Fatal(err)
		}
		return job.Secret{Name: "db.password", File: "db.password", Kept: set}
	}
	value := func(s *Store, uid uint32, one job.Secret) string {
		t.Helper()
		got, err := s.Read(uid, &one)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			t.Fatal(err)
		}
		return string(got)
	}
	first, second, other := keep(1001, "one"), keep(1001, "two"), keep(1002, "one")
	if again := keep(1001, "one"); again != first || second == first || other.Kept == first.Kept {
		t.Errorf("sets %q, %q, %q and of another user %q", first.Kept, again.Kept, second.Kept, other.Kept)
	}
	for one, want := range map[job.Secret]string{first: "one", second: "two", {Name: "db.password", File: "x"}: "mine", {Name: "db.empty", File: "x", Kept: first.Kept}: ""} {
		if got := value(s, 1001, one); got != want {
			t.Errorf("%+v is %q, want %q", one, got, want)
		}
	}
	if got := value(s, 1002, second); got != "" {
		t.Errorf("another user reads %q", got)
	}
	bad := first
	if bad.Kept = strings.Repeat("../", 10) + "ab"; len(bad.Kept) != 32 {
		t.Fatal(bad.Kept)
	}
	if _, err := s.Read(1001, &bad); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a path for a set: %v", err)
	}
	if list, err := s.List(1001); err != nil || len(list) != 1 {
		t.Errorf("the user's own are %v, %v", list, err)
	}

	backup := filepath.Join(t.TempDir(), "backup")
	if err := s.CopyTo(backup); err != nil {
		t.Fatal(err)
	}
	restored := NewStore(backup)
	if got := value(restored, 1001, second); got != "two" {
		t.Errorf("the backup has %q", got)
	}
	if set, err := restored.Keep(1001, map[string][]byte{"db.password": []byte("two"), "db.empty": nil}); err != nil || set != second.Kept {
		t.Errorf("in the backup the set is %q, %v", set, err)
	}

	needs := func(all ...job.Secret) func() map[Kept]bool {
		return func() map[Kept]bool {
			out := map[Kept]bool{}
			for _, one := range all {
				out[Kept{1001, one.Kept}] = true
			}
			return out
		}
	}
	later := time.Now().Add(time.Minute)
	if err := s.Sweep(later.Add(-time.Hour), needs()); err != nil || value(s, 1001, first) == "" {
		t.Errorf("kept just now: %v", err)
	}
	if err := s.Sweep(later, needs(second)); err != nil {
		t.Fatal(err)
	}
	if got := value(s, 1001, first) + value(s, 1001, second) + value(s, 1002, other); got != "two" {
		t.Errorf("after the sweep there is %q", got)
	}
	if err := s.Sweep(later, needs()); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "kept", "[0-9]*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := value(s, 1001, job.Secret{Name: "db.password", File: "x"}); got != "mine" {
		t.Errorf("the user's own is %q", got)
	}
}

// TestKeptHasBounds: a user has so many sets, and a set of a server that died while it wrote is removed.
func TestKeptHasBounds(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "kept", "1001")
	for i := range MostKept {
		if err := os.MkdirAll(filepath.Join(folder, partial+strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStore(dir)
	if _, err := s.Keep(1001, map[string][]byte{"a": []byte("x")}); fault.KindOf(err) != fault.Exhausted || fault.Remedy(err) == "" {
		t.Errorf("one too many: %v", err)
	}
	if err := s.Sweep(time.Now().Add(time.Minute), func() map[Kept]bool { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keep(1001, map[string][]byte{"a": []byte("x")}); err != nil {
		t.Error(err)
	}
	for name, value := range map[string][]byte{"../b": []byte("x"), "large": make([]byte, MostBytes+1)} {
		if _, err := s.Keep(1001, map[string][]byte{name: value}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
