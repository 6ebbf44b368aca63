package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
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

func operations(t *testing.T, r *running) (ops []operation) {
	t.Helper()
	resp, body := r.ask(t, "GET", "/openapi.json", "", "")
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
		b, _ := json.Marshal(request())
		body = string(b)
	case "change":
		body = `{"select":{"ids":["1"]},"verb":"hold"}`
	case "changeNodes":
		body = `{"nodes":["v1"],"verb":"resume"}`
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
	p := newPlane()
	p.fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	other := start(t, newPlane(), nil)
	var known []auth.Verb
	for _, rule := range auth.Rules() {
		known = append(known, rule.Verb)
	}
	secrets := map[string]string{
		"no token":         "",
		"another server's": other.token(t, "anna", nil),
		"damaged":          r.token(t, "anna", nil)[:40],
		"expired":          r.token(t, "anna", func(k *state.Token) { k.Expires = time.Now().Add(-time.Second) }),
		"revoked":          r.token(t, "anna", func(k *state.Token) { k.Revoked = time.Now() }),
		"renumbered":       r.token(t, "anna", func(k *state.Token) { k.UID = 2999 }),
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
			resp, answer := r.ask(t, op.method, path, secret, body, h...)
			what := op.method + " " + op.path + " with " + name
			if open {
				if resp.StatusCode != 200 {
					t.Errorf("%s: %s", what, resp.Status)
				}
				continue
			}
			refusal(t, what, resp, answer, http.StatusUnauthorized, fault.Permission, want[name])
			if resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: no WWW-Authenticate", what)
			}
		}
	}
	if n := len(p.calls); n != 0 {
		t.Errorf("%d changes came through: %v", n, p.calls)
	}
}

// TestEveryRouteAsksWhether calls every route as somebody else, as the owner and as
// an administrator, and compares with the rule of its verb.
func TestEveryRouteAsksWhether(t *testing.T) {
	p := newPlane()
	p.fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	anna, ben := r.token(t, "anna", nil), r.token(t, "ben", nil)
	admin := r.token(t, "ben", func(k *state.Token) { k.Admin = true })
	for _, op := range operations(t, r) {
		if op.ID == "watch" || op.ID == "exec" || op.ID == "change" || op.ID == "newToken" || op.ID == "revokeToken" || op.ID == "listTokens" {
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
			resp, answer := r.ask(t, op.method, path, secret, body)
			if may == (resp.StatusCode == 403) {
				t.Errorf("%s %s as %s: %s %s", op.method, op.path, who, resp.Status, answer)
			}
			if resp.StatusCode == 403 {
				refusal(t, op.path, resp, answer, 403, fault.Permission, "may not "+string(op.Verb))
			}
		}
	}
}

