package podmanlab

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/coxswain-sched/coxswain/agent/registry"
)

// StartRegistry runs a registry of images (Debian's docker-registry) that asks for a user and
// a password, and returns its address. Podman speaks to it without TLS. It ends with the test.
func (l *Lab) StartRegistry(t testing.TB, user, password string) string {
	t.Helper()
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	config := fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %[1]s/images}}
http: {addr: %[2]q}
auth: {htpasswd: {realm: lab, path: %[1]s/htpasswd}}
`, dir, at)
	for name, text := range map[string]string{
		filepath.Join(dir, "config.yml"):                                       config,
		filepath.Join(dir, "htpasswd"):                                         user + ":" + string(hash) + "\n",
		filepath.Join(filepath.Dir(filepath.Dir(l.Podman)), "registries.conf"): fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", at),
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "docker-registry", "serve", filepath.Join(dir, "config.yml"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	awaitRegistry(t, "http://"+at+"/v2/")
	return at
}

// freeAddress is one at which nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitRegistry(t testing.TB, at string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		resp, err := http.Get(at) //nolint:gosec,noctx // of this test
		if err == nil {
			_ = resp.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Push puts the lab's image into a registry under a name, and forgets the name here. It returns the
// digest that the registry has.
func (l *Lab) Push(t testing.TB, name string, as registry.Credential) string {
	t.Helper()
	d := registry.Folder(t.TempDir())
	if err := d.Save([]registry.Credential{as}); err != nil {
		t.Fatal(err)
	}
	digest := filepath.Join(t.TempDir(), "digest")
	l.Call(t, "push", "--quiet", "--authfile="+d.AuthFile(), "--digestfile="+digest, Image, name)
	text, err := os.ReadFile(digest)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
