package admin

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

func (s *service) registerInfo() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1", Verb: auth.Info, ID: "info", Tag: "server", Summary: "The server's version, and who it takes the caller for",
		About: "Version and API without identity; the rest with one.",
	}, func(c *call, _ *transport.Nothing) (*api.ServerInfo, error) { return s.serverInfo(c), nil })
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/healthz", Verb: auth.Health, ID: "healthz", Tag: "server", Media: []string{"text/plain"}, Summary: "The process answers",
	}, func(c *call, _ *transport.Nothing) error {
		c.WriteBody(http.StatusOK, "text/plain", []byte("ok\n"))
		return nil
	})
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/readyz", Verb: auth.Health, ID: "readyz", Tag: "server", Media: []string{"text/plain"}, Summary: "The control plane answers",
	}, func(c *call, _ *transport.Nothing) error {
		if _, err := s.cfg.Plane.NodeViews(c.Ctx()); err != nil {
			return fault.New(fault.Unavailable, "the control plane does not answer: %w", err)
		}
		c.WriteBody(http.StatusOK, "text/plain", []byte("ready\n"))
		return nil
	})
	type auditInput struct {
		After uint64 `query:"after" doc:"number of the last record that is known"`
		Limit int    `query:"limit" minimum:"0" maximum:"10000" doc:"0: 1000"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/audit", Verb: auth.SeeAudit, ID: "audit", Tag: "server", Summary: "Who changed what, oldest first",
	}, func(c *call, in *auditInput) (*api.Audit, error) { return s.auditLog(c, in.After, in.Limit) })
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/backup", Verb: auth.Backup, ID: "backup", Tag: "server", Body: transport.TypeOf[api.Backup](),
		Example: &api.Backup{Dir: "/backup/coxswain-monday"},
		Summary: "Copy the state into a new folder on the server's machine", About: "While the server goes on. The folder must not exist, or be empty.",
	}, func(c *call, _ *transport.Nothing) (*api.BackupDone, error) { return s.writeBackup(c) })
	s.registerTokens()
	s.registerProfile()
}

// features are what a client may rely on beyond version 1.0.
var features = []string{"columns", "collapse", "exec", "watch-resume", "history", "audit", "tokens", "backup", "pools"}

func (s *service) serverInfo(c *call) *api.ServerInfo {
	out := &api.ServerInfo{Version: s.cfg.Version, API: transport.APIVersion, Oldest: transport.OldestVersion}
	if !c.ID.Known() {
		return out
	}
	out.Features, out.Name, out.Host = features, s.cfg.Name, s.host
	if s.cfg.ThrowAway {
		out.Features = append(slices.Clone(features), api.FeatureThrowAway)
	}
	out.PID, out.Started, out.Now = s.pid, s.started, s.cfg.Now()
	out.You, out.Pools, out.Change = shownIdentity(c.ID), s.shownPools(), s.cfg.Plane.LastEvent()
	if s.cfg.Gateway != nil {
		out.Gateway = s.cfg.Gateway()
	}
	if c.ID.Browser {
		t, _ := s.cfg.Plane.TokenByID(c.ID.Token)
		out.You.Session = &api.Session{Token: c.ID.Token, Expires: t.Expires}
	}
	if c.ID.Admin {
		for _, d := range s.cfg.Plane.Damages() {
			out.Damaged = append(out.Damaged, d.String())
		}
	}
	if len(out.You.Accounts) == 0 {
		if rules, err := s.cfg.InForce.Now(c.Ctx()); err == nil { // else they are not shown
			out.You.Accounts = rules.AccountsOf(c.ID.Name)
		}
	}
	return out
}

func (s *service) auditLog(c *call, after uint64, limit int) (*api.Audit, error) {
	if limit == 0 {
		limit = 1000
	}
	out := &api.Audit{Records: []api.AuditRecord{}}
	err := s.cfg.Plane.Audit(c.Ctx(), store.RecordQuery{After: after, OnlyActors: true, Limit: limit}, func(r store.Record) error {
		out.Records = append(out.Records, api.AuditRecord{
			Seq: r.Seq, At: r.At, By: r.By.Name, UID: r.By.UID, From: r.By.From, What: r.Kind, Job: job.ID(r.Job), Data: withoutSecrets(r.Data),
		})
		return nil
	})
	if len(out.Records) == limit {
		out.Next = out.Records[limit-1].Seq
	}
	return out, err
}

// withoutSecrets takes hashes of tokens and values of environments out of a record,
// at any depth.
func withoutSecrets(data json.RawMessage) json.RawMessage {
	var v any
	if len(data) == 0 || json.Unmarshal(data, &v) != nil {
		return nil
	}
	b, err := json.Marshal(scrubSecrets(v))
	if err != nil {
		return nil
	}
	return b
}

func scrubSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if k == "hash" || k == "env" || k == "set" || k == "export" || k == "export-file" || k == "script" {
				delete(v, k)
				continue
			}
			v[k] = scrubSecrets(inner)
		}
	case []any:
		for i := range v {
			v[i] = scrubSecrets(v[i])
		}
	}
	return v
}

func (s *service) writeBackup(c *call) (*api.BackupDone, error) {
	req, err := transport.DecodeBody[api.Backup](c.Call)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(req.Dir) {
		return nil, fault.New(fault.Invalid, "dir: %q is not an absolute path", req.Dir).Advise("name a folder of the server's machine that does not exist yet")
	}
	if err := fileperm.Way(req.Dir); fault.KindOf(err) == fault.Permission && !isWithin(s.cfg.Own, req.Dir) {
		return nil, fault.New(fault.Invalid, "dir: %w", err).Advise("name a folder that only root and the server's own user may write to")
	}
	if req.WithSecrets && s.cfg.Secrets == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no secrets").Advise("leave with_secrets out")
	}
	s.Log.Info("backup", "dir", req.Dir, "user", c.ID.Name, "from", c.ID.From)
	seq, err := s.cfg.Plane.Backup(c.Ctx(), filepath.Clean(req.Dir))
	if err != nil {
		return nil, err
	}
	if req.WithSecrets {
		if err := s.cfg.Secrets.CopyTo(filepath.Join(filepath.Clean(req.Dir), "secrets")); err != nil {
			return nil, fmt.Errorf("the backup lacks secrets: %w", err)
		}
	}
	return &api.BackupDone{Dir: filepath.Clean(req.Dir), Bytes: sizeOf(req.Dir), Seq: seq}, nil
}

// isWithin reports whether a path is below a folder, by its name and by where links lead.
func isWithin(folder, path string) bool {
	if folder == "" || !isBelow(folder, path) {
		return false
	}
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) { // the last of it need not exist
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return isBelow(folder, real)
		} else if at == filepath.Dir(at) {
			return false
		}
	}
}

func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

func (s *service) registerTokens() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/tokens", Verb: auth.Tokens, ID: "listTokens", Tag: "tokens", Owned: true,
		Summary: "List access tokens", About: "One's own; an administrator sees all. Never a secret.",
	}, func(c *call, _ *transport.Nothing) (*api.Tokens, error) {
		list, err := s.cfg.Plane.Tokens(c.Ctx())
		out := &api.Tokens{Tokens: []api.Token{}}
		for _, t := range list {
			if isOver := t.Session && !s.cfg.Now().Before(t.Expires); !isOver && c.Allowed(auth.Tokens, ownerOf(t)) == nil {
				out.Tokens = append(out.Tokens, shownToken(s, t))
			}
		}
		return out, err
	})
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/tokens", Verb: auth.Tokens, ID: "newToken", Tag: "tokens", Owned: true, Also: []auth.Verb{auth.Grant}, Body: transport.TypeOf[api.NewToken](), Status: http.StatusCreated,
		Example: &api.NewToken{Comment: "laptop", TTL: (30 * 24 * time.Hour).Seconds()},
		Summary: "Make an access token", About: "The secret is in this answer alone. A token that is made with a token is revoked with it. Only an administrator makes one for somebody else, or with an administrator's rights.",
	}, func(c *call, _ *transport.Nothing) (*api.MadeToken, error) { return s.newToken(c) })
	type one struct {
		ID string `path:"id"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodDelete, Path: "/v1/tokens/{id}", Verb: auth.Tokens, ID: "revokeToken", Tag: "tokens", Owned: true, Status: http.StatusNoContent,
		Summary: "Revoke an access token", About: "At once and for good, with the tokens and sessions that were made with it.",
	}, func(c *call, in *one) (*transport.None, error) {
		t, ok := s.cfg.Plane.TokenByID(in.ID)
		if !ok || c.Allowed(auth.Tokens, ownerOf(t)) != nil {
			return nil, fault.New(fault.NotFound, "you have no token %s", transport.WithoutTokens(in.ID)).Advise("cox token list; name it by its id, not by the secret")
		}
		return nil, s.cfg.Plane.RevokeToken(c.Ctx(), c.ID.Actor(), t.ID)
	})
}

