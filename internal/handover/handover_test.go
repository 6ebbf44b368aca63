package handover_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/handover"
)

// offered is an older process.
func offered(t *testing.T, dir, state string) (l net.Listener, letGo <-chan struct{}, ended <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	gone, end := make(chan struct{}), make(chan error, 1)
	o := handover.Offer{
		Dir: dir, Listener: l, State: func() any { return map[string]string{"text": state} },
		LetGo:  func() { close(gone) },
		Failed: func(err error) { t.Error(err) },
	}
	go func() { end <- o.Serve(t.Context()) }()
	return l, gone, end
}

// ask asks until the older process answers.
func ask(t *testing.T, dir string, state any) *handover.Taking {
	t.Helper()
	for {
		talk, err := handover.Ask(dir, state)
		if err == nil {
			t.Cleanup(func() { _ = talk.Close(); _ = talk.Listener.Close() })
			return talk
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestSocketGoesOver: the listener that comes is the same socket: a connection is taken by it after
// the older process has closed its own.
func TestSocketGoesOver(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 300_000)
	old, letGo, ended := offered(t, dir, long)
	var state map[string]string
	talk := ask(t, dir, &state)
	if state["text"] != long || talk.Listener.Addr().String() != old.Addr().String() {
		t.Fatalf("%d bytes, %s instead of %s", len(state["text"]), talk.Listener.Addr(), old.Addr())
	}
	if err := talk.Ready(); err != nil {
		t.Fatal(err)
	}
	<-letGo
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(talk.Listener, http.NotFoundHandler()) }() //nolint:gosec // of a test
	resp, err := http.Get("http://" + old.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// The next one offers in the same folder.
	offered(t, dir, "third")
	if ask(t, dir, &state); state["text"] != "third" {
		t.Errorf("the state is %q", state["text"])
	}
}

// TestOnlyOneTakesOver: of several that are ready at once one has it, and those that ask and go, or ask
// for the listener alone, change nothing.
func TestOnlyOneTakesOver(t *testing.T) {
	dir := t.TempDir()
	_, letGo, ended := offered(t, dir, strings.Repeat("x", 300_000))
	for range 3 {
		if err := ask(t, dir, nil).Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-letGo:
		t.Fatal("it has let go of its folder for one that was not ready")
	default:
	}
	var talks [5]*handover.Taking
	for i := range talks {
		var state any
		talks[i] = ask(t, dir, &state)
	}
	results := make([]error, len(talks))
	var all sync.WaitGroup
	for i, talk := range talks {
		all.Go(func() { results[i] = talk.Ready() })
	}
	all.Wait()
	<-ended
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d have taken over: %v", won, results)
	}
}

func TestNobodyOffers(t *testing.T) {
	dir := t.TempDir()
	if _, err := handover.Ask(dir, nil); err == nil {
		t.Error("a folder without a socket")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "handover.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	if _, err := handover.Ask(dir, nil); err == nil || !strings.Contains(err.Error(), "no listener came") {
		t.Errorf("one that offers none: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "handover.sock")); err != nil {
		t.Error(err)
	}
}

func TestSameAddress(t *testing.T) {
	for _, c := range []struct {
		wanted, actual string
		same           bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:0", "127.0.0.1:81", true},
		{":80", "[::]:80", true},
		{"0.0.0.0:http", "[::]:80", true},
		{":80", "127.0.0.1:80", false},
		{"127.0.0.1:80", "[::]:80", false},
		{"localhost:80", "127.0.0.1:80", true},
		{"10.0.0.1:80", "10.0.0.2:80", false},
		{"auto", "127.0.0.1:80", false},
	} {
		if got := handover.SameAddress(c.wanted, c.actual); got != c.same {
			t.Errorf("%s and %s: %v", c.wanted, c.actual, got)
		}
	}
}
