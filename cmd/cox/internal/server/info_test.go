package server_test

import (
	"net/http"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
)

func TestInfoPingTokensAudit(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/tokens", func(*http.Request) (any, error) {
		return api.Tokens{Tokens: []api.Token{{ID: "k1", Name: "anna"}}}, nil
	})
	f.Answer("POST /v1/tokens", func(*http.Request) (any, error) {
		return api.MadeToken{Token: api.Token{ID: "k2", Name: "anna"}, Secret: "cox_k2_abc"}, nil
	})
	f.Answer("DELETE /v1/tokens/k1", func(*http.Request) (any, error) { return struct{}{}, nil })
	f.Answer("GET /v1/audit", func(*http.Request) (any, error) {
		return api.Audit{Records: []api.AuditRecord{{Seq: 3, By: "anna", UID: 1000, From: "socket", What: "submit", Job: 7}}}, nil
	})
	f.Cox(t, "info").Check(t, 0, "~main: cox 0.9 on login1", "")
	f.Cox(t, "ping").Check(t, 0, "~main answers at http://127.0.0.1:", "")
	f.Cox(t, "token", "list").Check(t, 0, "~k1  anna  valid", "")
	f.Cox(t, "token", "create", "--ttl", "24h", "--comment", "ci").Check(t, 0, "cox_k2_abc\n", "~shown only now")
	var n api.NewToken
	if f.Last(t, &n); n.TTL != 86400 || n.Comment != "ci" {
		t.Errorf("%+v", n)
	}
	link := api.WebLink{URL: "http://127.0.0.1:7461/login?code=x"}
	f.Answer("POST /v1/web-links", func(*http.Request) (any, error) { return link, nil })
	f.Cox(t, "web", "--print").Check(t, 0, "http://127.0.0.1:7461/login?code=x\n", "~it works once")
	link.URL = ""
	f.Cox(t, "web").Check(t, 69, "", "~listens on its socket alone")
	f.Cox(t, "token", "revoke", "k1").Check(t, 0, "revoked k1\n", "")
	f.Cox(t, "audit").Check(t, 0, "~anna(1000)  socket  submit  7", "")
	f.Cox(t, "version").Check(t, 0, "~server 0.9, API 1.0, at http://", "")
}
