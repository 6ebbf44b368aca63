package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
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
