package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wrkConnections is how many connections wrk keeps, each of which asks again at once.
const wrkConnections = 4

// wrkLoad is a load of wrk from Debian beside that of this program: another client, which asks for
// GET alone and keeps its connections. It is run again and again, a second each.
type wrkLoad struct {
	program string
	env     []string
	stop    context.CancelFunc
	wait    sync.WaitGroup

	mu     sync.Mutex
	asked  int64
	failed int64
	first  []string
}

// startWrk begins the load; nil: wrk cannot be had here.
func (s *site) startWrk() *wrkLoad {
	s.t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		s.t.Log("wrk is Debian's, and this is another system")
		return nil
	}
	out, err := exec.CommandContext(s.t.Context(), "../../scripts/gateway/tools.sh").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 && os.Getenv("CI") == "" {
		s.t.Logf("without wrk: %s", exit.Stderr)
		return nil
	} else if err != nil {
		s.t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	libraries, err := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*"))
	if err != nil || len(libraries) == 0 {
		s.t.Fatalf("the libraries of wrk are not there: %v", err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &wrkLoad{program: filepath.Join(dir, "usr/bin/wrk"), env: []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}, stop: cancel}
	w.wait.Go(func() {
		for ctx.Err() == nil {
			w.runOnce(s.gateway)
		}
	})
	return w
}

var (
	wrkAsked  = regexp.MustCompile(`(\d+) requests in`)
	wrkStatus = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkSocket = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

// runOnce runs wrk for a second and counts.
func (w *wrkLoad) runOnce(address string) {
	cmd := exec.Command(w.program, "-t1", fmt.Sprintf("-c%d", wrkConnections), "-d1s", "--timeout", "30s", "-H", "Host: chat.localhost", "http://"+address+"/") //nolint:noctx // it ends by itself
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := int64(0)
	if m := wrkAsked.FindSubmatch(out); m != nil && err == nil {
		w.asked += countOf(m[1])
	} else {
		failed++
	}
	if m := wrkStatus.FindSubmatch(out); m != nil {
		failed += countOf(m[1])
	}
	if m := wrkSocket.FindSubmatch(out); m != nil {
		for _, n := range m[1:] {
			failed += countOf(n)
		}
	}
	if w.failed += failed; failed > 0 {
		w.first = append(w.first, fmt.Sprintf("%v %s", err, bytes.TrimSpace(out)))
	}
}

func countOf(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(err) // digits
	}
	return n
}

// check fails the test if requests of wrk failed, beyond those that may.
func (w *wrkLoad) check(t *testing.T, part string, may int64) {
	t.Helper()
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%s: wrk has had %d requests so far, %d failed", part, w.asked, w.failed)
	if w.failed > may {
		t.Errorf("%s: %d requests of wrk failed, %d may: %q", part, w.failed, may, w.first)
	}
	w.failed, w.first = 0, nil
}

// end ends the load, after the run that is under way.
func (w *wrkLoad) end() {
	if w != nil {
		w.stop()
		w.wait.Wait()
	}
}
