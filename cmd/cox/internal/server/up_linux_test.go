package server

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
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

// TestTheStartNamesTheConsole where there is one to open: the program has it, and the server listens on TCP.
//
// Seen to fail without each half of the condition.
func TestTheStartNamesTheConsole(t *testing.T) {
	for _, c := range []struct {
		tcp     string
		has     bool
		console string
	}{{"127.0.0.1:7461", true, "console  http://127.0.0.1:7461  (cox web opens it)\n"}, {"", true, ""}, {"127.0.0.1:7461", false, ""}} {
		cfg := config.Default()
		var out strings.Builder
		(&upFlags{}).printReady(&out, &daemon.Info{Config: &cfg, TCP: c.tcp, HasConsole: c.has})
		_, after, named := strings.Cut(out.String(), "console  ")
		if named != (c.console != "") || named && !strings.HasPrefix("console  "+after, c.console+"ready ") {
			t.Errorf("TCP %q, built %t:\n%s", c.tcp, c.has, out.String())
		}
	}
}
