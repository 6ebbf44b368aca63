package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// TestAnswersAreAsTheDocumentSays validates what the server really sends against the
// schemas that clients are made from.
func TestAnswersAreAsTheDocumentSays(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Text: "1-2", Indices: []uint32{1, 2}})
	p.Start(2, "v1")
	p.Jobs[1].Report = engine.Report{Files: []string{"/x"}, Tasks: []engine.TaskReport{{Step: 0, Rank: 1, Node: "v1"}}, Message: "m"}
	r := start(t, p, nil)
	if _, err := r.As(t, "anna").Submit(t.Context(), servertest.Request()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("..", "docs", "reference", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	comp := jsonschema.NewCompiler()
	if err := comp.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	check := func(what, pointer, body string) {
		t.Helper()
		sch, err := comp.Compile("openapi.json#" + pointer)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v in %s", what, err, body)
			return
		}
		if err := sch.Validate(v); err != nil {
			t.Errorf("%s: %v\n%s", what, err, body)
		}
	}
	admin, err := json.Marshal(servertest.Request())
	if err != nil {
		t.Fatal(err)
	}
	secret := r.Token(t, "anna", nil)
	at := func(path, method, status, media string) string {
		esc := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
		return "/paths/" + esc.Replace(path) + "/" + method + "/responses/" + status + "/content/" + esc.Replace(media) + "/schema"
	}
	for _, c := range []struct{ route, path string }{
		{"/v1", "/v1"},
		{"/v1/jobs", "/v1/jobs?states=all"},
		{"/v1/jobs/{job}", "/v1/jobs/2"},
		{"/v1/jobs/{job}", "/v1/jobs/3_2"},
		{"/v1/jobs/{job}/why", "/v1/jobs/1/why"},
		{"/v1/history", "/v1/history"},
		{"/v1/nodes", "/v1/nodes"},
		{"/v1/nodes/{node}", "/v1/nodes/v2"},
		{"/v1/partitions", "/v1/partitions"},
		{"/v1/tokens", "/v1/tokens"},
		{"/v1/settings", "/v1/settings"},
	} {
		resp, body := r.Ask(t, "GET", c.path, secret, "")
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %s", c.path, body)
		}
		check(c.path, at(c.route, "get", "200", "application/json"), body)
	}
	for _, c := range []struct{ route, body, status string }{
		{"/v1/jobs", string(admin), "201"},
		{"/v1/jobs/change", `{"select":{"ids":["1","99"]},"verb":"hold"}`, "200"},
		{"/v1/tokens", `{"comment":"x"}`, "201"},
		{"/v1/advise", string(admin), "200"},
	} {
		resp, body := r.Ask(t, "POST", c.route, secret, c.body)
		if resp.StatusCode/100 != 2 {
			t.Fatalf("%s: %s", c.route, body)
		}
		check(c.route, at(c.route, "post", c.status, "application/json"), body)
		check("body of "+c.route, strings.Replace(at(c.route, "post", "", "application/json"), "/responses/", "/requestBody", 1), c.body)
	}
	n := 0
	for _, rt := range r.Routes {
		if (rt.Example == nil) != (rt.Body == nil) {
			t.Errorf("%s has no example", rt.Pattern())
		}
		if rt.Example != nil {
			b, err := json.Marshal(rt.Example)
			if err != nil {
				t.Fatal(err)
			}
			n++
			check("example of "+rt.Pattern(), strings.Replace(at(rt.Path, strings.ToLower(rt.Method), "", "application/json"), "/responses/", "/requestBody", 1), string(b))
		}
	}
	if n < 5 {
		t.Errorf("%d examples", n)
	}
	_, body := r.Ask(t, "GET", "/v1/jobs/77", secret, "")
	check("problem", at("/v1/jobs/{job}", "get", "default", transport.ProblemType), body)
	conn, br := r.DialWatch(t, "/v1/watch?after=0")
	defer conn.Close()
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			check("event", at("/v1/watch", "get", "200", transport.EventStream), data)
			return
		}
	}
}
