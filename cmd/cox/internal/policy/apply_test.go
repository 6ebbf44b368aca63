package policy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// rules are three revisions, of which the last is in force.
var rules = []api.Policy{
	{Revision: 1, At: time.Date(2026, 11, 1, 8, 0, 0, 0, time.Local), By: "root", File: "queues.yaml", Hash: strings.Repeat("a", 64), Note: "first"},
	{Revision: 2, At: time.Date(2026, 11, 2, 8, 0, 0, 0, time.Local), By: "anna", File: "queues.yaml", Hash: strings.Repeat("b", 64)},
	{Revision: 3, At: time.Date(2026, 11, 3, 8, 0, 0, 0, time.Local), By: "root", Hash: strings.Repeat("a", 64), Back: 1},
}

// withRules is a server whose rules are at revision 3; it records the requests to set them.
func withRules(t *testing.T, asked *[]api.SetPolicy) *clitest.Server {
	f := newFake(t)
	f.Answer("GET /v1/policy", func(r *http.Request) (any, error) {
		switch r.URL.Query().Get("revision") {
		case "":
			return api.Policy{Revision: 3, Text: "accounts: []\n"}, nil
		case "1":
			return api.Policy{Revision: 1, Text: "qos: []\n"}, nil
		}
		return nil, fault.New(fault.NotFound, "there is no revision %s", r.URL.Query().Get("revision")).Advise("cox policy history lists them")
	})
	f.Answer("GET /v1/policy/history", func(*http.Request) (any, error) { return api.PolicyHistory{Policies: rules}, nil })
	f.Answer("PUT /v1/policy", func(*http.Request) (any, error) {
		var req api.SetPolicy
		f.Last(t, &req)
		*asked = append(*asked, req)
		done := api.PolicyDone{Policy: rules[2], Changed: req.Text != "same\n", Warnings: []string{"account old has no jobs"}}
		if done.Changed {
			done.Changes = []api.PolicyChange{{Text: "account nlp changes", Lines: []string{"- shares: 1", "+ shares: 2"}}}
			done.Effects = []string{"2 waiting jobs may start"}
		}
		switch {
		case strings.HasPrefix(req.Text, "bad"):
			return nil, fault.New(fault.Invalid, "%s:1: there is no field bad", req.File).Advise("docs/reference/queues.md has every field")
		case !req.DryRun && req.Note == "late":
			return nil, fault.New(fault.Conflict, "the policy is at revision 4, not 3").Advise("look at it: cox policy show")
		case !req.DryRun:
			done.Policy.Revision = 4
		}
		return done, nil
	})
	return f
}

const applied = "account nlp changes\n  - shares: 1\n  + shares: 2\n\nat once:\n  2 waiting jobs may start\n! account old has no jobs\n"

// TestApply: the rules are tried first, and set against the revision that the changes were shown of.
//
// Seen to fail with: no base, and a dry run that is followed by a change.
func TestApply(t *testing.T) {
	var asked []api.SetPolicy
	f := withRules(t, &asked)
	file := clitest.WriteFile(t, "queues.yaml", "new\n")
	three := uint64(3)
	check := func(what string, want ...api.SetPolicy) {
		t.Helper()
		if d := cmp.Diff(want, asked); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		asked = nil
	}
	f.Cox(t, "apply", "-f", file, "--dry-run").Check(t, 0, applied+"\na dry run: nothing was changed\n", "")
	check("a dry run", api.SetPolicy{Text: "new\n", File: "queues.yaml", DryRun: true})
	f.Cox(t, "apply", "-f", file, "-m", "more nodes").Check(t, 0, applied+"revision 4 is in force\n", "")
	check("set", api.SetPolicy{Text: "new\n", File: "queues.yaml", Note: "more nodes", DryRun: true}, api.SetPolicy{Text: "new\n", File: "queues.yaml", Note: "more nodes", Base: &three})
	coxAt(t, f.URL, "same\n", "apply", "-f", "-").Check(t, 0, "! account old has no jobs\nnothing changes: revision 3 is in force already\n", "")
	check("the same", api.SetPolicy{Text: "same\n", File: "-", DryRun: true})
	f.Cox(t, "apply", "-f", file, "-o", "json").Check(t, 0, "~\"revision\": 4", "")
	asked = nil

	coxAt(t, f.URL, "bad: 1\n", "apply", "-f", "-", "-y").Check(t, 2, "", "cox: -:1: there is no field bad\n  docs/reference/queues.md has every field\nnothing was changed                                          exit 2 (invalid request)\n")
	f.Cox(t, "apply", "-f", file, "-m", "late").Check(t, 4, applied, "~cox: the policy is at revision 4, not 3\n  look at it: cox policy show\nnothing was changed                                          exit 4 (conflict)\n")
	asked = nil
}

