package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// TestOptionsOfPlugins: srun's help says whether it has pyxis; Slurm's own --container is another
// option.
func TestOptionsOfPlugins(t *testing.T) {
	for help, want := range map[string]bool{
		"      --container=path        Path to OCI container bundle\n":                                                         false,
		"      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n                              [pyxis] the image to use\n": true,
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "srun"), []byte("#!/bin/sh\ncat <<'END'\n"+help+"END\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := command.New(&command.Here{Commands: bin})
		if got, err := s.HasSrunOption(t.Context(), "--container-image"); err != nil || got != want {
			t.Errorf("%q: %v %v", help, got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTestedStart: when sbatch --test-only says that a job would start; of a heterogeneous one when its last
// component would.
//
// Seen to fail with: the first line taken.
func TestTestedStart(t *testing.T) {
	for said, want := range map[string]int64{ // below 0: an error
		"sbatch: Job 7 to start at 1789000000 using 2 processors on nodes n[1-2] in partition main":                                                                                                   1789000000,
		"sbatch: Job 7 to start at 1789000000 using 2 processors on n1\nsbatch: Job 7 to start at 1789000060 using 2 processors on n2\nsbatch: Job 7 to start at 1789000010 using 2 processors on n3": 1789000060,
		"sbatch: Job 7 to start at Unknown using 2 processors":                                                                                                                                        0,
		"sbatch: Job 7 to start at 2026-11-29T11:32:51 using 2 processors":                                                                                                                            -1,
		"": -1,
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte("#!/bin/sh\n[ \"$SLURM_TIME_FORMAT $1\" = '%s --test-only' ] || exit 9\ncat >&2 <<'END'\n"+said+"\nEND\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		at, err := command.New(&command.Here{Commands: bin}).EstimateStart(t.Context(), &site.Submission{Script: []byte("#!/bin/sh\n"), Env: []string{"SLURM_TIME_FORMAT=%c"}})
		if (err != nil) != (want < 0) || want > 0 && at.Unix() != want || want <= 0 && !at.IsZero() {
			t.Errorf("%q: %s, %v", said, at, err)
		}
	}
}