// TestWhoMayChange is verb × identity over the API.
func TestWhoMayChange(t *testing.T) {
	const table = `
cancel            other -  owner +  admin +
hold              other -  owner +  admin +
hold firmly       other -  owner -  admin +
release           other -  owner +  admin +
release of firm   other -  owner -  admin +
requeue           other -  owner +  admin +
signal            other -  owner +  admin +
suspend           other -  owner -  admin +
resume            other -  owner -  admin +
top               other -  owner +  admin +
rename            other -  owner +  admin +
longer running    other -  owner -  admin +
shorter running   other -  owner +  admin +
longer waiting    other -  owner +  admin +
priority up       other -  owner -  admin +
priority down     other -  owner +  admin +
nice below zero   other -  owner -  admin +
`
	yes, long, short, up, down, nice, name := true, 7200.0, 60.0, int64(5), int64(-5), int64(-1), "x"
	changes := map[string]api.Change{
		"cancel": {Verb: "cancel"}, "hold": {Verb: "hold"}, "hold firmly": {Verb: "hold", Firm: &yes}, "release": {Verb: "release"},
		"release of firm": {Verb: "release"}, "requeue": {Verb: "requeue"}, "signal": {Verb: "signal", Signal: "USR1"},
		"suspend": {Verb: "suspend"}, "resume": {Verb: "resume"}, "top": {Verb: "top"},
		"rename":         {Verb: "update", Update: &api.Update{Name: &name}},
		"longer running": {Verb: "update", Update: &api.Update{TimeLimit: &long}}, "shorter running": {Verb: "update", Update: &api.Update{TimeLimit: &short}},
		"longer waiting": {Verb: "update", Update: &api.Update{TimeLimit: &long}},
		"priority up":    {Verb: "update", Update: &api.Update{Priority: &up}}, "priority down": {Verb: "update", Update: &api.Update{Priority: &down}},
		"nice below zero": {Verb: "update", Update: &api.Update{Nice: &nice}},
	}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		what, rest, _ := strings.Cut(line, "  ")
		cells := strings.Fields(rest)
		p := newPlane()
		p.fill(t, 1, "anna", 2001, nil)
		if strings.Contains(what, "running") {
			p.start(1, "v1")
		}
		if what == "release of firm" {
			p.jobs[0].Why.Code, p.jobs[0].Job.Flags = "held-admin", job.Held
		}
		r := start(t, p, nil)
		secrets := map[string]string{
			"other": r.token(t, "ben", nil), "owner": r.token(t, "anna", nil),
			"admin": r.token(t, "ben", func(k *state.Token) { k.Admin = true }),
		}
		for i := 0; i < len(cells); i += 2 {
			ch := changes[what]
			ch.Select.IDs = []string{"1"}
			body, _ := json.Marshal(ch)
			p.calls = nil
			resp, answer := r.ask(t, "POST", "/v1/jobs/change", secrets[cells[i]], string(body))
			var out api.Changed
			if err := json.Unmarshal([]byte(answer), &out); err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s as %s: %s %s", what, cells[i], resp.Status, answer)
			}
			if done := out.Changed == 1 && len(p.calls) == 1; done != (cells[i+1] == "+") {
				t.Errorf("%s as %s: %s, calls %v", what, cells[i], answer, p.calls)
			}
			if out.Changed == 0 && (len(out.Errors) != 1 || out.Errors[0].Error.Status != 403 || out.Errors[0].Error.Remedy == "") {
				t.Errorf("%s as %s: no reason: %s", what, cells[i], answer)
			}
			if what == "cancel" && out.Changed == 1 {
				break // it has ended
			}
		}
		r.stop()
	}
}

func TestAnAdministratorsHoldIsFirmOnOthersJobsAlone(t *testing.T) {
	p := newPlane()
	p.fill(t, 2, "anna", 2001, nil)
	r := start(t, p, nil)
	if _, err := r.admin(t).Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"1"}}, Verb: "hold"}); err != nil {
		t.Fatal(err)
	}
	soft := false
	if _, err := r.admin(t).Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"2"}}, Verb: "hold", Firm: &soft}); err != nil {
		t.Fatal(err)
	}
	c := r.as(t, "anna")
	got, err := c.Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"1", "2"}}, Verb: "release"})
	if err != nil || got.Changed != 1 || got.Names[0] != "2" || !strings.Contains(got.Errors[0].Error.Detail, "administrator's hold") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAFilterMeansWhatOneMayChange(t *testing.T) {
	p := newPlane()
	p.fill(t, 3, "anna", 2001, nil)
	p.fill(t, 3, "ben", 2002, nil)
	r := start(t, p, nil)
	got, err := r.as(t, "ben").Change(t.Context(), &api.Change{Select: api.Select{All: true}, Verb: "cancel"})
	if err != nil || got.Changed != 3 || len(got.Errors) != 0 || got.Names[0] != "4" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = r.as(t, "ben").Change(t.Context(), &api.Change{Verb: "cancel"})
	if fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("an empty selection: %v", err)
	}
}

func TestTheLifeOfAToken(t *testing.T) {
	r := start(t, newPlane(), nil)
	ctx, admin := t.Context(), r.admin(t)
	anna := r.as(t, "anna")
	made, err := anna.NewToken(ctx, &api.NewToken{Comment: "laptop", TTL: 600})
	if err != nil || made.Token.Name != "anna" || made.Token.Admin || !strings.Contains(made.Secret, made.Token.ID) {
		t.Fatalf("%+v, %v", made, err)
	}
	if r.plane.tokens[made.Token.ID].Hash == made.Secret || strings.Contains(r.log.String(), made.Secret) {
		t.Error("the secret is kept")
	}
	resp, body := r.ask(t, "GET", "/v1", made.Secret, "")
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
	if err := r.as(t, "ben").RevokeToken(ctx, made.Token.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("revoked by ben: %v", err)
	}
	if err := anna.RevokeToken(ctx, made.Token.ID); err != nil {
		t.Fatal(err)
	}
	resp, body = r.ask(t, "GET", "/v1/jobs", made.Secret, "")
	refusal(t, "after it was revoked", resp, body, 401, fault.Permission, "was revoked")
}

