package kube

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/job"
)

// TestALogThatWasBegunAnew: a kubelet keeps a file of what a container prints up to a size, and then
// begins another, which is what it tells from then on. Who reads on has that from its beginning.
//
// Seen to fail with: the new file taken for the old one, of which nothing is new.
func TestALogThatWasBegunAnew(t *testing.T) {
	s := newStand(t, "n1")
	var log atomic.Value
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = io.WriteString(w, log.Load().(string))
		return true
	})
	e := s.open(nil)
	a := ran(e, 1)
	log.Store("much that was printed before\n")
	out, err := e.OpenLog(t.Context(), job.Owner{}, e.files(a.ref)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, x := range []struct{ log, want string }{
		{"much that was printed before\n", "much that was printed before\n"},
		{"much that was printed before\nmore\n", "more\n"},
		{"anew\n", "anew\n"},
		{"anew\n", ""},
		{"anew\nand more\n", "and more\n"},
	} {
		log.Store(x.log)
		if got, err := io.ReadAll(out); err != nil || string(got) != x.want {
			t.Errorf("%q, %v; want %q", got, err, x.want)
		}
	}
}
