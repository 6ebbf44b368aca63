package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// received is one request that a test's server got.
type received struct {
	header http.Header
	body   []byte
}

// receiver is a server that answers with the statuses one after another, the last one for ever.
func receiver(t *testing.T, statuses ...int) (*httptest.Server, chan received) {
	t.Helper()
	got := make(chan received, 100)
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		status := statuses[min(int(n.Add(1)), len(statuses))-1]
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		got <- received{r.Header, body}
	}))
	t.Cleanup(s.Close)
	return s, got
}

// awaitRequest waits for a request.
func awaitRequest(t *testing.T, got chan received) (received, Payload) {
	t.Helper()
	select {
	case r := <-got:
		var p Payload
		if err := json.Unmarshal(r.body, &p); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		return r, p
	case <-time.After(2 * time.Minute):
		t.Fatal("no request came")
	}
	return received{}, Payload{}
}

// keepTrying are pauses for tests that have nothing to wait for.
var keepTrying = []time.Duration{time.Millisecond, time.Millisecond}

func startHook(t *testing.T, start func(WebhookConfig, *slog.Logger) *Notifier, c WebhookConfig) (*Notifier, *sink) {
	t.Helper()
	log := &sink{}
	if c.Server == "" {
		c.Server = "test"
	}
	n := start(c, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { closeNow(t, n) })
	return n, log
}

func siteHook(w Webhook) func(WebhookConfig, *slog.Logger) *Notifier {
	return func(c WebhookConfig, log *slog.Logger) *Notifier { return NewSiteWebhook(w, c, log) }
}

func jobHooks(list ...string) func(WebhookConfig, *slog.Logger) *Notifier {
	p, err := ParseWebhookPolicy(list)
	if err != nil {
		panic(err)
	}
	return func(c WebhookConfig, log *slog.Logger) *Notifier { return NewJobWebhooks(p, c, log) }
}

// withHook is a job in a state, with a webhook and without mail.
func withHook(state job.State, url string, on ...string) *job.Job {
	j := view(state, 1, true)
	j.Spec.Mail, j.Spec.Notify = nil, &job.Notify{Webhook: url, On: on}
	return j
}

// The site's webhook gets each event of any job: a line for people, the facts, and a signature that
// the receiver can check.
//
// Seen to fail with: a signature of the text alone; events that are not asked for.
func TestSiteWebhook(t *testing.T) {
	s, got := receiver(t, http.StatusOK)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := WebhookConfig{ErrorLine: func(context.Context, *job.Job) string { return "CUDA <error> @all & more\nx" }}
	n, log := startHook(t, siteHook(Webhook{URL: s.URL + "/secret-path", SecretFile: key}), c)
	running, failed := view(job.Running, 1, true), view(job.Failed, 1, true)
	running.Spec.Mail, failed.Spec.Mail = nil, nil
	failed.Exit.Status = 3
	n.Job(Change{Before: view(job.Pending, 0, false), After: running})
	_, begin := awaitRequest(t, got)
	n.Job(Change{Before: running, After: failed})
	r, p := awaitRequest(t, got)
	if begin.Event != "begin" || begin.Text != "job 7 (train) of anna began" || begin.Job.ExitCode != nil || begin.Job.Error != "" {
		t.Errorf("%+v", begin)
	}
	if want := "job 7 (train) of anna failed after 00:01:05: exit code 3: CUDA &lt;error&gt; @\u200ball &amp; more x"; p.Text != want {
		t.Errorf("%q\nwant\n%q", p.Text, want)
	}
	if p.Event != "fail" || p.Job.State != "FAILED" || *p.Job.ExitCode != 3 || p.Job.Elapsed != 65 || p.Job.Error != "CUDA <error> @all & more x" || p.Server != "test" || p.Delivery != "test-7.1-fail" {
		t.Errorf("%+v", p)
	}
	h := hmac.New(sha256.New, []byte("hush"))
	h.Write(r.body)
	if want := "sha256=" + hex.EncodeToString(h.Sum(nil)); r.header.Get("X-Coxswain-Signature") != want || r.header.Get("X-Coxswain-Event") != "fail" || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v, want the signature %s", r.header, want)
	}
	closeNow(t, n)
	if s := n.Stats(); s != (Stats{Sent: 2}) || log.String() != "" {
		t.Errorf("%+v\n%s", s, log)
	}
}

