// Package rest reaches a Slurm cluster by slurmrestd: its versions v0.0.38 (Slurm 22.05)
// and v0.0.40 to v0.0.42 (Slurm 24.11), whichever the server offers, the newest first.
//
// The model. One Site is one address. Each call has a deadline of its own beside that of
// its context, so a controller that hangs costs that and no more; connections are bounded.
// Tokens are made for each user and renewed before they run out (token.go). Answers are
// read leniently: a number may be an object, a string or missing (lenient.go).
//
// Guarantees: an error is fault.Unavailable unless slurmctld, or slurmrestd before it asked
// anybody, has refused by a number that means so: errors.As finds the Refusal with it. What
// an answer complains of counts, whatever its HTTP status. A job is missing only if the
// answer says that there is none by that number.
//
// What slurmrestd cannot do is done by Config.Commands where it is given, and else
// fault.Unsupported: suspending jobs; at v0.0.38 signals for the script or the steps alone,
// killing at once, holding. Where nodes lie, and when slurmctld began and how it is
// configured, it does not tell: that is empty then, or what Config.Facts says.
//
// What it costs: from v0.0.40 on, a poll asks for the states of all numbers in one call, and
// for the records of those whose state has changed, and of each once in a while; a record
// that is asked for with a few others only is always read anew. v0.0.38 has calls for one
// number, and for all jobs: a poll is one call for each number, some at once. Searching a
// user's jobs (Of) without commands reads all that slurmctld knows: no version filters. So
// does PastOf at v0.0.38, from its time on.
package rest

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os/user"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Config says how slurmrestd is reached. URL must be given.
type Config struct {
	URL     string // "http://host:6820", "https://…", "unix:/path/of/socket"
	Version string // "v0.0.41"; empty: the newest of ours that it offers
	Tokens  Issuer // nil: none are sent (rest_auth/local on a socket)
	User    string // whom calls are made as that name nobody; empty: this process's user
	TLS     *tls.Config

	// Commands does what slurmrestd cannot; nil: fault.Unsupported. Close closes it.
	Commands site.Site
	// Facts is what is known of the cluster and not told by slurmrestd; a field that it tells
	// is taken from there.
	Facts site.Cluster

	Deadline    time.Duration // of one call; 0: 30 s
	Connections int           // at most; 0: 16
}

// Site is a site.Site.
type Site struct {
	cfg  Config
	base string // of addresses
	http *http.Client
	keep *tokenCache

	ctx    context.Context //nolint:containedctx // ends readings that callers share
	cancel context.CancelFunc
	wg     sync.WaitGroup

	asking chan struct{} // who has put something into it asks what is offered

	mu       sync.Mutex
	versions map[string]string // "slurm", "slurmdb" → version; empty: not asked yet
	lists    bool              // it tells the states of many numbers at once
	listing  listing
	records  site.Records
}

var _ site.Site = (*Site)(nil)

// New makes a Site. The server need not answer.
func New(cfg Config) (*Site, error) {
	cfg.Deadline = cmp.Or(cfg.Deadline, 30*time.Second)
	cfg.Connections = cmp.Or(cfg.Connections, 16)
	if cfg.Version != "" && !isSupportedVersion(cfg.Version) {
		return nil, fault.New(fault.Unsupported, "slurmrestd's version %s is none of %s", cfg.Version, strings.Join(known, ", "))
	}
	if cfg.User == "" {
		u, err := user.Current()
		if err != nil {
			return nil, fault.New(fault.Invalid, "whose jobs they are: %w", err)
		}
		cfg.User = u.Username
	}
	t := &http.Transport{
		TLSClientConfig: cfg.TLS, MaxConnsPerHost: cfg.Connections, MaxIdleConnsPerHost: cfg.Connections, IdleConnTimeout: 30 * time.Second,
		DialContext: (&net.Dialer{Timeout: cfg.Deadline, KeepAlive: 15 * time.Second}).DialContext, Proxy: http.ProxyFromEnvironment,
	}
	s := &Site{cfg: cfg, base: strings.TrimRight(cfg.URL, "/"), asking: make(chan struct{}, 1), versions: map[string]string{}}
	s.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if path, ok := strings.CutPrefix(cfg.URL, "unix:"); ok {
		path = "/" + strings.TrimLeft(path, "/")
		s.base, t.Proxy = "http://localhost", nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: cfg.Deadline}).DialContext(ctx, "unix", path)
		}
	} else if u, err := url.Parse(cfg.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "%q is no address of a slurmrestd: http://HOST:PORT, https://HOST:PORT or unix:/PATH", cfg.URL)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if cfg.Tokens != nil {
		s.keep = newKeeper(cfg.Tokens)
	}
	return s, nil
}

// Close gives connections back.
func (s *Site) Close() error {
	s.mu.Lock() // no list is asked for any more
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
	s.http.CloseIdleConnections()
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Close()
	}
	return nil
}

// known are the versions that are understood, the best first.
var known = []string{"v0.0.42", "v0.0.41", "v0.0.40", "v0.0.38"}

// old is the version of another form: one number a call, options in sbatch's names.
const old = "v0.0.38"

func isSupportedVersion(version string) bool {
	for _, v := range known {
		if v == version {
			return true
		}
	}
	return false
}

// offered finds the addresses in slurmrestd's description of itself.
var offered = regexp.MustCompile(`"\\?/(slurm|slurmdb)\\?/(v0\.0\.[0-9]+)\\?/(?:ping|diag|jobs)`)

