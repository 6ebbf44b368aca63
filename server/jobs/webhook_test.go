package jobs

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestAWebhookIsShownToItsOwnerAlone: whoever knows the URL can write to the channel behind it. Others
// see its host, in every answer that has the job.
//
// Seen to fail with: the specification as it is for a job without variables.
func TestAWebhookIsShownToItsOwnerAlone(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Webhook = func(string) error { return nil } })
	s := servertest.Request()
	s.Notify = &job.Notify{Webhook: "https://hooks.example.org/canary?key=canary", On: []string{"fail"}}
	if _, err := r.As(t, "anna").Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/jobs/1", "/v1/jobs", "/v1/history", "/v1/history?ids=1"} {
		for user, sees := range map[string]bool{"anna": true, "ben": false} {
			_, body := r.Ask(t, "GET", path, r.Token(t, user, nil), "")
			if strings.Contains(body, "canary") != sees || !strings.Contains(body, "https://hooks.example.org/") || !strings.Contains(body, `"on":["fail"]`) {
				t.Errorf("%s as %s:\n%s", path, user, body)
			}
		}
	}
	if j, err := r.Admin(t).Job(t.Context(), "1"); err != nil || j.Spec.Notify.Webhook != s.Notify.Webhook {
		t.Errorf("an administrator sees %+v, %v", j.Spec.Notify, err)
	}
}
