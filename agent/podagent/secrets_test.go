package podagent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestSecretsOfAPod: the values that are mounted in the pod are variables and files of the script, of its
// steps and of commands beside them; the files are the pod's user's alone, and the outcome and the pod's log
// have no value.
//
// Seen to fail with: files of mode 0444.
func TestSecretsOfAPod(t *testing.T) {
	c := planned(t, 1, `echo "script ${#TOK} $(cat "$COX_SECRETS_DIR/key.pem" | wc -c) $(stat -c %a "$COX_SECRETS_DIR" "$COX_SECRETS_DIR/key.pem" | tr '\n' ' ')"
srun sh -c 'echo "step ${#TOK} $(cat "$COX_SECRETS_DIR/key.pem" | wc -c)"'
: >given; while ! [ -e over ]; do sleep 0.02; done`)
	c.plan.Job.Spec.Secrets = []job.Secret{{Name: "token", Env: "TOK"}, {Name: "key", File: "key.pem"}}
	mounted, private := filepath.Join(c.dir, "mounted"), filepath.Join(c.dir, "private")
	for _, dir := range []string{mounted, private} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{".env.TOK": "hush-1234", "key.pem": "hush-key\n"} {
		if err := os.WriteFile(filepath.Join(mounted, name), []byte(value), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	c.env = []string{podagent.SecretsEnv + "=" + mounted, podagent.PrivateEnv + "=" + private, "TOK=of-the-image"}
	c.start()
	eventually(t, "the script has its secrets", func() bool { _, err := os.Stat(c.work("given")); return err == nil })
	var probed strings.Builder
	probe := c.members[0].command("probe", "sh", "-c", `test "$TOK" = hush-1234 && grep -q hush "$COX_SECRETS_DIR/key.pem"`)
	probe.Env = append(probe.Env, podagent.PlanEnv+"="+filepath.Join(c.dir, "secret"))
	probe.Stderr = &probed
	if err := probe.Run(); err != nil {
		t.Errorf("a probe: %v: %s", err, probed.String())
	}
	if err := os.WriteFile(c.work("over"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := c.members[0].end()
	if o.Cause != engine.Exited || !o.Exit.OK() {
		t.Errorf("%+v", o)
	}
	out := c.members[0].out.String()
	if want := "script 9 9 700 400 \nstep 9 9\n"; out != want {
		t.Errorf("it says\n%s", out)
	}
	for what, text := range map[string]string{"the outcome": c.members[0].termination(), "the pod's log": out + c.members[0].errs.String()} {
		if strings.Contains(text, "hush") {
			t.Errorf("%s has a value: %s", what, text)
		}
	}
}

// TestSecretsThatAreNotMounted end the member before anything of the job runs, with the name of what is missing.
func TestSecretsThatAreNotMounted(t *testing.T) {
	c := planned(t, 1, "echo it ran")
	c.plan.Job.Spec.Secrets = []job.Secret{{Name: "token", Env: "TOK"}}
	private := filepath.Join(c.dir, "private")
	if err := os.Mkdir(private, 0o755); err != nil {
		t.Fatal(err)
	}
	c.env = []string{podagent.SecretsEnv + "=" + filepath.Join(c.dir, "none"), podagent.PrivateEnv + "=" + private}
	c.start()
	o, _ := c.members[0].end()
	if o.Cause != engine.LaunchFailed || !strings.Contains(o.Message, "secret token") || strings.Contains(c.members[0].out.String(), "it ran") {
		t.Errorf("%+v", o)
	}
}
