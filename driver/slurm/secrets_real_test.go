package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestSecretsOnSlurm: a job of real Slurm has its secrets, in its script, its steps and commands beside them,
// handed over by commands here and over SSH. Nothing that Slurm shows of it has a value, and no file is left
// after its end.
func TestSecretsOnSlurm(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, clusters["22.05"])
	for name, way := range map[string]command.Runner{"here": &command.Here{Env: l.Env, Before: l.Inside}, "ssh": l.SSH(t)} {
		t.Run(name, func(t *testing.T) {
			const value = "hush-hush"
			dir := shared(t)
			locks, err := openHere(filepath.Join(dir, "locks"))
			if err != nil {
				t.Fatal(err)
			}
			e, err := slurm.New(slurm.Config{
				Root: filepath.Join(dir, "state"), Pool: "slurm", Site: command.New(way), Room: locks, Secrets: command.NewSecretDir(way, false, ""), Placed: true, Settle: 3 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			plan := give(planReplica(dir, l.Nodes[0]), value)
			plan.Job.Spec.Serve = nil
			plan.Script = []byte(`#!/bin/bash -x
exec >told 2>&1
{ set +x; } 2>/dev/null
echo "script ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem") $(stat -c %a "$COX_SECRETS_DIR" "$COX_SECRETS_DIR/key.pem" | tr '\n' ' ')"
srun sh -c 'echo "step ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem")"'
: >ready; while ! [ -e over ]; do sleep 0.1; done
`)
			if err := e.Launch(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			awaits(t, "the script's word", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
			r := until(t, e, func(r engine.Report) bool { return r.Phase == engine.Running })
			var said strings.Builder
			code, err := e.Exec(t.Context(), plan.Ref, engine.ExecRequest{Command: []string{"sh", "-c", `echo "beside ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem")"`}, Stdout: &said, Stderr: &said})
			if err != nil || !code.OK() || said.String() != "beside 9 9\n" {
				t.Errorf("%s, %v: %q", code, err, said.String())
			}
			for _, words := range [][]string{{"scontrol", "show", "job", "--details", r.Native}, {"scontrol", "write", "batch_script", r.Native, "-"}, {"squeue", "--Format=All"}, {"ps", "axww"}} {
				out, err := way.Run(t.Context(), command.Call{Name: words[0], Args: words[1:]})
				if err != nil || out.Code != 0 {
					t.Fatalf("%q: %v: %s", words, err, out.Stderr)
				}
				if strings.Contains(string(out.Stdout), value) {
					t.Errorf("%q shows a value", words)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if r := until(t, e, gone); !r.Exit.OK() {
				t.Errorf("%+v", r)
			}
			awaits(t, "the removal of the values", func() bool {
				left, _ := filepath.Glob(filepath.Join(dir, "locks", "*.secrets"))
				return len(left) == 0
			})
			if told, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(told) != "script 9 9 700 400 \nstep 9 9\n" {
				t.Errorf("%s %v", told, err)
			}
			if held := filesWith(t, dir, value); len(held) > 0 {
				t.Errorf("%q", held)
			}
		})
	}
}
