package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// kept is what a state directory holds, as its writer knows it.
type kept struct {
	dir     string
	epoch   uint64
	first   uint64
	records map[uint64]store.Record
	rows    map[uint64]store.JobRow
	docs    map[string]string
	blobs   map[string][]byte
}

// fastDir is a directory whose syncs cost nothing, where there is one.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "coxswain-flip-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func flipRow(id int, state string) store.JobRow {
	r := row(id)
	r.Name, r.State, r.Detail = fmt.Sprintf("flip-%d", id), state, json.RawMessage(fmt.Sprintf(`{"id":%d,"text":%q}`, id, strings.Repeat("x", id%7*40)))
	if state != "PENDING" {
		r.Final, r.Nodes, r.Started, r.Ended = true, "n1", r.Submitted.Add(time.Minute), r.Submitted.Add(time.Hour)
	}
	return r
}

// leaveState makes a state directory as a process leaves it: one that is closed has all of it in
// the database; one that is killed has a part in the log alone.
func leaveState(t *testing.T, killed bool) kept {
	t.Helper()
	work := fastDir(t)
	k := kept{dir: fastDir(t), first: 3, records: map[uint64]store.Record{}, rows: map[uint64]store.JobRow{}, docs: map[string]string{}, blobs: map[string][]byte{}}
	n := 0
	fill := func(s *sqlite.Store, jobs int) {
		k.epoch = lead(t, s)
		for range jobs {
			n++
			blob := fmt.Appendf(nil, "#!/bin/sh\necho %d\n", n)
			if n%9 == 0 {
				blob = bytes.Repeat(blob, 2500) // more than goes into the database
			}
			hash, err := s.PutBlob(t.Context(), blob)
			must(t, err)
			k.blobs[hash] = blob
			r := store.Record{
				At: start.Add(time.Duration(n) * time.Second), Kind: "submitted", Job: uint64(n), By: store.Actor{Name: "ada", UID: 1000, From: "socket"},
				Data: json.RawMessage(fmt.Sprintf(`{"first":%d,"script_hash":%q}`, n, hash)),
			}
			seq, err := s.Append(t.Context(), k.epoch, []store.Record{r})
			must(t, err)
			r.Seq, r.Epoch = seq, k.epoch
			k.records[seq] = r
			state := "COMPLETED"
			if n%4 == 0 {
				state = "PENDING"
			}
			k.rows[uint64(n)] = flipRow(n, state)
			if n%3 == 0 {
				k.docs["control"] = fmt.Sprintf(`{"next":%d}`, n+1)
				rows := []store.JobRow{k.rows[uint64(n-2)], k.rows[uint64(n-1)], k.rows[uint64(n)]}
				must(t, s.Project(t.Context(), k.epoch, seq, rows, map[string][]byte{"control": []byte(k.docs["control"])}))
			}
		}
	}
	s := open(t, work)
	fill(s, 15)
	_, err := s.Purge(t.Context(), k.epoch, store.PurgeRequest{RecordsBefore: start.Add(time.Hour), Limit: 2})
	must(t, err)
	must(t, s.Close())
	s = open(t, work)
	fill(s, 6)
	if !killed {
		must(t, s.Close())
	}
	must(t, os.CopyFS(filepath.Join(k.dir, "state"), os.DirFS(work)))
	must(t, s.Close())
	k.dir = filepath.Join(k.dir, "state")
	return k
}

// verdict is what became of a state directory.
type verdict struct {
	refused error    // the store was not opened
	lost    []string // what could not be read
	wrong   []string // what must not be, whatever was damaged
	named   []store.Damage
}