// TestApplyBack puts a former revision back: the one before, or one by its number.
func TestApplyBack(t *testing.T) {
	var asked []api.SetPolicy
	f := withRules(t, &asked)
	for arg, want := range map[string]uint64{"--back": 2, "--back=1": 1} {
		asked = nil
		f.Cox(t, "apply", arg).Check(t, 0, "~revision 4 is in force\n", "")
		if len(asked) != 2 || asked[0].Back != want || asked[1].Back != want || asked[1].Base == nil || asked[0].Text != "" {
			t.Errorf("%s: %+v", arg, asked)
		}
	}
	asked = nil
	f.Cox(t, "apply").Check(t, 2, "", "cox apply needs a file of rules\n  for example: cox apply -f queues.yaml; cox policy show prints the rules in force, docs/reference/queues.md has every field\n")
	f.Cox(t, "apply", "--back=0").Check(t, 2, "", "cox: --back=0: a revision is a number\n  cox policy history lists them\n")
	f.Cox(t, "apply", "--back", "-f", "x").Check(t, 2, "", "cox: -f and --back do not go together\n  name a file, or a revision to put back\n")
	f.Cox(t, "apply", "-f", "/nowhere.yaml").Check(t, 2, "", "~/nowhere.yaml: no such file")
	if len(asked) > 0 {
		t.Errorf("the rules were asked to change: %+v", asked)
	}
	coxAt(t, "unix:///nowhere/s", "", "apply", "--back=1").Check(t, 75, "", "~/nowhere/s")

	one := newFake(t)
	one.Answer("GET /v1/policy/history", func(*http.Request) (any, error) { return api.PolicyHistory{Policies: rules[:1]}, nil })
	one.Cox(t, "apply", "--back").Check(t, 3, "", "cox: there is no revision before the one in force\n  cox policy history lists them\n")
}

func TestPolicy(t *testing.T) {
	f := withRules(t, new([]api.SetPolicy))
	f.Cox(t, "policy", "show").Check(t, 0, "accounts: []\n", "")
	f.Cox(t, "policy", "show", "1").Check(t, 0, "qos: []\n", "")
	f.Cox(t, "policy", "show", "1", "-o", "yaml").Check(t, 0, "~revision: 1", "")
	f.Cox(t, "policy", "show", "9").Check(t, 3, "", "cox: there is no revision 9\n  cox policy history lists them\n")
	f.Cox(t, "policy", "show", "last").Check(t, 2, "", "cox: \"last\" is no revision\n  cox policy history lists them\n")
	f.Cox(t, "policy", "history").Check(t, 0, `REVISION  AT                   BY    FILE         HASH          NOTE
       3  2026-11-03 08:00:00  root  -            aaaaaaaaaaaa  back to 1
       2  2026-11-02 08:00:00  anna  queues.yaml  bbbbbbbbbbbb  -
       1  2026-11-01 08:00:00  root  queues.yaml  aaaaaaaaaaaa  first
`, "")
	f.Cox(t, "policy", "history", "-o", "json").Check(t, 0, "~\"back\": 1", "")
	f.Cox(t, "policy").Check(t, 2, "", "cox policy needs a command: check, history, schema or show\n  for example: cox policy show\n")

	empty := newFake(t)
	empty.Answer("GET /v1/policy", func(*http.Request) (any, error) { return api.Policy{}, nil })
	empty.Answer("GET /v1/policy/history", func(*http.Request) (any, error) { return api.PolicyHistory{}, nil })
	empty.Cox(t, "policy", "show").Check(t, 0, "", "~no rules were ever set")
	empty.Cox(t, "policy", "history").Check(t, 0, "", "no rules were ever set\n")
}

// TestPolicyCheck reads a document without a server.
func TestPolicyCheck(t *testing.T) {
	const doc = "accounts:\n  - name: nlp # ours\n    shares: 2\n"
	good := clitest.WriteFile(t, "queues.yaml", doc)
	coxAt(t, "unix:///nowhere/s", "", "policy", "check", good).Check(t, 0, good+" can be applied: 1 account\n", "")
	coxAt(t, "unix:///nowhere/s", doc, "policy", "check", "-p", "-").Check(t, 0, "accounts:\n  - {name: nlp, shares: 2}\n", "")
	coxAt(t, "unix:///nowhere/s", "accounts:\n  - name: nlp\n    sharez: 2\n", "policy", "check", "-").Check(t, 2, "", "~-:3")
	coxAt(t, "unix:///nowhere/s", "", "policy", "check").Check(t, 2, "", "cox policy check needs a file of rules\n  for example: cox policy check queues.yaml\n")
	coxAt(t, "unix:///nowhere/s", "", "policy", "schema").Check(t, 0, "~\"$schema\"", "")
}
