package script

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ExitSecretless is the exit code of a script that does not find the values of its job's secrets. Nothing
// of the user's has run.
const ExitSecretless = 115

// SecretsDir is the directory with the values of the job's secrets, for a beginning: of the job's user alone,
// and a file for each (job.Secret.FileName). The driver makes it before Slurm has the job, and removes it.
func (g *Guard) SecretsDir(restarts int) string { return g.Lock(restarts) + ".secrets" }

// readSecrets is shell code that sets the variables of the job's secrets from a directory, whose quoted
// name is given. It shows no value where the shell prints what it does (sh -x).
func (g *Guard) readSecrets(dir string) string {
	if len(g.Secrets) == 0 {
		return ""
	}
	return "export COX_SECRETS_DIR=" + dir + "\n" + ReadSecrets(g.Secrets, fmt.Sprintf("exit %d", ExitSecretless))
}

// ReadSecrets is shell code that sets the variables of secrets from the files in $COX_SECRETS_DIR, and
// otherwise says which cannot be read.
func ReadSecrets(secrets []job.Secret, otherwise string) string {
	var b strings.Builder
	b.WriteString("case $- in *x*) { set +x; } 2>/dev/null; cox_x=1 ;; *) cox_x= ;; esac\n")
	for i := range secrets {
		s := &secrets[i]
		file := `"$COX_SECRETS_DIR/` + s.FileName() + `"` // its letters mean nothing to a shell
		missing := fmt.Sprintf(`{ echo "coxswain: secret %s cannot be read in $COX_SECRETS_DIR: nothing is run" >&2; %s; }`, s.Name, otherwise)
		if s.Env == "" {
			fmt.Fprintf(&b, "[ -r %s ] || %s\n", file, missing)
			continue
		}
		fmt.Fprintf(&b, "cox_s=$(command -p cat %[1]s 2>/dev/null && echo .) || %[2]s\nexport %[3]s=\"${cox_s%%.}\"\n", file, missing, s.Env)
	}
	b.WriteString("unset cox_s || :\n[ -z \"$cox_x\" ] || set -x\n{ unset cox_x || :; } 2>/dev/null\n")
	return b.String()
}
