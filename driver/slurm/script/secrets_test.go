package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/model/job"
)

// secretive is a guard of a job with secrets, whose values are there for a beginning.
func secretive(t *testing.T, restarts int) *script.Guard {
	t.Helper()
	g := guard(t)
	g.Secrets = []job.Secret{{Name: "hf-token", Env: "HF_TOKEN"}, {Name: "key", File: "key.pem"}}
	if err := os.MkdirAll(g.SecretsDir(restarts), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, value := range []string{" hush $(id)'\"\n\n", "-----BEGIN"} {
		if err := os.WriteFile(filepath.Join(g.SecretsDir(restarts), g.Secrets[i].FileName()), []byte(value), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// TestSecretsOfAScript: scripts of all interpreters have the values as they are, also after a requeue, and a
// shell that prints what it does prints none.
//
// Seen to fail with: $(cat FILE), which loses the lines at the end; no set +x.
func TestSecretsOfAScript(t *testing.T) {
	const shells = `printf '%s' "$HF_TOKEN" | cksum; cat "$COX_SECRETS_DIR/key.pem"; echo; set | grep -c '^cox_'; exit 5
`
	for name, head := range map[string]string{
		"sh": "#!/bin/sh\n", "bash": "#!/bin/bash\n", "set -eu": "#!/bin/bash -eu\n", "traced": "#!/bin/bash -x\n", "env": "#!/usr/bin/env bash\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := secretive(t, 2)
			out, code := begin(t, script.Wrap([]byte(head+shells), g), 2)
			sum := exec.Command("cksum")
			sum.Stdin = strings.NewReader(" hush $(id)'\"\n\n")
			want, err := sum.Output()
			if err != nil {
				t.Fatal(err)
			}
			if name == "traced" {
				before, _, _ := strings.Cut(out, "cksum") // then it is the script's own
				if strings.Contains(before, "hush $(id)") && !strings.Contains(before, "printf") || !strings.Contains(out, string(want)) || !strings.Contains(out, "+ cat ") {
					t.Errorf("it printed\n%s", out)
				}
				return
			}
			if out != string(want)+"-----BEGIN\n0\n" || code != 5 && name != "set -eu" {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
	t.Run("python", func(t *testing.T) {
		text := "#!/usr/bin/env python3\nimport os\nprint(repr(os.environ['HF_TOKEN']), open(os.environ['COX_SECRETS_DIR'] + '/key.pem').read())\n"
		if out, code := begin(t, script.Wrap([]byte(text), secretive(t, 0)), 0); out != `' hush $(id)\'"\n\n' -----BEGIN`+"\n" || code != 0 {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// TestSecretsThatAreNotThere: the script ends before anything of the user's runs, and names the secret.
func TestSecretsThatAreNotThere(t *testing.T) {
	for i, name := range []string{"hf-token", "key"} {
		g := secretive(t, 0)
		if err := os.Remove(filepath.Join(g.SecretsDir(0), g.Secrets[i].FileName())); err != nil {
			t.Fatal(err)
		}
		out, code := begin(t, script.Wrap([]byte("#!/bin/sh\necho ran\n"), g), 0)
		if code != script.ExitSecretless || strings.Contains(out, "ran") || !strings.Contains(out, "secret "+name+" cannot be read") {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}
