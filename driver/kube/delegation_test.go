package kube_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestTheDoorOfAClusterThatIsSilent: what can be said of a job without asking is refused with
// the option that it is about; what only the cluster knows is not. Seen to fail with: every
// error of the cluster taken for a refusal.
func TestTheDoorOfAClusterThatIsSilent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: t}}],
contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		placed bool
		image  string
		change func(*engine.Launch)
		option string
		text   string // empty: it is taken
	}{
		{what: "a gang, whatever the cluster has", image: "i"},
		{what: "placed", placed: true, image: "i"},
		{what: "placed, no image", placed: true, option: "image", text: "needs a container image"},
		{what: "no image", option: "image", text: "needs a container image"},
		{what: "no image's name", placed: true, image: "i", change: func(l *engine.Launch) { l.Job.Spec.Image = "a b" }, option: "image", text: `"a b" is no image`},
		{what: "a node by name", image: "i", change: func(l *engine.Launch) { l.Job.Spec.Groups[0].NodeList = []string{"n1"} }, option: "nodelist", text: "--nodelist is not handed over"},
		{what: "placed, a node by name", placed: true, image: "i", change: func(l *engine.Launch) { l.Job.Spec.Groups[0].NodeList = []string{"n1"} }},
	} {
		k, err := cluster.Open(cluster.Config{Kubeconfig: file})
		if err != nil {
			t.Fatal(err)
		}
		e, err := kube.New(kube.Config{Root: t.TempDir(), Cluster: k, Patience: 100 * time.Millisecond, Terms: settings.Terms{Pool: "far", Namespace: "cox", Placed: c.placed, Image: c.image, AgentImage: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		l := folded(1, forever, 2)
		if c.change != nil {
			c.change(l)
		}
		err = e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script})
		if closed := e.Close(); closed != nil {
			t.Error(closed)
		}
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		var field *engine.FieldError
		if !errors.As(err, &field) || field.Fields[0] != c.option || !strings.HasPrefix(err.Error(), "pool far: ") || !strings.Contains(err.Error(), c.text) || fault.Remedy(err) == "" {
			t.Errorf("%s: %v (%+v, remedy %q), want one of --%s: %s", c.what, err, field, fault.Remedy(err), c.option, c.text)
		}
	}
}
