package rest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Issuer gives out tokens: JWTs that slurmctld takes for a user (AuthAltTypes=auth/jwt).
type Issuer interface {
	// Issue makes a token for a user, that is good by the server's clock from now on.
	Issue(ctx context.Context, user string, now time.Time) (string, error)
}

// Given is a token that somebody made, for everybody it is good for: one of root's or
// SlurmUser's is for all users. It cannot be renewed.
type Given string

// Issue is Issuer's.
func (g Given) Issue(context.Context, string, time.Time) (string, error) { return string(g), nil }

// File is a file with a token, that somebody else writes anew before the token runs out.
type File string

// Issue is Issuer's.
func (f File) Issue(context.Context, string, time.Time) (string, error) {
	b, err := os.ReadFile(string(f))
	return stripTokenName(b), err
}

// Command is a command that prints a token; %u in its words is the user, %% a percent
// sign. "scontrol token username=%u lifespan=3600" is one, for root, SlurmUser and oneself.
type Command struct {
	Words []string
	Env   []string // beside PATH and HOME
}

// Issue is Issuer's.
func (c *Command) Issue(ctx context.Context, user string, _ time.Time) (string, error) {
	if len(c.Words) == 0 {
		return "", errors.New("no command that prints tokens is given")
	}
	replace := strings.NewReplacer("%%", "%", "%u", user)
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		words[i] = replace.Replace(w)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C"}, c.Env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", words[0], err, strings.TrimSpace(said.String()))
	}
	return stripTokenName(out.Bytes()), nil
}

// Key makes tokens itself, with the key that slurmctld checks them by (jwt_key, HS256):
// whoever can read that file is everybody.
type Key struct {
	Path string
	Life time.Duration // of a token; 0: 30 min. Clocks may differ by as much
}

// Issue is Issuer's.
func (k *Key) Issue(_ context.Context, user string, now time.Time) (string, error) {
	key, err := os.ReadFile(k.Path)
	if err != nil {
		return "", err
	}
	life := k.Life
	if life <= 0 {
		life = 30 * time.Minute
	}
	claims, err := json.Marshal(map[string]any{"iat": now.Unix(), "exp": now.Add(life).Unix(), "sun": user})
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return text + "." + enc.EncodeToString(h.Sum(nil)), nil
}

// stripTokenName is a token without the name that scontrol prints before it.
func stripTokenName(b []byte) string {
	return strings.TrimPrefix(string(bytes.TrimSpace(b)), "SLURM_JWT=")
}

// tokenLifetime is what a token says of itself: for how long it was made, and until when, by the
// clock of whoever made it. 0: it does not say.
func tokenLifetime(token string) (long time.Duration, until time.Time) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return 0, time.Time{}
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return 0, time.Time{}
	}
	var claims struct {
		Expires number `json:"exp"`
		Issued  number `json:"iat"`
	}
	if json.Unmarshal(b, &claims) != nil {
		return 0, time.Time{}
	}
	until = claims.Expires.asTime()
	if begun := claims.Issued.asTime(); !until.IsZero() && !begun.IsZero() {
		long = until.Sub(begun)
	}
	return long, until
}

// tokenCache keeps a token for each user, and has it renewed in time.
type tokenCache struct {
	from Issuer
	now  func() time.Time // ours

	mu   sync.Mutex
	skew time.Duration // how much the server's clock is ahead
	has  map[string]*cachedToken
}

// cachedToken is a token of a user's. Who has put something into turn works with it, and has it
// made anew: others wait as long as they may.
type cachedToken struct {
	turn  chan struct{}
	token string
	got   time.Time // by our clock
	asked time.Time // when one was last asked for
	renew time.Time // when to have a new one; zero: it is not known when it runs out
	over  time.Time // when it has run out
	bad   bool      // it was refused
}

// Moments of a token's life.
const (
	renewAfter = 0.75            // of its life
	spare      = 5 * time.Second // before its end it is not used any more
	tooFresh   = 5 * time.Second // one that was just asked for, and is refused, is not asked for again
	modest     = 2 * time.Second // a difference of clocks that is none
)

