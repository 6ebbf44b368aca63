package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Second starts another apiserver beside the first, on the same etcd: "apiserver.NAME" for Kill,
// Freeze and Restart. It returns its address, which the certificate of the first holds for too.
// etcd is the way to etcd, as another address that leads there; empty: the usual. More arguments
// outrank those of the first.
func (l *Lab) Second(t testing.TB, name, etcd string, more ...string) (address string) {
	t.Helper()
	if K3s() != "" {
		t.Skip("a second apiserver is Kubernetes' own, and the first is K3s'")
	}
	l.mu.Lock()
	l.seconds++
	port := 1442 + l.seconds
	l.mu.Unlock()
	address = fmt.Sprintf("%s:%d", l.wire.server, port)
	words := []string{l.programs + "/kube", "apiserver"}
	for _, a := range l.apiserverArgs() {
		if etcd != "" && strings.HasPrefix(a, "--etcd-servers=") {
			a = "--etcd-servers=http://" + etcd
		}
		words = append(words, a)
	}
	words = append(words, fmt.Sprintf("--secure-port=%d", port))
	d := &daemon{name: "apiserver." + name, words: append(words, more...), up: func(ctx context.Context) bool {
		return probeURL(ctx, l.admin, "https://"+address+"/readyz") == nil
	}}
	if err := l.startDaemon(t.Context(), d); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	return address
}

// Near is the address of this machine as the lab reaches it: what listens there can stand
// between two of the lab's parts.
func (l *Lab) Near() string { return l.wire.near }

// Within is a command in the lab's network, not begun yet: it reaches the addresses of pods.
func (l *Lab) Within(ctx context.Context, words ...string) *exec.Cmd {
	words = append(l.wire.nsenterArgs(), words...)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.ExtraFiles = []*os.File{l.wire.space}
	return c
}

// Dial connects to what listens in the lab, at an address that only the lab has.
func (l *Lab) Dial(ctx context.Context, address string) (net.Conn, error) {
	type made struct {
		c   net.Conn
		err error
	}
	done := make(chan made, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- made{nil, err}
			return
		}
		defer own.Close()
		if err := unix.Setns(int(l.wire.space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- made{nil, fmt.Errorf("the lab's network: %w", err)}
			return
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil { // else the thread ends with this, and with it what it began
			runtime.UnlockOSThread()
		}
		done <- made{c, err}
	}()
	m := <-done
	return m.c, m.err
}
