package podagent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestReadyAfterTheStartupProbe: until that has passed the kubelet hears that the job is not ready, though its
// port answers, and that it lives; then what its probes say.
//
// Seen to fail with: no look at the startup probe's file.
func TestReadyAfterTheStartupProbe(t *testing.T) {
	port := ports(t, 1)[0]
	c := planned(t, 1, fmt.Sprintf(`exec python3 -m http.server --bind 127.0.0.1 %d`, port))
	c.plan.Job.Spec.Serve = &job.Serve{
		Ports:   []job.Port{{Name: "http", Number: port}},
		Startup: &job.Probe{Exec: []string{"test", "-e", "started"}, Every: 50 * time.Millisecond, Failures: 100_000},
	}
	c.env = []string{podagent.HereEnv + "=127.0.0.1"}
	c.start()
	said := ""
	passes := func(word, probe string) bool {
		cmd := c.members[0].command("serves", word, probe)
		cmd.Env = append(cmd.Env, podagent.PlanEnv+"="+filepath.Join(c.dir, "secret"))
		out, err := cmd.CombinedOutput()
		said = string(out)
		return err == nil
	}
	exec := func(words ...string) bool {
		cmd := c.members[0].command(append([]string{"probe"}, words...)...)
		cmd.Env = append(cmd.Env, podagent.PlanEnv+"="+filepath.Join(c.dir, "secret"))
		return cmd.Run() == nil
	}
	answers := fmt.Sprintf(`import urllib.request; urllib.request.urlopen("http://127.0.0.1:%d/")`, port)
	eventually(t, "it answers", func() bool { return exec("python3", "-c", answers) })
	if passes("ready", `{"http":"/"}`) || !strings.Contains(said, "the startup probe has not passed") {
		t.Errorf("before it has started: %s", said)
	}
	if !passes("alive", `{"http":"/not-there"}`) {
		t.Errorf("its liveness counts before it has started: %s", said)
	}
	if err := os.WriteFile(c.work("started"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready", func() bool { return passes("ready", `{"http":"/","port":"http"}`) })
	for probe, want := range map[string]bool{`{"tcp":true}`: true, `{"http":"/not-there"}`: false, `{"exec":["test","-e","started"]}`: true, `{"exec":["false"]}`: false, `{"http":"/","port":"other"}`: false, `nonsense`: false} {
		for _, word := range []string{"ready", "alive"} {
			if passes(word, probe) != want {
				t.Errorf("%s %s: want %v: %s", word, probe, want, said)
			}
		}
	}
	if out, err := c.members[0].command("tell", `{"grace":20000000000,"cause":"stopped","text":"enough"}`).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if o, _ := c.members[0].end(); o.Cause != engine.Stopped {
		t.Errorf("%+v", o)
	}
}
