package jobs

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// The bounds of the intake.
const maxNameBytes, maxSpecBytes = 1 << 10, 256 << 10

func TestWhatAJobSaysOfItselfIsBounded(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	c := r.Admin(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"a comment", []string{"--comment=" + strings.Repeat("x", maxNameBytes+1)}, "--comment: 1025 bytes"},
		{"a name", []string{"--job-name=" + strings.Repeat("x", maxNameBytes+1)}, "--job-name: 1025 bytes"},
		{"exports", []string{"--export=ALL,A=" + strings.Repeat("x", maxSpecBytes)}, "KiB together"},
		{"an array of long options", []string{"--array=0-999", "--export=ALL,A=" + strings.Repeat("x", maxSpecBytes/4)}, "each of 1000 tasks"},
		{"as much as may be", []string{"--comment=" + strings.Repeat("x", maxNameBytes)}, ""},
	}
	for _, tt := range tests {
		s := servertest.Request()
		s.Args = tt.args
		_, err := c.Submit(t.Context(), s)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want) || fault.Remedy(err) == ""):
			t.Errorf("%s: %v; %s", tt.name, err, fault.Remedy(err))
		}
	}
	if _, body := r.Ask(t, "GET", "/v1/jobs?columns=id,id", r.Token(t, "anna", nil), "", "Accept", "text/tab-separated-values"); !strings.Contains(body, "named twice") {
		t.Error(body)
	}
}

func TestAPageIsBoundedByBytes(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	c := r.Admin(t)
	for range 100 {
		s := servertest.Request()
		s.Args = []string{"--export=ALL,A=" + strings.Repeat("x", maxSpecBytes/4), "--hold"}
		if _, err := c.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	_, body := r.Ask(t, "GET", "/v1/jobs?limit=1000", r.Token(t, "anna", func(k *state.Token) { k.Admin = true }), "")
	if len(body) > 2*pageBytes || !strings.Contains(body[len(body)-200:], `"next":"`) {
		t.Errorf("a page of %d bytes ends with %s", len(body), body[len(body)-200:])
	}
	n := 0
	for j, err := range c.Jobs(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; j.ID != job.ID(n) {
			t.Fatalf("job %d after %d", j.ID, n-1)
		}
	}
	if n != 100 {
		t.Errorf("%d jobs on all pages", n)
	}
}