// A webhook is told of the events that are asked for; whoever asks for the end is told of a failure.
func TestWebhookEvents(t *testing.T) {
	s, got := receiver(t, http.StatusNoContent)
	for _, c := range []struct {
		on    []string
		state job.State
		want  string
	}{
		{[]string{"end"}, job.Completed, "end"},
		{[]string{"end"}, job.Failed, "fail"},
		{[]string{"fail"}, job.Failed, "fail"},
		{[]string{"fail"}, job.Completed, ""},
		{[]string{"begin"}, job.Failed, ""},
		{nil, job.Timeout, "fail"},
		{nil, job.Cancelled, "end"},
	} {
		n, log := startHook(t, siteHook(Webhook{URL: s.URL, On: c.on}), WebhookConfig{})
		n.Job(Change{Before: view(job.Running, 1, true), After: view(c.state, 1, true)})
		closeNow(t, n)
		if sent := n.Stats().Sent; (sent == 1) != (c.want != "") {
			t.Errorf("%v of %s: %d sent\n%s", c.on, c.state, sent, log)
		} else if sent == 1 {
			if _, p := awaitRequest(t, got); p.Event != c.want {
				t.Errorf("%v of %s: %q, want %q", c.on, c.state, p.Event, c.want)
			}
		}
	}
}

// An array is one message, not one for each of its tasks.
func TestWebhookOfAnArray(t *testing.T) {
	s, got := receiver(t, http.StatusOK)
	n, _ := startHook(t, siteHook(Webhook{URL: s.URL, On: []string{"end"}}), WebhookConfig{})
	for i := range uint32(3) {
		j := view(job.Completed, 1, true)
		j.ID, j.Array = job.ID(7+i), &job.ArrayTask{Job: 7, Index: i, Count: 3}
		if i == 1 {
			j.State, j.Exit.Status = job.Failed, 2
		}
		before := *j
		before.State = job.Running
		n.Job(Change{Before: &before, After: j})
	}
	_, p := awaitRequest(t, got)
	closeNow(t, n)
	if p.Event != "fail" || p.Job.ID != "7" || p.Job.Tasks != 3 || p.Text != "array 7 (train) of anna failed: Mixed, ExitCode [0-2]" || n.Stats().Sent != 1 {
		t.Errorf("%+v, %+v", p, n.Stats())
	}
}

// What may pass is tried again, as the same delivery, a bounded number of times; a refusal is not. The
// log has the host, never the path, which is a secret.
//
// Seen to fail with: retries of a 404; a redirection that is followed; a URL in the log.
func TestWebhookRetries(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		requests int
		want     Stats
		log      string
	}{
		{[]int{500, 429, 200}, 3, Stats{Sent: 1, Retried: 2}, ""},
		{[]int{503}, 3, Stats{Failed: 1, Retried: 2}, "503 Service Unavailable"},
		{[]int{404}, 1, Stats{Failed: 1}, "404 Not Found"},
		{[]int{302}, 1, Stats{Failed: 1}, "302 Found"},
	} {
		s, got := receiver(t, c.statuses...)
		n, log := startHook(t, siteHook(Webhook{URL: s.URL + "/secret-path"}), WebhookConfig{Pauses: keepTrying})
		n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Completed, 1, true)})
		first := ""
		for range c.requests {
			r, _ := awaitRequest(t, got)
			if first == "" {
				first = r.header.Get("X-Coxswain-Delivery")
			} else if again := r.header.Get("X-Coxswain-Delivery"); again != first {
				t.Errorf("%v: delivery %q, then %q", c.statuses, first, again)
			}
		}
		awaitStats(t, n, c.want)
		closeNow(t, n)
		if text := log.String(); !strings.Contains(text, c.log) || strings.Contains(text, "secret-path") || len(got) > 0 {
			t.Errorf("%v: %d more requests\n%s", c.statuses, len(got), text)
		}
	}
}

// awaitStats waits until every message has its end.
func awaitStats(t *testing.T, n *Notifier, want Stats) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); n.Stats() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v, want %+v", n.Stats(), want)
		}
	}
}

// What waits to be tried again is given up when the server ends, which waits for no pause.
func TestWebhookRetriesEndWithTheServer(t *testing.T) {
	s, got := receiver(t, 500)
	n, _ := startHook(t, siteHook(Webhook{URL: s.URL}), WebhookConfig{Pauses: []time.Duration{time.Hour}})
	n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Completed, 1, true)})
	awaitRequest(t, got)
	awaitStats(t, n, Stats{Retried: 1})
	closeNow(t, n)
	if s := n.Stats(); s != (Stats{Retried: 1, Dropped: 1}) {
		t.Errorf("%+v", s)
	}
}

