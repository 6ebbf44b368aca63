package local_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestOutputOfAServiceIsRotated: who follows sees all of it, and what is kept is bounded; the last words
// are there when it is gone.
func TestOutputOfAServiceIsRotated(t *testing.T) {
	e := newEngine(t, local.Config{})
	l, dir := planWeb(t, e, 1)
	l.Job.Spec.Serve.Log = job.LogRotation{Size: 1000, Keep: 2}
	l.Job.Spec.Output = job.Output{Stdout: filepath.Join(dir, "out"), Stderr: filepath.Join(dir, "err")}
	l.Script = []byte("#!/bin/sh\necho fault >&2\ni=0; while test $i -lt 100; do echo this is line $i; i=$((i+1)); done\n" +
		"while ! test -e " + dir + "/more; do sleep 0.01; done\n" +
		"trap 'echo the last words; exit 0' TERM\nwhile test $i -lt 300; do echo this is line $i; i=$((i+1)); sleep 0.001; done\nwhile :; do sleep 0.01; done\n")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	if len(r.Files) != 2 || r.Files[0] != filepath.Join(dir, "out") {
		t.Fatalf("%q", r.Files)
	}
	log, err := e.OpenLog(t.Context(), l.Job.Spec.Owner, r.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var said strings.Builder
	see := func(line string) {
		eventually(t, "it says "+line, func() bool {
			if _, err := io.Copy(&said, log); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(said.String(), line)
		})
	}
	see("this is line 99\n")
	first := said.Len()
	if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	see("this is line 299\n")
	if want := lines(100, 300); said.String()[first:] != want {
		t.Errorf("the follower sees %d bytes, want %d", said.Len()-first, len(want))
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: time.Minute}); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, gone)
	if got := read(t, filepath.Join(dir, "out")); !strings.Contains(got, "the last words\n") || len(got) > 1000 {
		t.Errorf("%q", got)
	}
	if got := read(t, filepath.Join(dir, "err")); !strings.HasPrefix(got, "fault\n") {
		t.Errorf("%q", got)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "out*")); err != nil || len(kept) != 3 {
		t.Errorf("%q, %v", kept, err)
	}
}

// lines are those of the script, from one to before another.
func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "this is line %d\n", i)
	}
	return b.String()
}
