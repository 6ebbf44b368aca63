package server

import (
	"encoding/json"
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
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

type nothing struct{}

func (s *Server) registerAdmin() {
	addRoute(s, apiRoute{
		method: http.MethodGet, path: "/v1", verb: auth.Info, id: "info", tag: "server", summary: "What answers, and who it takes the caller for",
		about: "Version and API without identity; the rest with one.",
	}, func(c *call, _ *nothing) (*api.ServerInfo, error) { return s.serverInfo(c), nil })
	addStreamRoute(s, apiRoute{
		method: http.MethodGet, path: "/healthz", verb: auth.Health, id: "healthz", tag: "server", media: []string{"text/plain"}, summary: "The process answers",
	}, func(c *call, _ *nothing) error { c.writeBody(http.StatusOK, "text/plain", []byte("ok\n")); return nil })
	addStreamRoute(s, apiRoute{
		method: http.MethodGet, path: "/readyz", verb: auth.Health, id: "readyz", tag: "server", media: []string{"text/plain"}, summary: "The control plane answers",
	}, func(c *call, _ *nothing) error {
		if _, err := s.cfg.Plane.NodeViews(c.ctx()); err != nil {
			return fault.New(fault.Unavailable, "the control plane does not answer: %w", err)
		}
		c.writeBody(http.StatusOK, "text/plain", []byte("ready\n"))
		return nil
	})
	type auditInput struct {
		After uint64 `query:"after" doc:"number of the last record that is known"`
		Limit int    `query:"limit" minimum:"0" maximum:"10000" doc:"0: 1000"`
	}
	addRoute(s, apiRoute{
		method: http.MethodGet, path: "/v1/audit", verb: auth.SeeAudit, id: "audit", tag: "server", summary: "Who changed what, oldest first",
	}, func(c *call, in *auditInput) (*api.Audit, error) { return s.auditLog(c, in.After, in.Limit) })
	addRoute(s, apiRoute{
		method: http.MethodPost, path: "/v1/backup", verb: auth.Backup, id: "backup", tag: "server", body: typeOf[api.Backup](),
		example: &api.Backup{Dir: "/backup/coxswain-monday"},
		summary: "Copy the state into a new folder of the server's machine", about: "While the server goes on. The folder must not exist, or be empty.",
	}, func(c *call, _ *nothing) (*api.BackupDone, error) { return s.writeBackup(c) })
	s.registerTokens()
	s.registerProfile()
}

// features are what a client may rely on beyond version 1.0.
var features = []string{"columns", "collapse", "exec", "watch-resume", "history", "audit", "tokens", "backup", "pools"}

func (s *Server) serverInfo(c *call) *api.ServerInfo {
	out := &api.ServerInfo{Version: s.cfg.Version, API: apiVersion, Oldest: oldestVersion}
	if !c.id.Known() {
		return out
	}
	out.Features, out.Name, out.Host = features, s.cfg.Name, s.host
	out.PID, out.Started, out.Now = s.pid, s.started, s.cfg.Now()
	out.You, out.Pools, out.Change = shownIdentity(c.id), s.shownPools(), s.cfg.Plane.LastEvent()
	if len(out.You.Accounts) == 0 {
		if rules, err := s.rulesInForce(c.ctx()); err == nil { // else they are not shown
			out.You.Accounts = rules.AccountsOf(c.id.Name)
		}
	}
	return out
}

func (s *Server) auditLog(c *call, after uint64, limit int) (*api.Audit, error) {
	if limit == 0 {
		limit = 1000
	}
	out := &api.Audit{Records: []api.AuditRecord{}}
	err := s.cfg.Plane.Audit(c.ctx(), store.RecordQuery{After: after, OnlyActors: true, Limit: limit}, func(r store.Record) error {
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

func (s *Server) writeBackup(c *call) (*api.BackupDone, error) {
	req, err := decodeBody[api.Backup](c)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(req.Dir) {
		return nil, fault.New(fault.Invalid, "dir: %q is not an absolute path", req.Dir).Advise("name a folder of the server's machine that does not exist yet")
	}
	if err := fileperm.Way(req.Dir); fault.KindOf(err) == fault.Permission && !isWithin(s.cfg.Own, req.Dir) {
		return nil, fault.New(fault.Invalid, "dir: %w", err).Advise("name a folder that only root and the server's own user may write to")
	}
	s.log.Info("backup", "dir", req.Dir, "user", c.id.Name, "from", c.id.From)
	seq, err := s.cfg.Plane.Backup(c.ctx(), filepath.Clean(req.Dir))
	if err != nil {
		return nil, err
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

func (s *Server) registerTokens() {
	addRoute(s, apiRoute{
		method: http.MethodGet, path: "/v1/tokens", verb: auth.Tokens, id: "listTokens", tag: "tokens", owned: true,
		summary: "List access tokens", about: "One's own; an administrator sees all. Never a secret.",
	}, func(c *call, _ *nothing) (*api.Tokens, error) {
		list, err := s.cfg.Plane.Tokens(c.ctx())
		out := &api.Tokens{Tokens: []api.Token{}}
		for _, t := range list {
			if c.allowed(auth.Tokens, ownerOf(t)) == nil {
				out.Tokens = append(out.Tokens, shownToken(s, t))
			}
		}
		return out, err
	})
	addRoute(s, apiRoute{
		method: http.MethodPost, path: "/v1/tokens", verb: auth.Tokens, id: "newToken", tag: "tokens", owned: true, also: []auth.Verb{auth.Grant}, body: typeOf[api.NewToken](), status: http.StatusCreated,
		example: &api.NewToken{Comment: "laptop", TTL: (30 * 24 * time.Hour).Seconds()},
		summary: "Make an access token", about: "The secret is in this answer alone. Only an administrator makes one for somebody else, or with an administrator's rights.",
	}, func(c *call, _ *nothing) (*api.MadeToken, error) { return s.newToken(c) })
	type one struct {
		ID string `path:"id"`
	}
	addRoute(s, apiRoute{
		method: http.MethodDelete, path: "/v1/tokens/{id}", verb: auth.Tokens, id: "revokeToken", tag: "tokens", owned: true, status: http.StatusNoContent,
		summary: "Revoke an access token", about: "At once and for good.",
	}, func(c *call, in *one) (*none, error) {
		t, ok := s.cfg.Plane.TokenByID(in.ID)
		if !ok || c.allowed(auth.Tokens, ownerOf(t)) != nil {
			return nil, fault.New(fault.NotFound, "you have no token %s", withoutTokens(in.ID)).Advise("cox token list; name it by its id, not by the secret")
		}
		return nil, s.cfg.Plane.RevokeToken(c.ctx(), c.id.Actor(), t.ID)
	})
}

func ownerOf(t control.Token) auth.Object {
	return auth.Object{Owned: true, UID: t.UID, Name: "token " + t.ID}
}

const (
	defaultTTL = 90 * 24 * time.Hour
	longestTTL = 10 * 365 * 24 * time.Hour
)

func (s *Server) newToken(c *call) (*api.MadeToken, error) {
	req, err := decodeBody[api.NewToken](c)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	t := control.Token{
		Name: c.id.Name, UID: c.id.UID, GID: c.id.GID, Accounts: req.Accounts, Admin: req.Admin, Comment: req.Comment,
		Created: now, By: c.id.Actor(), Expires: now.Add(defaultTTL),
	}
	if err := s.forWhom(c, req, &t); err != nil {
		return nil, err
	}
	ttl := toDuration(req.TTL)
	switch {
	case req.TTL < 0 || req.TTL > longestTTL.Seconds():
		return nil, fault.New(fault.Invalid, "ttl: %g seconds are not between 0 and ten years", req.TTL).Advise("leave it out for 90 days")
	case req.TTL > 0:
		t.Expires = now.Add(ttl)
	}
	if c.id.Token != "" { // what a token makes does not outlive it
		if own, ok := s.cfg.Plane.TokenByID(c.id.Token); ok && !own.Expires.IsZero() && own.Expires.Before(t.Expires) && !c.id.Admin {
			t.Expires = own.Expires
		}
	}
	m, err := token.New()
	if err != nil {
		return nil, err
	}
	t.ID, t.Hash = m.ID, m.Hash
	if err := s.cfg.Plane.PutToken(c.ctx(), c.id.Actor(), t); err != nil {
		return nil, err
	}
	return &api.MadeToken{Token: shownToken(s, t), Secret: m.Secret}, nil
}

// forWhom fills whose token it is, if the caller may make it.
func (s *Server) forWhom(c *call, req *api.NewToken, t *control.Token) error {
	if req.User != "" && req.User != c.id.Name {
		if err := c.allowed(auth.Grant, auth.Object{Name: "user " + req.User}); err != nil {
			return err
		}
		u, err := s.cfg.Users.ByName(req.User)
		if err != nil {
			return err
		}
		t.Name, t.UID, t.GID = u.Name, u.UID, u.GID
	}
	if req.Admin {
		if err := c.allowed(auth.Grant, auth.Object{Name: "a token of an administrator"}); err != nil {
			return err
		}
	}
	if len(c.id.Accounts) > 0 && len(t.Accounts) == 0 {
		t.Accounts = c.id.Accounts
	}
	for _, a := range t.Accounts {
		if err := c.id.MayCharge(a); err != nil {
			return err
		}
		rules, err := s.rulesInForce(c.ctx())
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
func (s *Server) registerProfile() {
	type in struct {
		Name    string `path:"name" doc:"profile, heap, goroutine, allocs, block, mutex, trace, cmdline, symbol"`
		Seconds string `query:"seconds"`
		Debug   string `query:"debug"`
		GC      string `query:"gc"`
	}
	addStreamRoute(s, apiRoute{
		method: http.MethodGet, path: "/debug/pprof/{name}", verb: auth.Profile, id: "pprof", tag: "server",
		media: []string{"application/octet-stream"}, summary: "Profiles of the server", about: "As net/http/pprof has them: go tool pprof reads them.",
	}, func(c *call, in *in) error {
		if n, err := strconv.Atoi(in.Seconds); in.Seconds != "" && (err != nil || n < 0 || n > 300) {
			return fault.New(fault.Invalid, "seconds: %q is not between 0 and 300", in.Seconds)
		}
		switch in.Name {
		case "profile":
			pprof.Profile(c.w, c.r)
		case "trace":
			pprof.Trace(c.w, c.r)
		case "cmdline":
			pprof.Cmdline(c.w, c.r)
		case "symbol":
			pprof.Symbol(c.w, c.r)
		default:
			pprof.Handler(in.Name).ServeHTTP(c.w, c.r)
		}
		return nil
	})
}
