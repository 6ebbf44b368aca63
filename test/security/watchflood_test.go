package security

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// watchFlood is a user's thousand watches from the beginning, each begun anew when it has read everything.
type watchFlood struct {
	url, secret string
	client      *http.Client
	last        string       // line of the newest event
	read        atomic.Int64 // watches that came to it
	refused     atomic.Int64
	wrong       atomic.Pointer[string] // another answer
}

func (f *watchFlood) watchAll(ctx context.Context) {
	for ctx.Err() == nil {
		f.watchOnce(ctx)
	}
}

func (f *watchFlood) watchOnce(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/v1/watch?after=0", nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+f.secret)
	resp, err := f.client.Do(req)
	if err != nil {
		return // the test has ended, or this machine has no more connections
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		text := ""
		for lines.Scan() {
			text += lines.Text()
		}
		if !strings.Contains(text, "watches open") || !strings.Contains(text, "one watch follows all jobs") {
			f.wrong.Store(&text)
		}
		f.refused.Add(1)
		<-ctx.Done() // it is one of the thousand, and does not ask again
		return
	case resp.StatusCode != http.StatusOK:
		text := resp.Status
		f.wrong.Store(&text)
		return
	}
	for lines.Scan() {
		if lines.Text() == f.last {
			f.read.Add(1)
			return
		}
	}
}

// TestAThousandWatchesHoldNobodyUp lets one user open a thousand watches that read everything from the
// beginning, again and again, while others ask for the queue: they have it within a second. Those watches that
// are one too many are refused with the limit.
//
// Seen to fail with: no bounds of watches and turns (29 s for the queue).
func TestAThousandWatchesHoldNobodyUp(t *testing.T) {
	s := newSite(t)
	const jobs = 2500
	for range jobs {
		s.submit("ben")
	}
	last := fmt.Sprintf("id: %d", s.control.LastEvent())
	url, _ := s.serve(slog.New(slog.DiscardHandler), false) // begun after them: they are read from the journal
	_, bad := s.token("ben", nil)
	_, good := s.token("anna", nil)
	f := &watchFlood{url: url, secret: bad, last: last, client: &http.Client{Transport: &http.Transport{}}}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() { f.watchAll(ctx) })
	}
	defer func() {
		stop()
		all.Wait()
		f.client.CloseIdleConnections()
	}()
	eventually(t, "the thousand are there", func() bool { return f.refused.Load() >= 1000-256 && f.read.Load() >= 1 })
	anna := &identity{name: "anna", url: url, secret: good, client: &http.Client{Transport: &http.Transport{}}}
	defer anna.client.CloseIdleConnections()
	before := f.read.Load()
	var took []time.Duration
	for range 21 {
		began := time.Now()
		resp, text := ask(t, anna, http.MethodGet, "/v1/jobs?users=anna&columns=id,name,state", "")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("the queue: %s %s", resp.Status, text)
		}
		took = append(took, time.Since(began))
	}
	eventually(t, "the flood goes on", func() bool { return f.read.Load() > before })
	slices.Sort(took)
	t.Logf("the queue in %s, at most %s; %d watches read everything, %d were refused", took[len(took)/2], took[len(took)-1], f.read.Load(), f.refused.Load())
	// A machine that does other things beside may hold one or two of them up, but not as long as the flood did.
	if usual, longest := took[len(took)-3], took[len(took)-1]; usual > time.Second || longest > 8*time.Second {
		t.Errorf("others wait %s for the queue, and %s once", usual, longest)
	}
	if text := f.wrong.Load(); text != nil {
		t.Errorf("a watch was answered with %s", *text)
	}
}
