package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/job"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// operation is one route as the OpenAPI document has it.
type operation struct {
	method, path string
	Verb         auth.Verb `json:"x-cox-verb"`
	ID           string    `json:"operationId"`
	Summary      string
	RequestBody  any `json:"requestBody"`
	Responses    map[string]any
}

func operations(t *testing.T, r *servertest.Running) (ops []operation) {
	t.Helper()
	resp, body := r.Ask(t, "GET", "/openapi.json", "", "")
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]operation
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", doc.OpenAPI)
	}
	for path, methods := range doc.Paths {
		for m, op := range methods {
			op.method, op.path = strings.ToUpper(m), path
			ops = append(ops, op)
		}
	}
	if len(ops) < 25 {
		t.Fatalf("only %d routes in the document", len(ops))
	}
	return ops
}

// example fills a path and gives a body that passes for the route.
func (o *operation) example() (path, body string) {
	path = strings.NewReplacer("{job}", "1", "{node}", "v1", "{id}", "abcdefghij", "{name}", "cmdline").Replace(o.path)
	switch o.ID {
	case "submit", "advise":
		b, _ := json.Marshal(servertest.Request())
		body = string(b)
	case "change":
		body = `{"select":{"ids":["1"]},"verb":"hold"}`
	case "changeNodes":
		body = `{"nodes":["v1"],"verb":"resume"}`
	case "checkNodes":
		body = `{"nodes":["v1"]}`
	case "moveMachines":
		body = `{"nodes":["v1"],"to":"b"}`
	case "abortMoves":
		body = `{"machines":["v1"]}`
	case "newToken":
		body = `{}`
	case "backup":
		body = `{"dir":"/nowhere"}`
	case "watch":
		path += "?after=0"
	}
	return path, body
}

// TestEveryRouteAsksWho calls every route of the document without identity and with
// tokens that are not good.
func TestEveryRouteAsksWho(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	other := start(t, servertest.NewPlane(), nil)
	var known []auth.Verb
	for _, rule := range auth.Rules() {
		known = append(known, rule.Verb)
	}
	secrets := map[string]string{
		"no token":         "",
		"another server's": other.Token(t, "anna", nil),
		"damaged":          r.Token(t, "anna", nil)[:40],
		"expired":          r.Token(t, "anna", func(k *state.Token) { k.Expires = time.Now().Add(-time.Second) }),
		"revoked":          r.Token(t, "anna", func(k *state.Token) { k.Revoked = time.Now() }),
		"renumbered":       r.Token(t, "anna", func(k *state.Token) { k.UID = 2999 }),
		"not bearer":       "",
	}
	want := map[string]string{
		"no token": "who are you", "another server's": "not known here", "damaged": "damaged", "expired": "expired at",
		"revoked": "was revoked", "renumbered": "has number 2001 now", "not bearer": "Basic",
	}
	for _, op := range operations(t, r) {
		if !slices.Contains(known, op.Verb) {
			t.Errorf("%s %s: %q is in no rule of auth", op.method, op.path, op.Verb)
		}
		open := op.Verb == auth.Health || op.Verb == auth.Info
		if _, documented := op.Responses["401"]; documented == open {
			t.Errorf("%s %s: 401 in the document: %v", op.method, op.path, documented)
		}
		path, body := op.example()
		for name, secret := range secrets {
			var h []string
			if name == "not bearer" {
				h = []string{"Authorization", "Basic eDp5"}
			}
			resp, answer := r.Ask(t, op.method, path, secret, body, h...)
			what := op.method + " " + op.path + " with " + name
			if open {
				if resp.StatusCode != 200 {
					t.Errorf("%s: %s", what, resp.Status)
				}
				continue
			}
			servertest.CheckRefusal(t, what, resp, answer, http.StatusUnauthorized, fault.Permission, want[name])
			if resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: no WWW-Authenticate", what)
			}
		}
	}
	if n := len(p.Changes); n != 0 {
		t.Errorf("%d changes came through: %v", n, p.Changes)
	}
}