// The webhook of a job leads to public addresses and to the hosts that the site lists, whatever its name
// resolves to, and nowhere else: not at submission, and not later when the name has another address.
//
// Seen to fail with: a check of the text alone (127.1 reaches this machine); a dialer of the site.
func TestJobWebhooksStayOutsideTheSite(t *testing.T) {
	s, got := receiver(t, 200)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	n, log := startHook(t, jobHooks("public"), WebhookConfig{Pauses: []time.Duration{}})
	for i, url := range []string{s.URL, "http://127.1:" + port, "http://2130706433:" + port, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://[::1]:" + port} {
		n.Job(Change{Before: withHook(job.Running, url), After: withHook(job.Completed, url)})
		awaitStats(t, n, Stats{Failed: uint64(i + 1)})
	}
	if len(got) > 0 {
		t.Errorf("%d requests came\n%s", len(got), log)
	}
	// A name that the text says nothing about, and which is 127.0.0.1 when it is looked up.
	out := &webhookOutlet{client: webhookClient(WebhookPolicy{Public: true}.publicTransport()), target: func(*job.Job) string { return "http://localhost:" + port }}
	if _, err := out.deliver(t.Context(), &occasion{job: *withHook(job.Completed, ""), event: End}); err == nil || !strings.Contains(err.Error(), "is not public, and notify.job_webhooks does not name its host") || len(got) > 0 {
		t.Errorf("%v, %d requests", err, len(got))
	}
	n, log = startHook(t, jobHooks("127.0.0.1"), WebhookConfig{})
	n.Job(Change{Before: withHook(job.Running, s.URL), After: withHook(job.Completed, s.URL)})
	if _, p := awaitRequest(t, got); p.Event != "end" {
		t.Errorf("%+v\n%s", p, log)
	}
	n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Completed, 1, true)}) // of a job without a webhook
	closeNow(t, n)
	if s := n.Stats(); s != (Stats{Sent: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestWebhookPolicy(t *testing.T) {
	for _, c := range []struct {
		list []string
		url  string
		want string // in the refusal; empty: it may
	}{
		{[]string{"public"}, "https://hooks.slack.com/services/T/B/x", ""},
		{[]string{"public"}, "https://10.0.0.1/x", `"10.0.0.1" is an address inside the site, and the site's policy allows webhooks of jobs only at public addresses`},
		{[]string{"public"}, "https://[fd00::1]/x", "inside the site"},
		{[]string{"public"}, "https://LOCALHOST./x", "inside the site"},
		{[]string{"public", "10.0.0.1"}, "https://10.0.0.1/x", ""},
		{[]string{"*.example.org"}, "https://chat.EXAMPLE.org/x", ""},
		{[]string{"*.example.org"}, "https://example.org/x", `"example.org" is not among the hosts that the site's policy allows for webhooks of jobs: *.example.org`},
		{[]string{"*.example.org"}, "https://evilexample.org/x", "not among the hosts"},
		{nil, "https://hooks.slack.com/x", "the site's policy forbids webhooks of jobs"},
	} {
		p, err := ParseWebhookPolicy(c.list)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Check(c.url)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "") {
			t.Errorf("%v, %s: %v (%s)", c.list, c.url, err, fault.Remedy(err))
		}
	}
	for _, bad := range []string{"", "https://x.org/", "a b", "*", "x/*", "user@host"} {
		if _, err := ParseWebhookPolicy([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Every block of addresses that is no host of the public Internet, or hides one, is refused.
func TestPublicAddresses(t *testing.T) {
	for ip, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1": true, "1.1.1.1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false,
		"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "192.0.2.1": false, "::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false,
		"ff02::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:db8::1": false, "fec0::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
}

// A receiver that never answers costs its own time-out and nothing else: the caller does not wait, and
// what does not fit into the queue is dropped and counted.
func TestASlowWebhookDelaysNobody(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-hang }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	n, log := startHook(t, siteHook(Webhook{URL: s.URL}), WebhookConfig{Queue: 2, Timeout: 50 * time.Millisecond, Pauses: []time.Duration{}})
	for range 50 {
		n.Job(Change{Before: view(job.Running, 1, true), After: view(job.Completed, 1, true)})
	}
	if s := n.Stats(); s.Dropped < 50-2-4-4 || !strings.Contains(log.String(), "the queue is full") {
		t.Errorf("%+v\n%s", s, log)
	}
	closeNow(t, n)
	if s := n.Stats(); s.Sent != 0 || s.Failed+s.Dropped != 50 || !strings.Contains(log.String(), "deadline exceeded") {
		t.Errorf("%+v\n%s", s, fmt.Sprint(log))
	}
}
