package server

import (
	"testing"

	"github.com/coxswain-sched/coxswain/server/config"
)

// TestTemporaryServerKeepsNothingElsewhere: copies of working directories would be beside those of the server
// whose configuration it was given.
func TestTemporaryServerKeepsNothingElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(temporaryState, dir)
	c := config.Default()
	c.Jobs.UploadDir = "/scratch"
	var f upFlags
	if err := f.useTemporaryState(&c, func(string) bool { return false }); err != nil || c.State.Dir != dir || c.Jobs.UploadDir != "" {
		t.Errorf("state %q, copies in %q: %v", c.State.Dir, c.Jobs.UploadDir, err)
	}
}
