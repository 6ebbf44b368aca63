package srunargs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/srunargs"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestWords: a command beside the tasks is one task on one node that shares what the job has; a step
// has what its user says, and nothing that srun would do where it runs.
//
// Seen to fail with: options that are looked for behind the command too; "output" among those served.
func TestWords(t *testing.T) {
	beside := srunargs.Call{Command: []string{"nvidia-smi", "-L"}, Node: "n2", Dir: "/home/me"}
	words, err := beside.Words()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"--overlap", "--nodes=1", "--ntasks=1", "--nodelist=n2", "--chdir=/home/me", "--unbuffered"} {
		if !slices.Contains(words, w) {
			t.Errorf("no %s in %q", w, words)
		}
	}
	if tail := words[len(words)-3:]; !slices.Equal(tail, []string{"sh", "nvidia-smi", "-L"}) || slices.Contains(words, "--pty") {
		t.Errorf("%q", words)
	}
	for _, tt := range []struct {
		command  string
		terminal bool
		refused  string // in the error; empty: it is served
	}{
		{"srun hostname", false, ""},
		{"srun -n4 --gpus-per-task=1 -l python train.py --output=x", false, ""},
		{"srun --output=none -e none -i none true", false, ""},
		{"srun --pty bash", true, ""},
		{"srun --pty bash", false, "--pty needs a terminal"},
		{"srun --jobid=5 hostname", false, "--jobid is not served"},
		{"srun --jobi=5 hostname", false, "--jobid is not served"},
		{"srun --output=/root/.ssh/authorized_keys echo key", false, "--output=/root/.ssh/authorized_keys names a file"},
		{"srun -o/etc/x echo key", false, "--output=/etc/x names a file"},
		{"srun --input /etc/shadow cat", false, "--input=/etc/shadow names a file"},
		{"srun -w n[1-2] --exclude=n3 true", false, ""},
		{"srun --nodelist=/etc/shadow true", false, "--nodelist=/etc/shadow names a file"},
		{"srun -w ./hosts true", false, "--nodelist=./hosts names a file"},
		{"srun -xn1,/etc/shadow true", false, "--exclude=n1,/etc/shadow names a file"},
		{"srun --exclud=/etc/shadow true", false, "--exclude=/etc/shadow names a file"},
		{"srun --prolog=/bin/mine true", false, "--prolog is not served"},
		{"srun --bcast=/tmp/x ./a.out", false, "--bcast is not served"},
		{"srun --multi-prog list", false, "--multi-prog is not served"},
		{"srun --uid=0 true", false, "uid"},
		{"srun -n", false, "requires an argument"},
		{"srun -n2", false, "no command"},
	} {
		c := srunargs.Call{Command: strings.Fields(tt.command), Dir: "/", Terminal: tt.terminal}
		words, err := c.Words()
		if tt.refused == "" {
			if err != nil || !slices.Contains(words, "--unbuffered") {
				t.Errorf("%s: %q, %v", tt.command, words, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.refused) || fault.KindOf(err) != fault.Unsupported && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %q, %v, want %q", tt.command, words, err, tt.refused)
		}
	}
}

func TestAStepsOwnName(t *testing.T) {
	for command, want := range map[string]bool{"srun -J mine true": true, "srun -l --job-name=x true": true, "srun true -J x": false, "nvidia-smi": false} {
		if c := (srunargs.Call{Command: strings.Fields(command)}); c.Names() != want {
			t.Errorf("%s: %v", command, !want)
		}
	}
}

// TestEnvironPassesSrunBy: what srun has of the job says nothing to it, and the task has all of it.
//
// Seen to fail with: variables under their own names; a first value that wins.
func TestEnvironPassesSrunBy(t *testing.T) {
	c := srunargs.Call{Command: []string{"sh", "-c", `printf '%s|' "$A" "$LD_PRELOAD" "$TWICE" "${LC_ALL-none}" "$COX_STEP_ENVS$COX_STEP_ENV_0" "$cox_n"`}, Node: "n", Dir: "/", Env: []string{
		"A=it's $(date) \"x\"\n*", "TWICE=1", "LD_PRELOAD=", "bad-name=1", "9=1", "PPID=3", "UID=1", "IFS=x", "no value", "TWICE=2",
	}}
	env := c.Environ()
	for _, v := range env {
		if !strings.HasPrefix(v, "COX_STEP_ENV") {
			t.Errorf("srun sees %q", v)
		}
	}
	words, err := c.Words()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(words, "--")
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		cmd := exec.Command(shell, words[at+2:]...)
		cmd.Env = append(env, "PATH=/usr/bin:/bin", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if want := "it's $(date) \"x\"\n*||2|none|||"; err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", shell, out, err, want)
		}
	}
}
