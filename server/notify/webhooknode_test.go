package notify

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
)

// A webhook that asks for nodes is told of them, and of jobs only if it asks for these too.
//
// Seen to fail with a webhook for nodes that is told of jobs, and with one for jobs that is told of nodes.
func TestWebhookOfNodes(t *testing.T) {
	s, got := receiver(t, 200)
	start := func(on ...string) *Notifier {
		n, _ := startHook(t, func(c WebhookConfig, log *slog.Logger) *Notifier {
			return NewSiteWebhook(Webhook{URL: s.URL, On: on}, c, log)
		}, WebhookConfig{})
		return n
	}
	change := NodeChange{Kind: "node-fenced", Number: 12, Nodes: []string{"v1", "v2"}, By: "health", Text: "check disk failed: <full>"}
	ended := Change{After: &job.Job{ID: 7, Spec: &job.Spec{Name: "j"}, State: job.Completed}}

	jobs, nodes := start(), start("node")
	jobs.Nodes(change)
	nodes.Job(ended)
	if nodes.Wants(ended.After) || !jobs.Wants(ended.After) {
		t.Errorf("the one for nodes wants jobs: %v, the other: %v", nodes.Wants(ended.After), jobs.Wants(ended.After))
	}
	nodes.Nodes(change)
	_, p := awaitRequest(t, got)
	if want := "node v[1-2] is fenced: check disk failed: &lt;full&gt;"; p.Text != want || p.Event != "node-fenced" || p.Delivery != "test-event-12" || p.Job != (PayloadOf{}) {
		t.Errorf("%+v", p)
	}
	if d := cmp.Diff(&PayloadNodes{Names: []string{"v1", "v2"}, By: "health", Why: "check disk failed: <full>"}, p.Node); d != "" {
		t.Error(d)
	}
	both := start("end", "node")
	both.Job(ended)
	if _, p := awaitRequest(t, got); p.Event != "end" || p.Job.ID != "7" || p.Node != nil {
		t.Errorf("%+v", p)
	}
	if len(got) > 0 {
		t.Errorf("%d messages more", len(got))
	}
}
