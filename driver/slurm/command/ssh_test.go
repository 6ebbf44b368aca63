package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// stand is a program in ssh's place, which does with its last word what a login does.
func stand(t *testing.T, text string) *command.SSH {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "ssh")
	if err := os.WriteFile(name, []byte("#!/bin/bash\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return &command.SSH{Login: "me@login", Dir: dir, Program: name, Env: []string{"SLURM_CONF=/its own/slurm.conf"}}
}

// TestWordsArriveWhole: whatever is in them, arguments, variables and standard input
// arrive over a shell as they were.
//
// Seen to fail with: no quoting of apostrophes.
func TestWordsArriveWhole(t *testing.T) {
	s := stand(t, `printf '%s\n' "$@" >"${0%/*}/words"; exec sh -c "${!#}"`)
	odd := `it's $HOME; "x" \ *`
	r, err := s.Run(t.Context(), command.Call{Name: "sh", Args: []string{"-c", `printf '%s|' "$1" "$ODD" "$SLURM_CONF"; cat; exit 3`, "x", odd}, Env: []string{"ODD=" + odd}, Stdin: []byte("in")})
	if want := odd + "|" + odd + "|/its own/slurm.conf|in"; err != nil || string(r.Stdout) != want || r.Code != 3 {
		t.Errorf("%q, exit %d, %v; want %q", r.Stdout, r.Code, err, want)
	}
	words, _ := os.ReadFile(filepath.Join(s.Dir, "words"))
	for _, must := range []string{"StrictHostKeyChecking=yes", "BatchMode=yes", "ControlMaster=auto", "\n--\nme@login\n"} {
		if !strings.Contains(string(words), must) {
			t.Errorf("ssh is not told %s: %s", must, words)
		}
	}
}

// TestABrokenConnectionIsNoAnswer: nobody knows whether the command ran.
func TestABrokenConnectionIsNoAnswer(t *testing.T) {
	s := stand(t, "echo 'Host key verification failed.' >&2; exit 255")
	if _, err := command.New(s).Cluster(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "Host key") {
		t.Errorf("%v", err)
	}
	for said, mend := range map[string]string{
		"Host key verification failed.":                                 "--set ssh_known_hosts=",
		"me@login: Permission denied (publickey,password).":             "--set ssh_key=",
		"ssh: Could not resolve hostname login: Name not known":         "ssh_config",
		"kex_exchange_identification: Connection closed by remote host": "",
	} {
		_, err := command.New(stand(t, "echo '"+said+"' >&2; exit 255")).Cluster(t.Context())
		if got := fault.Remedy(err); fault.KindOf(err) != fault.Unavailable || !strings.Contains(got, mend) || mend == "" && got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
	s = stand(t, "sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := command.New(s).Cluster(ctx); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Remedy(err), "scontrol ping") {
		t.Errorf("%v: %q", err, fault.Remedy(err))
	}
	s.Login = "-oProxyCommand=x"
	if _, err := s.Run(t.Context(), command.Call{Name: "true"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}
