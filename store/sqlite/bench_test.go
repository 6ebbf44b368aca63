package sqlite_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

func open(tb testing.TB, dir string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func lead(tb testing.TB, s store.Store) uint64 {
	tb.Helper()
	epoch, err := s.Lead(tb.Context(), "test")
	if err != nil {
		tb.Fatal(err)
	}
	return epoch
}

var filling = `,"spec":{"name":"job","command":["/bin/sh","run.sh"],"text":"` + strings.Repeat("spec ", 220) + `"}}`

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// submission is a journal record of the size of a submission.
func submission(i int) store.Record {
	data := append(strconv.AppendInt([]byte(`{"first":`), int64(i), 10), filling...)
	return store.Record{
		At: start.Add(time.Duration(i) * time.Millisecond), Kind: "submitted", Job: uint64(i),
		By: store.Actor{Name: "ada", UID: 1000, From: "socket"}, Data: data,
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend appends submissions from 16 goroutines: per record 1.2 KB of
// JSON, a script of 4 KB, and with one in three an environment of 3 KB.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 10, 32, 50} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := open(b, b.TempDir())
			epoch := lead(b, s)
			script, env := noise(4<<10), noise(3<<10)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			before := cpu()
			for range 16 {
				wg.Go(func() {
					recs, script, env := make([]store.Record, 0, batch), slices.Clone(script), slices.Clone(env)
					for {
						first := int(next.Add(int64(batch))) - batch
						recs = recs[:0]
						for i := first; i < min(first+batch, b.N); i++ {
							copy(script, fmt.Sprint("script ", i, "\n"))
							must(b, put(b, s, script))
							if i%3 == 0 {
								copy(env, fmt.Sprint("env ", i, "\n"))
								must(b, put(b, s, env))
							}
							recs = append(recs, submission(i))
						}
						if len(recs) == 0 {
							return
						}
						_, err := s.Append(b.Context(), epoch, recs)
						must(b, err)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/record")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func put(b *testing.B, s store.Store, data []byte) error {
	_, err := s.PutBlob(b.Context(), data)
	return err
}

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Error(err)
	}
}

// BenchmarkCommit is the time of one submission that comes alone, beside that of a
// sync of the same disk.
func BenchmarkCommit(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	epoch := lead(b, s)
	script := noise(4 << 10)
	var took []time.Duration
	for i := range b.N {
		copy(script, fmt.Sprint("script ", i, "\n"))
		begin := time.Now()
		must(b, put(b, s, script))
		_, err := s.Append(b.Context(), epoch, []store.Record{submission(i)})
		must(b, err)
		took = append(took, time.Since(begin))
	}
	b.StopTimer()
	f, err := os.Create(filepath.Join(dir, "plain"))
	must(b, err)
	defer f.Close()
	var syncs []time.Duration
	for range 200 {
		begin := time.Now()
		_, err := f.WriteAt(script, 0)
		must(b, err)
		must(b, f.Sync())
		syncs = append(syncs, time.Since(begin))
	}
	slices.Sort(syncs)
	b.ReportMetric(float64(syncs[len(syncs)/2].Microseconds()), "sync-p50-µs")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

func row(id int) store.JobRow {
	return store.JobRow{
		ID: uint64(id), Task: -1, Name: fmt.Sprint("train-", id%50), User: fmt.Sprint("user", id%97), Account: fmt.Sprint("lab", id%11),
		Partition: "gpu", QOS: "normal", State: "PENDING", CPUs: 64, GPUs: 8, Submitted: start.Add(time.Duration(id) * time.Second),
		Detail: json.RawMessage(fmt.Sprintf(`{"id":%d,"text":%q}`, id, strings.Repeat("detail ", 97))),
	}
}

// fill projects final jobs and then live ones.
func fill(tb testing.TB, s *sqlite.Store, final, live int) {
	epoch := lead(tb, s)
	const chunk = 2000
	for first := 1; first <= final+live; first += chunk {
		var rows []store.JobRow
		for id := first; id < first+chunk && id <= final+live; id++ {
			r := row(id)
			if id <= final {
				r.State, r.Final, r.Nodes = "COMPLETED", true, "n[1-8]"
				if id%20 == 0 {
					r.State, r.Exit = "FAILED", 1
				}
				r.Started, r.Ended = r.Submitted.Add(time.Minute), r.Submitted.Add(time.Hour)
			}
			rows = append(rows, r)
		}
		must(tb, s.Project(tb.Context(), epoch, uint64(first), rows, nil))
	}
}

func BenchmarkProject(b *testing.B) {
	s := open(b, b.TempDir())
	before := cpu()
	b.ResetTimer()
	fill(b, s, 0, b.N)
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/row")
}

// BenchmarkStart opens a store with many finished and live jobs and reads the live
// ones. -short has a tenth of them.
func BenchmarkStart(b *testing.B) {
	final, live := 1_000_000, 100_000
	if testing.Short() {
		final, live = final/10, live/10
	}
	dir := b.TempDir()
	s, err := sqlite.Open(dir)
	must(b, err)
	before := cpu()
	fill(b, s, final, live)
	b.Logf("projecting takes %v of cpu a row", (cpu()-before)/time.Duration(final+live))
	must(b, s.Close())
	var opening, living, used time.Duration
	b.ResetTimer()
	for range b.N {
		begin := time.Now()
		s, err := sqlite.Open(dir)
		must(b, err)
		opening += time.Since(begin)
		n, before := 0, cpu()
		must(b, s.Live(b.Context(), func(store.JobRow) error { n++; return nil }))
		living += time.Since(begin)
		used += cpu() - before
		if n != live {
			b.Fatalf("%d live rows, want %d", n, live)
		}
		must(b, s.Close())
	}
	b.StopTimer()
	b.ReportMetric(float64(opening.Microseconds())/1000/float64(b.N), "open-ms")
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "live-cpu-ms")
	b.ReportMetric(float64(living.Microseconds())/1000/float64(b.N), "live-ms")
	s = open(b, dir)
	if b.N > 1 {
		return // the first round was b.N == 1
	}
	for name, q := range map[string]store.Query{
		"newest-50": {Limit: 50}, "user-50": {Users: []string{"user7"}, Limit: 50},
		"user-all": {Users: []string{"user7"}}, "failed-50": {States: []string{"FAILED"}, Final: true, Limit: 50},
		"last-hour": {From: start.Add(time.Duration(final-3600) * time.Second), Final: true},
		"first-day": {To: start.Add(24 * time.Hour), Final: true}, "user-name": {Users: []string{"user7"}, Names: []string{"none"}},
	} {
		begin, n, before := time.Now(), 0, cpu()
		must(b, s.History(b.Context(), q, func(store.JobRow) error { n++; return nil }))
		b.Logf("%-10s %8d rows %v, cpu %v", name, n, time.Since(begin), cpu()-before)
	}
}
