package services

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// withDevices is the beginning of both programs: a process locks the devices that it was given for as
// long as it lives, and notes it if another process has one of them.
const withDevices = `
import fcntl, os, sys
held = []
for d in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
    held.append(open("device-" + d, "a"))
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        open("overbooked", "a").write("%s: device %s\n" % (sys.argv, d))
with open("counts", "a") as f:
    f.write("%s %d\n" % (os.path.basename(sys.argv[0]), len(held)))
`

// answers is the service: it works 200 ms on each request.
const answers = withDevices + `
import http.server, time
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(0.2)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"day 1")
    do_POST = do_GET
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
`

// trains is the batch job: it does work in units and notes each. It is told to save by a signal, and goes
// on from what it saved. Its first attempt does no more than half, so that there is always a rest.
const trains = withDevices + `
import signal, time
units, at = 40, 0
restore = os.environ.get("COX_RESTORE_FROM")
if restore:
    at = int(open(os.path.join(restore, "at")).read() if os.path.isdir(restore) else open(restore).read())
asked = False
def ask(*args):
    global asked
    asked = True
signal.signal(signal.SIGUSR1, ask)
log = open("units", "a")
log.write("from %d\n" % at)
log.flush()
while at < units:
    if asked:
        to = os.environ["COX_CHECKPOINT_DIR"]
        open(os.path.join(to, "at"), "w").write(str(at))
        open(os.path.join(to, "done.new"), "w").write("at")
        os.rename(os.path.join(to, "done.new"), os.path.join(to, "done"))
        while True:
            time.sleep(1)
    time.sleep(0.05)
    if restore or at < units / 2:
        log.write("unit %d\n" % at)
        log.flush()
        at += 1
open("result", "w").write(str(sum(range(at))))
`

// TestAShortDay is a day of a service and batch on 8 devices, shortened: a service of 1 replica grows to 3
// by its load, for which a batch job yields, with what it did saved; the load ends, the devices of the
// replicas that end are given to the batch job at once, and it ends with its whole result. No request
// fails, no unit of work is lost or done twice, and no device is two processes' at a time.
//
// Seen to fail with: a QOS of the service that preempts nothing, a batch job that does not save, and
// a lock of devices that all processes share.
func TestAShortDay(t *testing.T) {
	s := newSiteWith(t, ", gpus_per_node: 8")
	work := t.TempDir()
	for name, text := range map[string]string{"answers.py": answers, "trains.py": trains} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := "qos: [{name: serving, priority: 10, preempts: [batch]}, {name: batch}]\npreemption: {by: [qos], mode: checkpoint, signal: USR1, grace: 30s}\n"
	if _, err := s.client.SetPolicy(t.Context(), &api.SetPolicy{Text: rules}); err != nil {
		t.Fatal(err)
	}
	service := fmt.Sprintf("kind: service\nname: chat\nqos: serving\nworkdir: %s\nreplicas: {min: 1, max: 3}\nscale: {metric: in_flight, target: 2, cooldown: 2s}\n"+
		"ports: [http]\ncpus: 1\nmemory: 100M\ngpus: 2\ndrain: 1s\ncommand: exec python3 answers.py\n", work)
	file := filepath.Join(work, "chat.yaml")
	if err := os.WriteFile(file, []byte(service), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cox("submit", file)
	s.until("one replica", settled(1, 1))
	got, err := s.client.Submit(t.Context(), &api.Submit{
		Form: api.FormSbatch, File: "train.sh", Text: "#!/bin/sh\nexec python3 trains.py\n", Dir: work, Environ: os.Environ(),
		Args: []string{"--qos=batch", "--gpus=6", "--cpus-per-task=1", "--mem=100M", "--requeue", "--output=train.out"},
	})
	if err != nil {
		t.Fatal(err)
	}
	batch := got.ID.String()
	s.untilJob(batch, "runs beside one replica", func(j *api.Job) bool { return j.State == "RUNNING" && len(lines(t, work, "units")) > 5 })

	l := s.startLoad()
	defer l.wait.Wait()
	defer l.stop()
	s.untilJob(batch, "has saved and waits", func(j *api.Job) bool { return j.State == "PENDING" && j.SavedAs != "" })
	v := s.until("three replicas", settled(1, 3))
	if v.Replicas.Want != 3 {
		t.Errorf("%d replicas are wanted", v.Replicas.Want)
	}
	if j, err := s.client.Job(t.Context(), batch); err != nil || j.State != "PENDING" {
		t.Errorf("beside three replicas of 2 devices each, the batch job of 6 is %+v, %v", j, err)
	}
	l.check(t, "scale-out", 0)

	l.stop()
	l.wait.Wait()
	l.check(t, "the load ends", 0)
	var fewer time.Time
	s.until("fewer wanted", func(v *api.Service) bool { fewer = time.Now(); return v.Replicas.Want == 1 })
	s.untilJob(batch, "runs again", func(j *api.Job) bool { return j.State == "RUNNING" || j.State == "COMPLETED" })
	took := time.Since(fewer)
	t.Logf("the batch job had its devices %s after one replica was wanted", took.Round(time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("scale-in took %s to give devices back", took)
	}
	s.untilJob(batch, "ends", func(j *api.Job) bool { return j.State == "COMPLETED" && j.Attempt == 2 })
	s.until("one replica", settled(1, 1))

	if result, err := os.ReadFile(filepath.Join(work, "result")); err != nil || string(result) != "780" {
		t.Errorf("the result is %q, %v", result, err)
	}
	var begun, units []string
	for _, line := range lines(t, work, "units") {
		if n, ok := strings.CutPrefix(line, "unit "); ok {
			units = append(units, n)
		} else {
			begun = append(begun, line)
		}
	}
	if len(begun) != 2 || begun[0] != "from 0" || begun[1] == "from 0" {
		t.Errorf("the attempts began %q", begun)
	}
	for i, n := range units {
		if n != fmt.Sprint(i) {
			t.Fatalf("unit %s is the one after %q", n, units[:i])
		}
	}
	counts := lines(t, work, "counts")
	slices.Sort(counts)
	if want := []string{"answers.py 2", "answers.py 2", "answers.py 2", "trains.py 6", "trains.py 6"}; !slices.Equal(counts, want) {
		t.Errorf("processes had devices: %q, want %q", counts, want)
	}
	if _, err := os.Stat(filepath.Join(work, "overbooked")); err == nil {
		t.Errorf("devices were two processes': %q", lines(t, work, "overbooked"))
	}
}

// untilJob waits until a job is as wanted.
func (s *site) untilJob(id, what string, is func(*api.Job) bool) {
	s.t.Helper()
	var last *api.Job
	for late := time.Now().Add(60 * time.Second); time.Now().Before(late); <-time.After(20 * time.Millisecond) {
		if j, err := s.client.Job(s.t.Context(), id); err == nil {
			if last = j; is(j) {
				return
			}
		}
	}
	s.t.Fatalf("job %s: not %s: %+v", id, what, last)
}

// lines are the lines of a file, which may not be there yet.
func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
