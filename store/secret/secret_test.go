package secret

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestSecrets: what is put is there for its user alone, in files that nobody else can read; what is
// removed is gone; names and values have bounds.
func TestSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	s := NewStore(dir)
	if list, err := s.List(1001); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, v := range []string{"first", "second"} {
		if err := s.Put(1001, "hf-token", []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Get(1001, "hf-token"); err != nil || string(got) != "second" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.Get(1002, "hf-token"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another user: %v", err)
	}
	for path, mode := range map[string]os.FileMode{"1001": 0o700, "1001/hf-token": 0o600} {
		if st, err := os.Stat(filepath.Join(dir, path)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	for _, name := range []string{"", "../1002/x", "A", "a/b", ".new-1", "a..", "-a"} {
		if err := s.Put(1001, name, []byte("x")); fault.KindOf(err) != fault.Invalid {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, size := range []int{0, MostBytes + 1} {
		if err := s.Put(1001, "large", make([]byte, size)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	list, err := s.List(1001)
	if err != nil || len(list) != 1 || list[0].Name != "hf-token" || list[0].Size != 6 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.Remove(1001, "hf-token"); err != nil {
		t.Error(err)
	}
	if err := s.Remove(1001, "hf-token"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("removed twice: %v", err)
	}
	for i := range MostSecrets {
		if err := s.Put(1001, "s"+strconv.Itoa(i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(1001, "more", []byte("x")); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	if err := s.Put(1001, "s0", []byte("y")); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if diff := cmp.Diff([]byte("y"), must(s.Get(1001, "s0"))); diff != "" {
		t.Error(diff)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
