package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

// testLogs: a job's output is followed while it runs on the cluster, to its last line; its
// file has Slurm's number, which is another than ours.
func (s *slurmSite) testLogs(t *testing.T) {
	s.Run(t, "sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true") // numbers differ from here on
	s.addPool(t, "slurm-l", `slurm-l +slurm 2\S+ +up +4 `, append(s.byCommands(t), "--set", "root=true", "--shared", filepath.Join(s.dir, "locks-l"))...)
	gate := filepath.Join(s.dir, "gate")
	file := filepath.Join(s.dir, "said.yaml")
	text := "name: said\nnodes: 2\ntasks_per_node: 1\nworkdir: " + s.dir + "\noutput: said-%j\nscript: |\n  echo $SLURM_JOB_ID $COX_JOB_ID first\n  while [ ! -e " + gate + " ]; do sleep 0.05; done\n  srun sh -c 'echo rank $SLURM_PROCID'\n  printf 'the last word'\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(s.ok(t, "submitted\n", "submit", "--pool", "slurm-l", file), "job "), " ")
	followed := make(chan clitest.Ran, 1)
	go func() { followed <- s.cox(t, "logs", "-f", id) }()
	s.eventually(t, "first\n", "logs", id)
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := <-followed
	f := strings.Fields(r.Out)
	if r.Code != 0 || len(f) < 3 || f[0] == f[1] || f[1] != id || !strings.HasSuffix(r.Out, "the last word") || strings.Count(r.Out, "rank ") != 2 {
		t.Fatalf("cox logs -f %s: exit %d\n%s%s", id, r.Code, r.Out, r.Err)
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, "said-"+f[0])); err != nil || string(b) != r.Out {
		t.Errorf("the file: %q %v", b, err)
	}
	s.ok(t, "the last word", "logs", id)
	s.ok(t, "pool slurm-l is gone", "pool", "remove", "slurm-l")
}