// TestEveryRouteAsksWhether calls every route as somebody else, as the owner and as
// an administrator, and compares with the rule of its verb.
func TestEveryRouteAsksWhether(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	anna, ben := r.Token(t, "anna", nil), r.Token(t, "ben", nil)
	admin := r.Token(t, "ben", func(k *state.Token) { k.Admin = true })
	for _, op := range operations(t, r) {
		if op.ID == "watch" || op.ID == "exec" || op.ID == "change" || op.ID == "newToken" || op.ID == "revokeToken" || op.ID == "listTokens" ||
			slices.Contains([]string{"showService", "scaleService", "rolloutService", "stopService", "showSchedule", "suspendSchedule", "resumeSchedule", "runSchedule", "stopSchedule", "listSecrets", "setSecret", "deleteSecret"}, op.ID) {
			continue // tests of their own
		}
		path, body := op.example()
		for who, secret := range map[string]string{"owner": anna, "other": ben, "admin": admin} {
			id, owner := auth.Identity{UID: 2001, Via: "token"}, auth.Object{}
			switch who {
			case "other":
				id.UID = 2002
			case "admin":
				id = auth.Identity{UID: 2002, Via: "token", Admin: true}
			}
			if strings.Contains(op.path, "{job}") {
				owner = auth.Job("1", 2001)
			}
			may := (auth.Policy{}).Allowed(id, op.Verb, owner) == nil
			resp, answer := r.Ask(t, op.method, path, secret, body)
			if may == (resp.StatusCode == 403) {
				t.Errorf("%s %s as %s: %s %s", op.method, op.path, who, resp.Status, answer)
			}
			if resp.StatusCode == 403 {
				servertest.CheckRefusal(t, op.path, resp, answer, 403, fault.Permission, "may not "+string(op.Verb))
			}
		}
	}
}