func ownerOf(t state.Token) auth.Object {
	return auth.Object{Owned: true, UID: t.UID, Name: "token " + t.ID}
}

const (
	defaultTTL = 90 * 24 * time.Hour
	longestTTL = 10 * 365 * 24 * time.Hour
)

func (s *service) newToken(c *call) (*api.MadeToken, error) {
	if c.ID.Browser {
		return nil, fault.New(fault.Permission, "a session of the web console makes no tokens").Advise("cox token create makes one")
	}
	req, err := transport.DecodeBody[api.NewToken](c.Call)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	t := state.Token{
		Name: c.ID.Name, UID: c.ID.UID, GID: c.ID.GID, Accounts: req.Accounts, Admin: req.Admin, Role: req.Role, Comment: req.Comment,
		Created: now, By: c.ID.Actor(), Expires: now.Add(defaultTTL),
	}
	if err := s.forWhom(c, req, &t); err != nil {
		return nil, err
	}
	ttl := time.Duration(req.TTL * float64(time.Second))
	switch {
	case req.TTL < 0 || req.TTL > longestTTL.Seconds():
		return nil, fault.New(fault.Invalid, "ttl: %g seconds are not between 0 and ten years", req.TTL).Advise("leave it out for 90 days")
	case req.TTL > 0:
		t.Expires = now.Add(ttl)
	}
	if t.Parent = c.ID.Token; t.Parent != "" { // what a token makes does not outlive it
		if own, ok := s.cfg.Plane.TokenByID(c.ID.Token); ok && !own.Expires.IsZero() && own.Expires.Before(t.Expires) && !c.ID.Admin {
			t.Expires = own.Expires
		}
	}
	m, err := token.New()
	if err != nil {
		return nil, err
	}
	t.ID, t.Hash = m.ID, m.Hash
	if err := s.cfg.Plane.PutToken(c.Ctx(), c.ID.Actor(), t); err != nil {
		return nil, err
	}
	return &api.MadeToken{Token: shownToken(s, t), Secret: m.Secret}, nil
}

