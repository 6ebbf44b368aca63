package job

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Notify says which URL is told of which events of the job. The URL may be a secret: whoever knows it
// can write to the channel behind it. So it is shown to the owner and to administrators alone.
type Notify struct {
	Webhook string   `json:"webhook"`      // http or https
	On      []string `json:"on,omitempty"` // of NotifyEvents, in their order; empty: all
}

// NotifyEvents are the events that a webhook can be told of: a job (or the first task of an array) has
// begun, a job has ended, a job has failed. "end" includes failures, as with sbatch --mail-type.
var NotifyEvents = []string{"begin", "end", "fail"}

// mostURL bounds a webhook's URL in bytes.
const mostURL = 2048

// CheckWebhook reports why a text is no URL of a webhook. It looks at the form alone: whether a server
// sends anything there is the server's to say.
func CheckWebhook(text string) error {
	switch u, err := url.Parse(text); {
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("has a blank or a control character in it")
	case len(text) > mostURL:
		return fmt.Errorf("has %d characters, more than %d", len(text), mostURL)
	case err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "":
		return errors.New("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("has the scheme %s, not https or http", u.Scheme)
	case u.User != nil:
		return errors.New("has a user or a password in it, which are not sent")
	}
	return nil
}

// NotifyOn puts events in order, each once, in lower case; all stands for every event. The error names
// what is no event.
func NotifyOn(events []string) ([]string, error) {
	var out []string
	for _, e := range events {
		e = strings.ToLower(strings.TrimSpace(e))
		if e != "all" && !slices.Contains(NotifyEvents, e) {
			return nil, fmt.Errorf("%.40q is no event", e)
		}
	}
	for _, e := range NotifyEvents {
		if slices.ContainsFunc(events, func(s string) bool {
			return strings.EqualFold(strings.TrimSpace(s), e) || strings.EqualFold(strings.TrimSpace(s), "all")
		}) {
			out = append(out, e)
		}
	}
	return out, nil
}

// Hidden is the same without what only the owner may know of the URL: its path and its query.
func (n *Notify) Hidden() *Notify {
	if n == nil {
		return nil
	}
	hidden := *n
	hidden.Webhook = "…"
	if u, err := url.Parse(n.Webhook); err == nil {
		hidden.Webhook = u.Scheme + "://" + u.Host + "/…"
	}
	return &hidden
}