func TestWhatATokenMakesDoesNotOutliveIt(t *testing.T) {
	r := start(t, newPlane(), nil)
	made, err := r.as(t, "anna").NewToken(t.Context(), &api.NewToken{}) // as's token lives an hour
	if err != nil || time.Until(made.Token.Expires) > time.Hour {
		t.Errorf("%+v, %v", made, err)
	}
	made, err = r.admin(t).NewToken(t.Context(), &api.NewToken{User: "anna"})
	if err != nil || time.Until(made.Token.Expires) < 89*24*time.Hour {
		t.Errorf("%+v, %v", made, err)
	}
}

func TestAccountsBindAToken(t *testing.T) {
	r := start(t, newPlane(), nil)
	secret := r.token(t, "anna", func(k *state.Token) { k.Accounts = []string{"nlp"} })
	for account, want := range map[string]int{"nlp": 201, "vision": 403} {
		s := request()
		s.Args = []string{"--account=" + account}
		b, _ := json.Marshal(s)
		if resp, body := r.ask(t, "POST", "/v1/jobs", secret, string(b)); resp.StatusCode != want {
			t.Errorf("%s: %s %s", account, resp.Status, body)
		}
	}
}

func TestTheAuditHidesSecrets(t *testing.T) {
	r := start(t, newPlane(), nil)
	if _, err := r.as(t, "anna").Submit(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	a, err := r.admin(t).Audit(t.Context(), 0, 10)
	if err != nil || len(a.Records) != 1 || a.Records[0].By != "anna" || a.Records[0].UID != 2001 || !strings.HasPrefix(a.Records[0].From, "tcp 127.0.0.1:") {
		t.Fatalf("%+v, %v", a, err)
	}
	if got := string(a.Records[0].Data); got != `{"spec":{}}` {
		t.Errorf("%s", got)
	}
}

func TestAServerThatIsNotRootsRunsItsOwnJobsAlone(t *testing.T) {
	r := start(t, newPlane(), func(c *Config) { c.Alone = true })
	_, err := r.as(t, "anna").Submit(t.Context(), request())
	if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := r.admin(t).Submit(t.Context(), request()); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// TestAnArrayIsReadOnce names each of many tasks, as scancel does: reading the array
// for each would take minutes.
func TestAnArrayIsReadOnce(t *testing.T) {
	p := newPlane()
	var indices []uint32
	ch := &api.Change{Verb: api.VerbHold}
	for i := range uint32(3000) {
		indices = append(indices, 2*i)
		ch.Select.IDs = append(ch.Select.IDs, fmt.Sprintf("1_%d", 2*i))
	}
	p.fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: indices})
	ch.Select.IDs = append(ch.Select.IDs, "1_1", "1_[2-4]", "99999")
	r := start(t, p, nil)
	c := r.as(t, "anna")
	p.mu.Lock()
	p.scans = 0
	p.mu.Unlock()
	got, err := c.Change(t.Context(), ch)
	if err != nil || got.Changed != 3000 || len(got.Errors) != 2 || got.Errors[0].Name != "99999" || got.Errors[1].Name != "1_1" {
		t.Errorf("%d changed, %+v, %v", got.Changed, got.Errors, err)
	}
	if p.scans > 10 {
		t.Errorf("the jobs were read %d times", p.scans)
	}
}

// TestATokenOfSomebodyWhoIsGone: a number may belong to somebody else by now.
func TestATokenOfSomebodyWhoIsGone(t *testing.T) {
	r := start(t, newPlane(), nil)
	secret := r.token(t, "carol", func(k *state.Token) { k.UID, k.GID = 2001, 2001 }) // anna's number now
	resp, body := r.ask(t, "GET", "/v1/jobs", secret, "")
	refusal(t, "a removed user", resp, body, 401, fault.Permission, "whom this machine no longer has")
	secret = r.token(t, "ben", func(k *state.Token) { k.UID = 2001 })
	resp, body = r.ask(t, "GET", "/v1/jobs", secret, "")
	refusal(t, "a user with another number", resp, body, 401, fault.Permission, "has number 2002 now")
}