// forWhom fills whose token it is, if the caller may make it.
func (s *service) forWhom(c *call, req *api.NewToken, t *state.Token) error {
	if req.User != "" && req.User != c.ID.Name {
		if err := c.Allowed(auth.Grant, auth.Object{Name: "user " + req.User}); err != nil {
			return err
		}
		u, err := s.cfg.Users.ByName(req.User)
		if err != nil {
			return err
		}
		t.Name, t.UID, t.GID = u.Name, u.UID, u.GID
	}
	if req.Admin {
		if err := c.Allowed(auth.Grant, auth.Object{Name: "a token of an administrator"}); err != nil {
			return err
		}
	}
	switch {
	case req.Role == "":
	case auth.Role(req.Role) != auth.RoleGateway:
		return fault.New(fault.Invalid, "role: %q is none; the only one is %s", req.Role, auth.RoleGateway).Advise("leave it out for a person's token")
	case req.Admin:
		return fault.New(fault.Invalid, "a token with the role %s is no administrator's", req.Role).Advise("leave out one of both")
	default:
		if err := c.Allowed(auth.Grant, auth.Object{Name: "a token of a gateway"}); err != nil {
			return err
		}
	}
	if len(c.ID.Accounts) > 0 && len(t.Accounts) == 0 {
		t.Accounts = c.ID.Accounts
	}
	for _, a := range t.Accounts {
		if err := c.ID.MayCharge(a); err != nil {
			return err
		}
		rules, err := s.cfg.InForce.Now(c.Ctx())
		if err != nil {
			return err
		}
		if known := rules.AccountsOf(t.Name); rules.Known() && !slices.Contains(known, a) {
			return fault.New(fault.Invalid, "accounts: %s may not use account %s", t.Name, a).Advise("his accounts: %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// registerProfile serves net/http/pprof.
func (s *service) registerProfile() {
	type in struct {
		Name    string `path:"name" doc:"profile, heap, goroutine, allocs, block, mutex, trace, cmdline, symbol"`
		Seconds string `query:"seconds"`
		Debug   string `query:"debug"`
		GC      string `query:"gc"`
	}
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/debug/pprof/{name}", Verb: auth.Profile, ID: "pprof", Tag: "server",
		Media: []string{"application/octet-stream"}, Summary: "Profiles of the server", About: "As net/http/pprof has them: go tool pprof reads them.",
	}, func(c *call, in *in) error {
		if n, err := strconv.Atoi(in.Seconds); in.Seconds != "" && (err != nil || n < 0 || n > 300) {
			return fault.New(fault.Invalid, "seconds: %q is not between 0 and 300", in.Seconds)
		}
		switch in.Name {
		case "profile":
			pprof.Profile(c.W, c.R)
		case "trace":
			pprof.Trace(c.W, c.R)
		case "cmdline":
			pprof.Cmdline(c.W, c.R)
		case "symbol":
			pprof.Symbol(c.W, c.R)
		default:
			pprof.Handler(in.Name).ServeHTTP(c.W, c.R)
		}
		return nil
	})
}

func shownIdentity(id auth.Identity) api.Identity {
	return api.Identity{Name: id.Name, UID: id.UID, GID: id.GID, Accounts: id.Accounts, Admin: id.Admin, Role: string(id.Role), Via: id.Via}
}

func shownToken(s *service, t state.Token) api.Token {
	return api.Token{
		ID: t.ID, Name: t.Name, UID: t.UID, GID: t.GID, Accounts: t.Accounts, Admin: t.Admin, Role: t.Role, Comment: t.Comment,
		Created: t.Created, By: t.By.Name, Parent: t.Parent, Expires: t.Expires, Revoked: t.Revoked, Used: s.LastTokenUse(t.ID),
	}
}

// sizeOf sums the files below a folder; what cannot be read counts nothing.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if i, err := d.Info(); err == nil && i.Mode().IsRegular() {
			n += i.Size()
		}
		return nil
	})
	return n
}
