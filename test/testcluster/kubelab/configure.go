package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Configure begins a node's kubelet anew with other settings: in its configuration file a text is
// replaced by another one. With the test's end it has its own again.
func (l *Lab) Configure(t testing.TB, name, was, is string) {
	t.Helper()
	file := filepath.Join(l.nodeByName(t, name).dir, "kubelet.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), was) {
		t.Fatalf("the kubelet of %s has no setting %q", name, was)
	}
	begin := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fmt.Errorf("the kubelet of %s: %w", name, err)
		}
		l.Restart(t, "kubelet."+name)
		return nil
	}
	t.Cleanup(func() {
		if err := begin(string(text)); err != nil {
			t.Error(err)
		}
	})
	if err := begin(strings.Replace(string(text), was, is, 1)); err != nil {
		t.Fatal(err)
	}
}
