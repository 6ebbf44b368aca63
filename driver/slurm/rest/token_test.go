package rest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// issuer makes tokens as a key does, by a clock of its own, and counts them.
type issuer struct {
	key   Key
	clock func() time.Time // nil: it is told the server's time
	fail  error
	made  int
}

func (i *issuer) Issue(ctx context.Context, user string, now time.Time) (string, error) {
	i.made++
	if i.fail != nil {
		return "", i.fail
	}
	if i.clock != nil {
		now = i.clock()
	}
	return i.key.Issue(ctx, user, now)
}

func newIssuer(t *testing.T, life time.Duration) *issuer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &issuer{key: Key{Path: file, Life: life}}
}

// A token is kept for three quarters of its life, then renewed; while that fails the old
// one serves until shortly before its end.
func TestTokensAreRenewed(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	i := newIssuer(t, 100*time.Second)
	k := newKeeper(i)
	k.now = func() time.Time { return at }
	get := func(after time.Duration, made int, works bool) string {
		t.Helper()
		at = time.Unix(1_800_000_000, 0).Add(after)
		token, err := k.tokenFor(t.Context(), "alice")
		if (err == nil) != works || i.made != made {
			t.Errorf("after %s: %v, %d made, want %d", after, err, i.made, made)
		}
		return token
	}
	first := get(0, 1, true)
	if get(74*time.Second, 1, true) != first {
		t.Error("another token")
	}
	second := get(75*time.Second, 2, true) // until 175 s
	if second == first {
		t.Error("it was not renewed")
	}
	i.fail = errors.New("no")
	if get(155*time.Second, 3, true) != second {
		t.Error("the old one would have done")
	}
	get(156*time.Second, 3, true) // not tried again at once
	get(158*time.Second, 4, true)
	get(171*time.Second, 5, false)
	i.fail = nil
	get(172*time.Second, 6, true)
	if _, err := k.tokenFor(t.Context(), "bob"); err != nil || i.made != 7 {
		t.Errorf("another user's: %v", err)
	}
}

// A command makes tokens by a clock of its own: how long one is good counts from now.
func TestClocksDiffer(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Hour, -time.Minute, 0, time.Minute, 10 * time.Hour} {
		at := time.Unix(1_800_000_000, 0)
		text, err := newIssuer(t, 100*time.Second).key.Issue(t.Context(), "alice", at.Add(skew))
		if err != nil {
			t.Fatal(err)
		}
		k := &cachedToken{}
		k.storeToken(text, at, 0, true)
		if left := k.over.Sub(at); left > 100*time.Second || left <= 0 || k.renew.After(k.over) || k.renew.Before(at) {
			t.Errorf("skew %s: over after %s, renewed after %s", skew, left, k.renew.Sub(at))
		}
	}
	// One that lies in a file, and has run out, is not believed to be fresh.
	at := time.Unix(1_800_000_000, 0)
	text, err := newIssuer(t, 100*time.Second).key.Issue(t.Context(), "alice", at.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("SLURM_JWT="+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(File(file))
	k.now = func() time.Time { return at }
	if _, err := k.tokenFor(t.Context(), "alice"); fault.KindOf(err) != fault.Unavailable || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
	k.serverTime(at.Add(-time.Hour)) // but it is good by the server's clock
	if got, err := k.tokenFor(t.Context(), "alice"); err != nil || got != text {
		t.Errorf("%q, %v", got, err)
	}
}

// Tokens are made by the server's clock, which its answers show: here it is two hours ahead,
// and refuses what has run out by then.
func TestSkewIsLearnt(t *testing.T) {
	const ahead = 2 * time.Hour
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		now := time.Now().Add(ahead)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		if q.URL.Path == "/openapi/v3" {
			_, _ = w.Write([]byte(`{"paths":{"/slurm/v0.0.42/ping/":{}}}`))
			return
		}
		if _, until := tokenLifetime(q.Header.Get("X-SLURM-USER-TOKEN")); until.Before(now) {
			w.WriteHeader(http.StatusNetworkAuthenticationRequired)
			_, _ = w.Write([]byte(`{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"jobs":[{"job_id":7,"job_state":["RUNNING"]}],"errors":[]}`))
	}))
	defer server.Close()
	i := newIssuer(t, time.Minute)
	s, err := New(Config{URL: server.URL, Tokens: i, User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	at := time.Now()
	s.keep.now = func() time.Time { return at }
	if _, err := s.Jobs(t.Context(), []uint32{7}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("with a token that has run out: %v", err)
	}
	at = at.Add(tooFresh) // one that was just made is not made again at once
	if all, err := s.Jobs(t.Context(), []uint32{7}); err != nil || len(all) != 1 || i.made != 2 {
		t.Errorf("%v, %v, %d made", all, err, i.made)
	}
}

// Who waits for a token that is being made waits no longer than it may.
func TestNobodyWaitsForTokens(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	k := newKeeper(slow{asked, release})
	var wg sync.WaitGroup
	wg.Go(func() {
		if token, err := k.tokenFor(t.Context(), "alice"); err != nil || token != "token" {
			t.Errorf("%q, %v", token, err)
		}
	})
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := k.tokenFor(ctx, "alice"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if k.noteRefused(ctx, "alice", "token") {
		t.Error("a better one is there")
	}
	close(release)
	wg.Wait()
	hangs := newKeeper(&Command{Words: []string{"sleep", "600"}})
	if _, err := hangs.tokenFor(ctx, "alice"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// slow makes a token when it is told to.
type slow struct{ asked, release chan struct{} }

func (s slow) Issue(context.Context, string, time.Time) (string, error) {
	close(s.asked)
	<-s.release
	return "token", nil
}

func TestIssuers(t *testing.T) {
	ctx, now := t.Context(), time.Unix(1_800_000_000, 0)
	got, err := (&Command{Words: []string{"echo", "SLURM_JWT=of.%u.100%%"}}).Issue(ctx, "alice", now)
	if err != nil || got != "of.alice.100%" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := (&Command{Words: []string{"sh", "-c", "echo no such user >&2; exit 1"}}).Issue(ctx, "alice", now); err == nil || !strings.Contains(err.Error(), "no such user") {
		t.Errorf("%v", err)
	}
	if _, err := (&Command{}).Issue(ctx, "alice", now); err == nil {
		t.Error("no command")
	}
	token, err := newIssuer(t, time.Hour).key.Issue(ctx, "alice", now)
	if err != nil {
		t.Fatal(err)
	}
	head, claims, _ := strings.Cut(token, ".")
	claims, signature, _ := strings.Cut(claims, ".")
	h := hmac.New(sha256.New, []byte("secret"))
	h.Write([]byte(head + "." + claims))
	text, _ := base64.RawURLEncoding.DecodeString(claims)
	if signature != base64.RawURLEncoding.EncodeToString(h.Sum(nil)) || string(text) != `{"exp":1800003600,"iat":1800000000,"sun":"alice"}` {
		t.Errorf("%s", token)
	}
	k := newKeeper(Given("a b"))
	if _, err := k.tokenFor(ctx, "alice"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a token with a blank: %v", err)
	}
	if _, err := newKeeper(File("/nonexistent")).tokenFor(ctx, "alice"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("no file: %v", err)
	}
}