// listed finds the call that tells the states of many jobs, which not all of 23.11 have.
var listed = regexp.MustCompile(`v0\.0\.4[0-9]\\?/jobs\\?/state`)

// findVersion is what is spoken with slurmctld ("slurm") or slurmdbd ("slurmdb").
func (s *Site) findVersion(ctx context.Context, base, user, token string) (string, error) {
	if v := s.knownVersion(base); v != "" {
		return v, s.noVersionError(base, v)
	}
	select { // the answer is large: one asks
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return "", fault.New(fault.Unavailable, "slurmrestd at %s has not said what it offers: %w", s.cfg.URL, context.Cause(ctx))
	}
	if v := s.knownVersion(base); v != "" {
		return v, s.noVersionError(base, v)
	}
	status, body, err := s.sendRequest(ctx, http.MethodGet, "/openapi/v3", nil, nil, user, token)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusUnauthorized:
		return "", s.unauthorizedError(user)
	case status != http.StatusOK:
		return "", fault.New(fault.Unavailable, "slurmrestd at %s does not say what it offers: HTTP status %d", s.cfg.URL, status)
	}
	has := map[string]map[string]bool{"slurm": {}, "slurmdb": {}}
	for _, m := range offered.FindAllSubmatch(body, -1) {
		has[string(m[1])][string(m[2])] = true
	}
	s.mu.Lock()
	for name, all := range has {
		s.versions[name] = missing
		for _, v := range known {
			if all[v] && (s.cfg.Version == "" || v == s.cfg.Version) {
				s.versions[name] = v
				break
			}
		}
	}
	s.lists = s.versions["slurm"] != old && listed.Match(body)
	v := s.versions[base]
	if v == missing && base == "slurm" { // the server may be replaced: asked again next time
		delete(s.versions, base)
	}
	s.mu.Unlock()
	return v, s.noVersionError(base, v)
}

// knownVersion is the version that was found; empty: none was asked for yet.
func (s *Site) knownVersion(base string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[base]
}

// missing stands for the version of what the server does not have.
const missing = "none"

// noVersionError is the error of what the server does not have.
func (s *Site) noVersionError(base, v string) error {
	if v != missing {
		return nil
	}
	want := strings.Join(known, ", ")
	if s.cfg.Version != "" {
		want = s.cfg.Version
	}
	if base == "slurmdb" {
		return fault.New(fault.Unsupported, "slurmrestd at %s has no slurmdb of version %s", s.cfg.URL, want).Advise("slurmrestd -s openapi/slurmdbd (Slurm 22.05: openapi/dbv0.0.38), and accounting by slurmdbd")
	}
	return fault.New(fault.Unavailable, "slurmrestd at %s offers no version of %s", s.cfg.URL, want).Advise("slurmrestd of Slurm 22.05 or 24.11, with -s openapi/slurmctld (22.05: openapi/v0.0.38)")
}

// forgetVersions has the versions asked for again.
func (s *Site) forgetVersions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.versions)
}

func (s *Site) unauthorizedError(user string) error {
	return fault.New(fault.Unavailable, "%w", &Refusal{unauthorized, "slurmrestd takes no token for user " + user}).
		Advise("AuthAltTypes=auth/jwt in slurm.conf, and a token that has not run out: scontrol token username=%s", user)
}

// slurmVersion is the version that is spoken with slurmctld.
func (s *Site) slurmVersion(ctx context.Context) (string, error) {
	if v := s.knownVersion("slurm"); v != "" {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	token := ""
	if s.keep != nil {
		var err error
		if token, err = s.keep.tokenFor(ctx, s.cfg.User); err != nil {
			return "", err
		}
	}
	return s.findVersion(ctx, "slurm", s.cfg.User, token)
}

// diag is slurmctld's account of itself.
type diag struct {
	response
	Statistics struct {
		Now   number `json:"req_time"`
		Since number `json:"req_time_start"` // its beginning, or when it was told to count anew
	} `json:"statistics"`
}

// Cluster is site.Site's. Booted is not earlier than slurmctld's beginning: when its
// statistics begin, which are counted anew at midnight, and on sdiag --reset.
func (s *Site) Cluster(ctx context.Context) (site.Cluster, error) {
	c := s.cfg.Facts
	var d diag
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/diag"}, &d); err != nil {
		return site.Cluster{}, err
	}
	if s.keep != nil && d.Statistics.Now.set {
		s.keep.serverTime(d.Statistics.Now.asTime())
	}
	c.Booted = d.Statistics.Since.asTime()
	c.Version = string(d.Meta.Slurm.Release)
	if c.Version == "" {
		return site.Cluster{}, fault.New(fault.Unavailable, "slurmrestd at %s does not say what version of Slurm it is", s.cfg.URL)
	}
	if n := string(d.Meta.Slurm.Cluster); n != "" {
		c.Name = n
	}
	s.mu.Lock()
	db := s.versions["slurmdb"]
	s.mu.Unlock()
	c.Accounts = db != "" && db != missing && (d.Meta.Plugin.Accounts == "" || d.Meta.Plugin.Accounts == "accounting_storage/slurmdbd")
	if s.cfg.Commands != nil {
		full, err := s.cfg.Commands.Cluster(ctx)
		if err != nil {
			return site.Cluster{}, err
		}
		full.Accounts = full.Accounts && c.Accounts
		return full, nil
	}
	return c, nil
}