// look opens a copy of the state and compares all that it reads with what was written.
func (k *kept) look(t *testing.T, dir string) (v verdict) {
	t.Helper()
	s, err := sqlite.Open(dir)
	if err != nil {
		v.refused = err
		return v
	}
	defer func() { _ = s.Close() }()
	ctx := t.Context()
	wrong := func(format string, args ...any) { v.wrong = append(v.wrong, fmt.Sprintf(format, args...)) }
	lost := func(format string, args ...any) { v.lost = append(v.lost, fmt.Sprintf(format, args...)) }
	rows := func(what string, want func(*store.JobRow) bool, read func(f func(store.JobRow) error) error) {
		left := map[uint64]bool{}
		for id, r := range k.rows {
			left[id] = want(&r)
		}
		if err := read(func(r store.JobRow) error {
			if !reflect.DeepEqual(k.rows[r.ID], r) {
				wrong("%s has %+v", what, r)
			}
			delete(left, r.ID)
			return nil
		}); err != nil {
			wrong("%s: %v", what, err) // one row must not cost the others
		}
		for id, wanted := range left {
			if wanted {
				lost("%s: job %d", what, id)
			}
		}
	}
	all := func(*store.JobRow) bool { return true }
	rows("live", func(r *store.JobRow) bool { return !r.Final }, func(f func(store.JobRow) error) error { return s.Live(ctx, f) })
	for what, q := range map[string]store.Query{"history": {}, "user": {Users: []string{"user3"}}, "state": {States: []string{"COMPLETED"}, Final: true}, "window": {From: start}} {
		rows(what, func(r *store.JobRow) bool { return q.Match(r) }, func(f func(store.JobRow) error) error { return s.History(ctx, q, f) })
	}
	rows("one by one", all, func(f func(store.JobRow) error) error {
		for id := range k.rows {
			if r, err := s.Job(ctx, id); err == nil {
				_ = f(r)
			}
		}
		return nil
	})
	next := k.first
	record := func(r store.Record) error {
		if !reflect.DeepEqual(k.records[r.Seq], r) {
			wrong("record %+v", r)
		}
		return nil
	}
	if err := s.Read(ctx, next-1, func(r store.Record) error { next = r.Seq + 1; return record(r) }); err != nil || int(next) != len(k.records)+1 {
		lost("the journal from %d on: %v", next, err)
	}
	n := 0
	if err := s.Records(ctx, store.RecordQuery{}, func(r store.Record) error { n++; return record(r) }); err != nil || n != len(k.records) {
		lost("%d records, %v", n, err)
	}
	for name, want := range k.docs {
		if doc, err := s.Doc(ctx, name); err != nil {
			lost("document %s: %v", name, err)
		} else if string(doc) != want {
			wrong("document %s is %s", name, doc)
		}
	}
	for hash, want := range k.blobs {
		if b, err := s.Blob(ctx, hash); err != nil {
			lost("blob %s: %v", hash, err)
		} else if !bytes.Equal(b, want) {
			wrong("blob %s is %q", hash, b)
		}
	}
	if len(v.lost) > 0 {
		if err := s.Scrub(ctx, func(int) error { return nil }); err != nil {
			lost("the scrub: %v", err)
		}
	}
	if epoch, err := s.Lead(ctx, "flip"); err == nil {
		if epoch <= k.epoch {
			wrong("epoch %d is given a second time", epoch)
		}
		if seq, err := s.Append(ctx, epoch, []store.Record{submission(1)}); err == nil && seq <= uint64(len(k.records)) {
			wrong("record %d is given a second time", seq)
		}
	}
	v.named = s.Damages()
	return v
}

// flip is one byte of a file, with one bit of it turned.
type flip struct {
	file string
	at   int
	bit  int
}

func (k *kept) files(t *testing.T) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "-shm") { // SQLite makes the index of its log anew
			rel, _ := filepath.Rel(k.dir, path)
			out = append(out, rel)
		}
		return err
	}))
	return out
}

// try turns a bit in a copy of the state. Whatever it does is found, by the opening, by a read or
// by a scrub, and by Verify, or it does nothing.
func (k *kept) try(t *testing.T, dir string, f flip) (v verdict) {
	t.Helper()
	k.turn(t, dir, f)
	v = k.look(t, dir)
	switch {
	case len(v.wrong) > 0:
		t.Errorf("%+v: %s", f, v.wrong)
	case len(v.lost) > 0 && len(v.named) == 0:
		t.Errorf("%+v: %s, and nobody says why", f, v.lost)
	case v.refused != nil || len(v.lost) > 0:
		k.turn(t, dir, f)
		if _, err := sqlite.Verify(t.Context(), dir); err == nil {
			t.Errorf("%+v: not found by Verify: %v %s", f, v.refused, v.lost)
		}
	}
	return v
}

// turn makes a copy of the state with one bit turned.
func (k *kept) turn(t *testing.T, dir string, f flip) {
	t.Helper()
	must(t, os.RemoveAll(dir))
	must(t, os.CopyFS(dir, os.DirFS(k.dir)))
	if err := os.Remove(filepath.Join(dir, "journal.db-shm")); !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	name := filepath.Join(dir, f.file)
	b, err := os.ReadFile(name)
	must(t, err)
	b[f.at] ^= 1 << f.bit
	must(t, os.WriteFile(name, b, 0o600))
}

