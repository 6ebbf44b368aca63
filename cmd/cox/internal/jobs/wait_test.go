package jobs_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

func TestWait(t *testing.T) {
	f := newFake(t)
	ends := map[string]api.Job{"7": clitest.Job("7", "COMPLETED", 0), "8": clitest.Job("8", "TIMEOUT", 0), "9": clitest.Job("9", "FAILED", 3)}
	f.Answer("GET /v1/jobs/{job}/wait", func(r *http.Request) (any, error) {
		if j, ok := ends[r.PathValue("job")]; ok {
			return j, nil
		}
		return nil, clitest.JobNotFound(r.PathValue("job"))
	})
	f.Cox(t, "wait", "7").Check(t, 0, "job 7 COMPLETED after 1 min, waited 1 min\n", "")
	f.Cox(t, "wait", "7", "8", "9", "--quiet").Check(t, 124, "", "")
	f.Cox(t, "wait", "9", "-o", "json").Check(t, 3, "~\"state\": \"FAILED\"", "")
	f.Cox(t, "wait", "10").Check(t, 3, "", "~no job 10")
	f.Mux.HandleFunc("GET /v1/jobs/11/wait", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f.Cox(t, "wait", "11", "--timeout", "50ms").Check(t, 75, "", "~0 of 1 job ended within 50ms")
}

// TestInterruptedWait: a signal ends the waiting, and it is said how far the jobs are, not that a limit
// is over.
//
// Seen to fail with: every end of the waiting taken for that of --timeout.
func TestInterruptedWait(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs/{job}", func(r *http.Request) (any, error) { return clitest.Job(r.PathValue("job"), "PENDING", 0), nil })
	f.Mux.HandleFunc("GET /v1/jobs/{job}/wait", func(_ http.ResponseWriter, r *http.Request) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // to the command, which waits
		<-r.Context().Done()
	})
	const one = "~; job 7 is PENDING\n  cox wait 7 waits again; the jobs go on\n"
	f.Cox(t, "wait", "7", "--quiet").Check(t, 130, "", "~cox: interrupted after ")
	f.Cox(t, "wait", "7", "--quiet", "--timeout", "1h").Check(t, 130, "", one)
}

// TestExec has the other end of the protocol echo what it gets.
func TestExec(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("POST /v1/jobs/7/exec", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: cox-exec\r\n\r\n")
		out := frame.NewWriter(conn)
		var buf []byte
		for {
			kind, payload, grown, err := frame.Read(rw, buf)
			if err != nil {
				t.Error(err)
				return
			}
			buf = grown
			switch kind {
			case frame.Stdin:
				_ = out.Write(frame.Stdout, payload)
				_ = out.Write(frame.Stderr, []byte("heard\n"))
			case frame.EOF:
				_ = out.Write(frame.Exit, []byte(`{"status":9}`))
				return
			}
		}
	})
	coxAt(t, f.URL, "hello\n", "exec", "7", "--", "cat", "-A").Check(t, 9, "hello\n", "heard\n")
	f.Cox(t, "exec", "7").Check(t, 2, "", "~cox exec needs a job, and a command after --\n")
	f.Cox(t, "exec", "7.0.1", "--", "true").Check(t, 2, "", "~cox exec 7.1 -- true")
}

func TestHistoryStopsAtItsLimit(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/history", func(*http.Request) (any, error) {
		return api.History{Jobs: []api.Job{clitest.Job("9", "COMPLETED", 0), clitest.Job("8", "FAILED", 2), clitest.Job("7", "COMPLETED", 0)}}, nil
	})
	f.Cox(t, "history", "--limit", "2", "-o", "name").Check(t, 0, "9\n8\n", "")
	f.Cox(t, "history", "--limit", "2").Check(t, 0, "~FAILED     2", "the 2 newest; --limit 0 shows all\n")
	f.Cox(t, "history", "--since", "2h", "-t", "F").Check(t, 0, "~9    train", "")
	if got := f.Last(t, nil); !strings.Contains(got, "from=2026-11-21T08%3A00%3A00Z") || !strings.Contains(got, "states=FAILED") {
		t.Error(got)
	}
}

func TestWatchEndsWithItsJobs(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs/{job}", func(*http.Request) (any, error) { return clitest.Job("7", "RUNNING", 0), nil })
	f.Mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) { clitest.WriteRows(w, r, map[string]string{"name": "7"}) })
	f.Mux.HandleFunc("GET /v1/watch", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if got := r.URL.Query().Get("after"); got != "41" {
			t.Errorf("watched after %s", got)
		}
		io.WriteString(w, "id: 42\nevent: change\ndata: {\"seq\":42,\"kind\":\"ended\",\"job\":7,\"name\":\"7\",\"state\":\"COMPLETED\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	f.Cox(t, "watch", "7", "-o", "json").Check(t, 0, "{\"seq\":42,\"at\":\"0001-01-01T00:00:00Z\",\"kind\":\"ended\",\"job\":7,\"name\":\"7\",\"state\":\"COMPLETED\"}\n", "")
}

// TestAWatchThatIsRefusedSaysWhatHelps: the limit and what to do, once, and then it goes on.
func TestAWatchThatIsRefusedSaysWhatHelps(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs/{job}", func(*http.Request) (any, error) { return clitest.Job("7", "RUNNING", 0), nil })
	f.Mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) { clitest.WriteRows(w, r, map[string]string{"name": "7"}) })
	refusals := 2
	f.Mux.HandleFunc("GET /v1/watch", func(w http.ResponseWriter, r *http.Request) {
		if refusals--; refusals >= 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"status":503,"title":"unavailable","detail":"user anna has 256 watches open","remedy":"end some"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: 42\nevent: change\ndata: {\"seq\":42,\"kind\":\"ended\",\"job\":7,\"name\":\"7\",\"state\":\"COMPLETED\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	f.Cox(t, "watch", "7", "-o", "json").Check(t, 0, "~COMPLETED", "… user anna has 256 watches open; trying again\n  end some\n")
}