func newKeeper(from Issuer) *tokenCache {
	return &tokenCache{from: from, now: time.Now, has: map[string]*cachedToken{}}
}

// serverTime notes what the server's clock shows.
func (k *tokenCache) serverTime(at time.Time) {
	skew := at.Sub(k.now())
	if skew.Abs() <= modest {
		skew = 0
	}
	k.mu.Lock()
	k.skew = skew
	k.mu.Unlock()
}

// cachedFor is what is kept for a user.
func (k *tokenCache) cachedFor(user string) (t *cachedToken, skew time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t = k.has[user]
	if t == nil {
		t = &cachedToken{turn: make(chan struct{}, 1)}
		k.has[user] = t
	}
	return t, k.skew
}

// tokenFor returns one for a user.
func (k *tokenCache) tokenFor(ctx context.Context, user string) (string, error) {
	t, skew := k.cachedFor(user)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", noToken(user, context.Cause(ctx))
	}
	now := k.now()
	lives := t.token != "" && (t.over.IsZero() || now.Before(t.over.Add(-spare)))
	good := lives && !t.bad
	if good && (t.renew.IsZero() || now.Before(t.renew)) || lives && t.bad && now.Sub(t.asked) < tooFresh {
		return t.token, nil
	}
	t.asked = now
	fresh, err := k.from.Issue(ctx, user, now.Add(skew))
	switch {
	case err == nil && fresh == "":
		err = errors.New("it is empty")
	case err == nil && strings.ContainsAny(fresh, " \r\n\t"):
		err = errors.New("what was given is no token: it has white space in it")
	}
	if err != nil {
		if good { // the old one will do for a while
			t.postponeRenewal(now)
			return t.token, nil
		}
		return "", noToken(user, err)
	}
	_, made := k.from.(*Command)
	t.storeToken(fresh, now, skew, made)
	if !t.over.IsZero() && !now.Before(t.over) {
		return "", noToken(user, fmt.Errorf("the one that there is ran out at %s", t.over.Format(time.DateTime)))
	}
	return t.token, nil
}

// noToken is the error of a user that none can be had for: nothing was asked of the server.
func noToken(user string, why error) error {
	return fault.New(fault.Unavailable, "%w: %w", &Refusal{unauthorized, "no token to reach Slurm with for user " + user}, why).Advise("try by hand what makes it: scontrol token username=%s", user)
}

// storeToken keeps a token. It is good until the time that it says, by the server's clock; made
// says that it was made just now, perhaps by a clock that differs from what is known.
func (t *cachedToken) storeToken(fresh string, now time.Time, skew time.Duration, made bool) {
	same := t.token == fresh
	t.token, t.renew, t.over = fresh, time.Time{}, time.Time{}
	if !same {
		t.got, t.bad = now, false
	}
	long, until := tokenLifetime(fresh)
	if until.IsZero() {
		return
	}
	left := until.Sub(now.Add(skew))
	if made && !same && long > 0 && (left <= 0 || left > long) {
		left = long
	}
	t.over = now.Add(left)
	if same {
		t.postponeRenewal(now)
		return
	}
	if long <= 0 || long > left {
		long = max(left, 0)
	}
	t.renew = t.over.Add(-time.Duration(float64(long) * (1 - renewAfter)))
}

// postponeRenewal puts the next try to renew off: this one has got nothing new.
func (t *cachedToken) postponeRenewal(now time.Time) {
	if !t.over.IsZero() {
		t.renew = now.Add(max(t.over.Sub(now)/8, time.Second))
	}
}

// noteRefused notes that the server did not take a token, and reports whether another try has
// a chance of getting a better one.
func (k *tokenCache) noteRefused(ctx context.Context, user, token string) bool {
	t, _ := k.cachedFor(user)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return false
	}
	if t.token != token {
		return true // there is another one already
	}
	if k.now().Sub(t.asked) < tooFresh {
		return false
	}
	t.bad = true
	return true
}
