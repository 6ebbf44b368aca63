package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retries says how often a job runs again after it has failed, and after which failures. A
// retry is a new attempt of the same job; it begins when the old attempt is proved ended.
type Retries struct {
	Count   int           `json:"count"`             // attempts after the first, at most
	Backoff time.Duration `json:"backoff,omitempty"` // before the first retry; see Pause
	On      []string      `json:"on,omitempty"`      // RetryOn words and exit codes 1 to 255; empty: RetryOnError
}

// The words of Retries.On. An exit code in it is what a shell reports: 128 + signal for a
// program that a signal ended.
const (
	RetryOnError       = "error"   // any exit code but 0, any signal
	RetryOnOutOfMemory = "oom"     // the kernel ended it at its memory limit
	RetryOnNode        = "node"    // a node was lost
	RetryOnTimeout     = "timeout" // its time limit
)

// Bounds of Retries.
const (
	MaxRetries      = 1000
	MaxRetryBackoff = 24 * time.Hour   // of the first pause
	MaxRetryPause   = 10 * time.Minute // to which pauses double; a longer first pause stays as it is
)

// RetryWords lists the words of Retries.On.
func RetryWords() []string {
	return []string{RetryOnError, RetryOnOutOfMemory, RetryOnNode, RetryOnTimeout}
}

// Pause is how long a job waits before retry n, counted from 1: Backoff, doubled with each retry up
// to MaxRetryPause.
func (r *Retries) Pause(n int) time.Duration {
	pause, most := r.Backoff, max(r.Backoff, MaxRetryPause)
	for ; n > 1 && pause > 0 && pause < most; n-- {
		pause = min(2*pause, most)
	}
	return pause
}

// Covers reports whether an end is one after which the job runs again: in state s, with an exit
// code. It does not count. A nil Retries covers nothing.
func (r *Retries) Covers(s State, exit ExitCode) bool {
	if r == nil {
		return false
	}
	switch s {
	case OutOfMemory:
		return slices.Contains(r.On, RetryOnOutOfMemory)
	case NodeFail:
		return slices.Contains(r.On, RetryOnNode)
	case Timeout:
		return slices.Contains(r.On, RetryOnTimeout)
	case Failed:
		return len(r.On) == 0 || slices.Contains(r.On, RetryOnError) || slices.Contains(r.On, strconv.Itoa(exit.Shell()))
	}
	return false
}

// CheckRetryOn reports what is wrong with an entry of Retries.On.
func CheckRetryOn(entry string) error {
	n, err := strconv.Atoi(entry)
	switch {
	case slices.Contains(RetryWords(), entry):
		return nil
	case err != nil || strconv.Itoa(n) != entry:
		return fmt.Errorf("%q is neither an exit code nor one of the words %s", entry, strings.Join(RetryWords(), ", "))
	case n == 0:
		return fmt.Errorf("exit code 0 is success, after which nothing runs again")
	case n < 0 || n > 255:
		return fmt.Errorf("exit code %d is not between 1 and 255", n)
	}
	return nil
}

// check reports the first value that no job can have.
func (r *Retries) check() error {
	switch {
	case r == nil:
		return nil
	case r.Count < 1 || r.Count > MaxRetries:
		return fmt.Errorf("retries: count %d is not between 1 and %d", r.Count, MaxRetries)
	case r.Backoff < 0 || r.Backoff > MaxRetryBackoff:
		return fmt.Errorf("retries: backoff %s is not between 0 and %s", r.Backoff, MaxRetryBackoff)
	}
	for _, entry := range r.On {
		if err := CheckRetryOn(entry); err != nil {
			return fmt.Errorf("retries: %w", err)
		}
	}
	return nil
}