// TestFlippedBits turns bits of a state directory and of its write-ahead log, one at a time: a
// drawn sample, and with COX_LONG every byte.
func TestFlippedBits(t *testing.T) {
	for name, killed := range map[string]bool{"closed": false, "killed": true} {
		t.Run(name, func(t *testing.T) { flipAll(t, leaveState(t, killed), killed) })
	}
}

func flipAll(t *testing.T, k kept, killed bool) {
	if v := k.look(t, copied(t, k.dir)); v.refused != nil || len(v.lost)+len(v.wrong)+len(v.named) > 0 {
		t.Fatalf("before anything was turned: %+v", v)
	}
	if _, err := sqlite.Verify(t.Context(), copied(t, k.dir)); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var flips []flip
	for _, file := range k.files(t) {
		info, err := os.Stat(filepath.Join(k.dir, file))
		must(t, err)
		if os.Getenv("COX_LONG") != "" && !testing.Short() {
			if killed && !strings.HasPrefix(filepath.Ext(file), ".db-") {
				continue // the closed one has these
			}
			for at := range int(info.Size()) {
				flips = append(flips, flip{file, at, rnd.IntN(8)})
			}
			continue
		}
		drawn := flipsDrawn[filepath.Ext(file)]
		if testing.Short() { // under the race detector, which finds nothing here
			drawn = (drawn + 19) / 20
		}
		for range min(drawn, int(info.Size())) {
			flips = append(flips, flip{file, rnd.IntN(int(info.Size())), rnd.IntN(8)})
		}
	}
	refused, harmless, named := 0, 0, 0
	dir := filepath.Join(fastDir(t), "copy")
	for _, f := range flips {
		v := k.try(t, dir, f)
		switch {
		case v.refused != nil:
			refused++
		case len(v.named) > 0:
			named++
		default:
			harmless++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("seed %d, %d flips: %d refused at the start, %d named, %d harmless", seed, len(flips), refused, named, harmless)
}

// flipsDrawn is how many bits of a file are turned without COX_LONG.
var flipsDrawn = map[string]int{".db": 120, ".db-wal": 50, ".mark": 10, ".pack": 5}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(fastDir(t), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// TestFlippedLog: a bit of the log, anywhere before its acknowledged end, keeps the store from
// being opened, and the files stay as they are; behind it nothing counts.
func TestFlippedLog(t *testing.T) {
	k := leaveState(t, true)
	for _, at := range []int{0, 20, 40, 32 + 24 + 100, 32 + 4120 + 5000} {
		dir := copied(t, k.dir)
		name := filepath.Join(dir, "journal.db-wal")
		b, err := os.ReadFile(name)
		must(t, err)
		b[at] ^= 4
		must(t, os.WriteFile(name, b, 0o600))
		_, err = sqlite.Open(dir)
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("byte %d: %v", at, err)
		}
		if after, err := os.ReadFile(name); err != nil || !bytes.Equal(after, b) {
			t.Errorf("byte %d: the log was changed, %v", at, err)
		}
	}
	dir := copied(t, k.dir)
	f, err := os.OpenFile(filepath.Join(dir, "journal.db-wal"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.Write(bytes.Repeat([]byte("torn"), 3000)) // what a loss of power leaves of a transaction
	must(t, errors.Join(err, f.Close()))
	if v := k.look(t, dir); v.refused != nil || len(v.lost)+len(v.wrong)+len(v.named) > 0 {
		t.Errorf("a torn tail: %+v", v)
	}
}

// TestFlippedRow: a damaged row costs that row and is named.
func TestFlippedRow(t *testing.T) {
	k := leaveState(t, false)
	name := filepath.Join(k.dir, "journal.db")
	b, err := os.ReadFile(name)
	must(t, err)
	found := false
	for at := range b {
		if !bytes.HasPrefix(b[at:], []byte("flip-7")) {
			continue
		}
		v := k.try(t, filepath.Join(fastDir(t), "copy"), flip{"journal.db", at + 2, 0})
		if v.refused != nil {
			t.Error(v.refused)
		}
		for _, lost := range v.lost {
			if !strings.HasSuffix(lost, ": job 7") {
				t.Errorf("lost with job 7: %s", lost)
			}
		}
		if slices.ContainsFunc(v.named, func(d store.Damage) bool { return d.Job == 7 && strings.Contains(d.String(), "job 7") }) {
			found = len(v.lost) > 0
		}
	}
	if !found {
		t.Error("nothing names the row of job 7")
	}
}
