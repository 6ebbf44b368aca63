package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// A child process that TestMain runs instead of the tests, over the directory
// that it names.
const (
	childEnv  = "COX_STORE_CHILD"
	packedEnv = "COX_STORE_PACKED"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child appends from several goroutines until it is killed, and prints "seq n" when
// the record seq, whose blob is script(n), is acknowledged.
func child(dir string) error {
	open := sqlite.Open
	if os.Getenv(packedEnv) != "" {
		open = sqlite.OpenPacked
	}
	s, err := open(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	epoch, err := s.Lead(ctx, "child")
	if err != nil {
		return err
	}
	first := 0
	if err := s.Read(ctx, 0, func(r store.Record) error { first = int(r.Seq); return nil }); err != nil {
		return err
	}
	errs := make(chan error)
	for w := range 4 {
		go func() {
			for i := 0; ; i += 3 {
				var recs []store.Record
				for j := range 3 {
					n := (first+i+j)*4 + w
					if _, err := s.PutBlob(ctx, script(n)); err != nil {
						errs <- err
						return
					}
					r := submission(n)
					r.Kind = fmt.Sprint(n)
					recs = append(recs, r)
				}
				last, err := s.Append(ctx, epoch, recs)
				if err == nil && i%2 == 0 {
					err = s.Project(ctx, epoch, last, []store.JobRow{row(int(last))}, map[string][]byte{"last": fmt.Append(nil, last)})
				}
				if err != nil {
					errs <- err
					return
				}
				for j, r := range recs {
					fmt.Printf("%d %s\n", int(last)-len(recs)+1+j, r.Kind)
				}
			}
		}()
	}
	return <-errs
}

// TestKilled kills the child again and again: every record that it acknowledged is
// there with its blob, in its place, and the journal has no gap.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	acked := map[uint64]string{}
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		if round%2 == 1 {
			cmd.Env = append(cmd.Env, packedEnv+"=1")
		}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		before := len(acked)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var seq uint64
			var n string
			if _, err := fmt.Sscan(lines.Text(), &seq, &n); err != nil {
				break // cut off by the kill
			}
			acked[seq] = n
			if len(acked) == before+200+round*131 {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait()
		if len(acked) < before+200 {
			t.Fatalf("the child acknowledged %d records", len(acked)-before)
		}
		survey(t, dir, acked)
	}
}

func survey(t *testing.T, dir string, acked map[uint64]string) {
	t.Helper()
	if got, err := sqlite.Verify(t.Context(), dir); err != nil || int(got.Last) < len(acked) { // with the log that the kill left
		t.Errorf("%d records were acknowledged: %+v, %v", len(acked), got, err)
	}
	s, err := sqlite.Open(dir)
	must(t, err)
	next, found := uint64(1), 0
	must(t, s.Read(t.Context(), 0, func(r store.Record) error {
		if r.Seq != next {
			t.Fatalf("record %d follows record %d", r.Seq, next-1)
		}
		next++
		if n, has := acked[r.Seq]; has {
			if found++; n != r.Kind {
				t.Errorf("record %d is %s and was acknowledged as %s", r.Seq, r.Kind, n)
			}
		}
		var n int
		if _, err := fmt.Sscan(r.Kind, &n); err != nil {
			return err
		}
		b, err := s.Blob(t.Context(), store.Hash(script(n))) // acknowledged or not: a record is never without its blob
		if err != nil || !bytes.Equal(b, script(n)) {
			t.Errorf("record %d: blob %d: %v", r.Seq, n, err)
		}
		return nil
	}))
	if found != len(acked) {
		t.Errorf("%d of %d acknowledged records are there", found, len(acked))
	}
	projected, err := s.Projected(t.Context())
	must(t, err)
	if projected > 0 {
		doc, err := s.Doc(t.Context(), "last")
		if _, jobErr := s.Job(t.Context(), projected); err != nil || jobErr != nil || string(doc) != fmt.Sprint(projected) {
			t.Errorf("the projection reflects %d, its document says %s: %v %v", projected, doc, err, jobErr)
		}
	}
	must(t, s.Close())
	if _, err := sqlite.Verify(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

// TestLock: the second one hears who has the state directory and since when; the
// end of a process, however it ends, frees it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := sqlite.Lock(dir, "cox up")
	must(t, err)
	_, err = sqlite.Lock(dir, "cox run")
	want := fmt.Sprintf("another cox (cox up, process %d, since %s", os.Getpid(), time.Now().UTC().Format(time.DateOnly))
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), want) || fault.Remedy(err) == "" {
		t.Errorf("%v, want %q", err, want)
	}
	unlock()
	unlock, err = sqlite.Lock(dir, "cox run")
	must(t, err)
	unlock()
	if _, err := sqlite.Lock(filepath.Join(dir, "none"), "cox run"); err == nil || fault.KindOf(err) == fault.Conflict {
		t.Errorf("no directory: %v", err)
	}
}