func TestTheLifeOfAToken(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	ctx, admin := t.Context(), r.Admin(t)
	anna := r.As(t, "anna")
	made, err := anna.NewToken(ctx, &api.NewToken{Comment: "laptop", TTL: 600})
	if err != nil || made.Token.Name != "anna" || made.Token.Admin || !strings.Contains(made.Secret, made.Token.ID) {
		t.Fatalf("%+v, %v", made, err)
	}
	if r.Plane.TokensByID[made.Token.ID].Hash == made.Secret || strings.Contains(r.Logged.String(), made.Secret) {
		t.Error("the secret is kept")
	}
	resp, body := r.Ask(t, "GET", "/v1", made.Secret, "")
	if resp.StatusCode != 200 || !strings.Contains(body, `"name":"anna"`) {
		t.Errorf("%s", body)
	}
	list, err := anna.Tokens(ctx)
	if err != nil || len(list.Tokens) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, k := range list.Tokens {
		if k.ID == made.Token.ID && k.Used.IsZero() {
			t.Error("its use is not shown")
		}
	}
	for what, n := range map[string]*api.NewToken{"for ben": {User: "ben"}, "with rights": {Admin: true}} {
		if _, err := anna.NewToken(ctx, n); fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := admin.NewToken(ctx, n); err != nil {
			t.Errorf("%s by an administrator: %v", what, err)
		}
	}
	if _, err := admin.NewToken(ctx, &api.NewToken{User: "nobody-here"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("for nobody: %v", err)
	}
	if err := r.As(t, "ben").RevokeToken(ctx, made.Token.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("revoked by ben: %v", err)
	}
	if err := anna.RevokeToken(ctx, made.Token.ID); err != nil {
		t.Fatal(err)
	}
	resp, body = r.Ask(t, "GET", "/v1/jobs", made.Secret, "")
	servertest.CheckRefusal(t, "after it was revoked", resp, body, 401, fault.Permission, "was revoked")
}

func TestWhatATokenMakesDoesNotOutliveIt(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	made, err := r.As(t, "anna").NewToken(t.Context(), &api.NewToken{}) // as's token lives an hour
	if err != nil || time.Until(made.Token.Expires) > time.Hour {
		t.Errorf("%+v, %v", made, err)
	}
	by := r.Token(t, "ben", func(k *state.Token) { k.Admin, k.By = true, job.Actor{Name: "root"} })
	makeBy := func(secret, body string) *api.MadeToken {
		t.Helper()
		var made api.MadeToken
		resp, text := r.Ask(t, "POST", "/v1/tokens", secret, body)
		if err := json.Unmarshal([]byte(text), &made); err != nil || resp.StatusCode != http.StatusCreated || made.Token.Parent != strings.Split(secret, "_")[1] {
			t.Fatalf("%s %s", resp.Status, text)
		}
		return &made
	}
	made = makeBy(by, `{"user":"anna"}`)
	if time.Until(made.Token.Expires) < 89*24*time.Hour {
		t.Errorf("an administrator's: %+v", made)
	}
	under := makeBy(made.Secret, `{}`)
	if err := r.Admin(t).RevokeToken(t.Context(), made.Token.Parent); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*api.MadeToken{made, under} {
		resp, text := r.Ask(t, "GET", "/v1/jobs", k.Secret, "")
		servertest.CheckRefusal(t, "made with a revoked token", resp, text, 401, fault.Permission, "was revoked")
	}
	p := r.Plane
	p.Mu.Lock()
	for _, id := range []string{made.Token.ID, under.Token.ID} { // as in a journal of before
		k := p.TokensByID[id]
		k.Revoked = time.Time{}
		p.TokensByID[id] = k
	}
	p.Mu.Unlock()
	for _, k := range []*api.MadeToken{made, under} {
		resp, text := r.Ask(t, "GET", "/v1/jobs", k.Secret, "")
		servertest.CheckRefusal(t, "made with a revoked token", resp, text, 401, fault.Permission, "which was revoked")
	}
}

func TestTheAuditHidesSecrets(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	if _, err := r.As(t, "anna").Submit(t.Context(), servertest.Request()); err != nil {
		t.Fatal(err)
	}
	a, err := r.Admin(t).Audit(t.Context(), 0, 10)
	if err != nil || len(a.Records) != 1 || a.Records[0].By != "anna" || a.Records[0].UID != 2001 || !strings.HasPrefix(a.Records[0].From, "tcp 127.0.0.1:") {
		t.Fatalf("%+v, %v", a, err)
	}
	if got := string(a.Records[0].Data); got != `{"spec":{}}` {
		t.Errorf("%s", got)
	}
}

// TestATokenOfSomebodyWhoIsGone: a number may belong to somebody else by now.
func TestATokenOfSomebodyWhoIsGone(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	secret := r.Token(t, "carol", func(k *state.Token) { k.UID, k.GID = 2001, 2001 }) // anna's number now
	resp, body := r.Ask(t, "GET", "/v1/jobs", secret, "")
	servertest.CheckRefusal(t, "a removed user", resp, body, 401, fault.Permission, "whom this machine no longer has")
	secret = r.Token(t, "ben", func(k *state.Token) { k.UID = 2001 })
	resp, body = r.Ask(t, "GET", "/v1/jobs", secret, "")
	servertest.CheckRefusal(t, "a user with another number", resp, body, 401, fault.Permission, "has number 2002 now")
}

func TestPrivateJobs(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	p.Fill(t, 1, "ben", 2002, nil)
	p.Start(2, "v1")
	p.Nodes[0].Jobs = []job.ID{2}
	r := start(t, p, func(c *Config) { c.Policy = auth.Policy{Private: true} })
	c := r.As(t, "anna")
	for name, path := range map[string]string{"list": "/v1/jobs?columns=id", "history": "/v1/history?columns=id", "history of ben": "/v1/history?columns=id&users=ben"} {
		if _, body := r.Ask(t, "GET", path, r.Token(t, "anna", nil), ""); body != "1\n" {
			t.Errorf("%s: %q", name, body)
		}
	}
	for _, path := range []string{"", "/why", "/script", "/environment", "/logs", "/wait"} {
		resp, body := r.Ask(t, "GET", "/v1/jobs/2"+path, r.Token(t, "anna", nil), "")
		servertest.CheckRefusal(t, path, resp, body, 404, fault.NotFound, "there is no job 2")
	}
	ch, err := c.Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"2"}}, Verb: api.VerbCancel})
	if err != nil || ch.Changed != 0 || len(ch.Errors) != 1 || ch.Errors[0].Error.Status != 404 {
		t.Errorf("%+v, %v", ch, err)
	}
	if _, err := c.JobsPage(t.Context(), client.Query{Select: api.Select{IDs: []string{"2"}}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("by number: %v", err)
	}
	n, err := c.Node(t.Context(), "v1")
	if err != nil || len(n.Jobs) != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := r.As(t, "ben").Node(t.Context(), "v1"); err != nil || len(n.Jobs) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
}
