package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Webhook is a URL that the site has told of all jobs.
type Webhook struct {
	URL        string
	On         []string // of job.NotifyEvents, and NodeEvents; empty: all of jobs
	SecretFile string   // holds the key of the signature; read for every message, so it can be changed. Empty: no signature
}

// WebhookConfig is what all webhooks have in common. Zero counts and times have defaults.
type WebhookConfig struct {
	Server  string // name of the cluster, in every message
	Version string // of the server, for User-Agent

	Timeout time.Duration   // for one try; 10 s
	Pauses  []time.Duration // before the tries after the first one; nil: webhookRetries
	Queue   int             // messages that wait, and as many that wait to be tried again; 1024

	// ErrorLine returns the line of a failed job's output that matters, empty if there is none. nil: it is
	// never sent.
	ErrorLine func(ctx context.Context, j *job.Job) string
}

// webhookRetries are the pauses before the tries after the first one.
var webhookRetries = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// NewSiteWebhook starts a notifier for one URL of the site. It goes to any address, and through the
// proxy of the environment, if there is one.
func NewSiteWebhook(w Webhook, c WebhookConfig, log *slog.Logger) *Notifier {
	events, asked := ofJobs(w.On)
	types := eventTypes(events)
	if !asked {
		types = nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // messages are rare
	return newWebhook(c, Config{Workers: siteSenders}, log, &webhookOutlet{
		config: c, client: webhookClient(transport),
		wanted: func(*job.Job) *job.Mail { return types },
		target: func(*job.Job) string { return w.URL },
		secret: w.SecretFile, nodes: slices.Contains(w.On, NodeEvents),
	})
}

// NewJobWebhooks starts a notifier for the URLs that jobs name, within what the policy allows.
func NewJobWebhooks(p WebhookPolicy, c WebhookConfig, log *slog.Logger) *Notifier {
	return newWebhook(c, Config{Workers: jobSenders, PerUser: userMessages, PerHost: hostSenders}, log, &webhookOutlet{
		config: c, client: webhookClient(p.publicTransport()),
		wanted: func(j *job.Job) *job.Mail {
			if j.Spec.Notify == nil {
				return nil
			}
			return eventTypes(j.Spec.Notify.On)
		},
		target: func(j *job.Job) string { return j.Spec.Notify.Webhook },
		check:  p.Check,
	})
}

// Bounds of the messages of jobs. A user whose receiver does not answer holds one sender, and so
// does a host that does not, so that others' messages are late only when as many receivers as there
// are senders are out of reach at once.
const (
	userMessages = 64 // of one user's jobs that wait
	jobSenders   = 64 // at once
	hostSenders  = 8  // at once to one host
)

// siteSenders is how many messages are on their way to a URL of the site at once.
const siteSenders = 4

func newWebhook(c WebhookConfig, bounds Config, log *slog.Logger, to *webhookOutlet) *Notifier {
	pauses := c.Pauses
	if pauses == nil {
		pauses = webhookRetries
	}
	bounds.Queue, bounds.Timeout = cmp.Or(c.Queue, 1024), cmp.Or(c.Timeout, 10*time.Second)
	return startNotifier(bounds, to, pauses, log)
}

// eventTypes are the events of a webhook as those of mail. Whoever asks for "end" is told of failures.
func eventTypes(on []string) *job.Mail {
	if len(on) == 0 {
		on = job.NotifyEvents
	}
	m := &job.Mail{}
	for _, e := range on {
		m.Types = append(m.Types, strings.ToUpper(e))
	}
	return m
}

// webhookClient follows no redirection: the answer to a message is no place to send it to.
func webhookClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// webhookOutlet posts a Payload for each event.
type webhookOutlet struct {
	config WebhookConfig
	client *http.Client
	wanted func(*job.Job) *job.Mail
	target func(*job.Job) string
	check  func(url string) error // why nothing may be sent there; nil: it may
	secret string                 // file
	nodes  bool                   // it is told of nodes, too
}

func (w *webhookOutlet) hostOf(o *occasion) string { return hostOf(w.target(&o.job)) }

func (w *webhookOutlet) events(j *job.Job) *job.Mail { return w.wanted(j) }

// The headers of a message.
const (
	headerEvent     = "X-Coxswain-Event"
	headerDelivery  = "X-Coxswain-Delivery"
	headerSignature = "X-Coxswain-Signature"
)

// mostAnswer bounds how much of an answer is read.
const mostAnswer = 4 << 10

// errorLineTime bounds how long the output of a failed job is read.
const errorLineTime = 2 * time.Second

func (w *webhookOutlet) deliver(ctx context.Context, o *occasion) (bool, error) {
	to := w.target(&o.job)
	if w.check != nil {
		if err := w.check(to); err != nil {
			return false, err // the policy may be newer than the job
		}
	}
	var payload *Payload
	if o.nodes != nil {
		payload = composeNodes(o, w.config.Server)
	} else {
		payload = composePayload(o, w.config.Server)
	}
	if w.config.ErrorLine != nil && payload.Event == "fail" && o.summary == nil {
		read, cancel := context.WithTimeout(ctx, errorLineTime) // a pool that does not answer leaves time for the message
		payload.addErrorLine(w.config.ErrorLine(read, &o.job))
		cancel()
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("%s: its URL cannot be used", hostOf(to))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Coxswain/"+cmp.Or(w.config.Version, "dev"))
	req.Header.Set(headerEvent, payload.Event)
	req.Header.Set(headerDelivery, payload.Delivery)
	if w.secret != "" {
		key, err := os.ReadFile(w.secret)
		if err != nil {
			return false, err
		}
		req.Header.Set(headerSignature, "sha256="+signBody(bytes.TrimRight(key, "\r\n"), body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return false, failedRequest(to, err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return true, nil
	case resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return false, fmt.Errorf("%s: %w: %s %s", hostOf(to), errLater, resp.Status, oneLine(string(answer), maxComplaint))
	}
	return false, fmt.Errorf("%s: %s %s", hostOf(to), resp.Status, oneLine(string(answer), maxComplaint))
}

// failedRequest says why a request got no answer, without the URL, which is a secret.
func failedRequest(to string, err error) error {
	if e, ok := err.(*url.Error); ok {
		err = e.Err
	}
	if refused := (*refusedAddress)(nil); asRefused(err, &refused) {
		return fmt.Errorf("%s: %w", hostOf(to), refused)
	}
	return fmt.Errorf("%s: %w: %v", hostOf(to), errLater, err)
}

// hostOf is the part of a URL that is no secret.
func hostOf(to string) string {
	if u, err := url.Parse(to); err == nil && u.Host != "" {
		return u.Host
	}
	return "webhook"
}

// signBody is the HMAC of a message with SHA-256, in hex.
func signBody(key, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
