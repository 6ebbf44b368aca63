package podagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestVolumesWithoutOwners: a directory that was just made and is another user's tells that its
// volume keeps no owners; one that was there, that it is somebody else's.
//
// Seen to fail with: the same words for both.
func TestVolumesWithoutOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	for made, say := range map[bool]string{true: "keeps no owners: what user 0 makes there is of user 12345", false: "is of user 12345, and the job's is 0"} {
		err := checkDirOwned(dir, made)
		if fault.KindOf(err) != fault.Permission || !strings.Contains(err.Error(), say) || strings.Contains(fault.Remedy(err), "all_squash") != made {
			t.Errorf("%v (%s)", err, fault.Remedy(err))
		}
	}
}

// TestRestoreIsThere: a job is told to go on from what is there, and not from what an earlier attempt
// had in another user's directory.
//
// Seen to fail with: nothing looked at; names of files alone, which some programs only begin with.
func TestRestoreIsThere(t *testing.T) {
	top := t.TempDir()
	p := &Plan{Checkpoint: filepath.Join(top, "cox-ab-42")}
	dir, err := p.savesIn()
	if err != nil {
		t.Fatal(err)
	}
	restores := func(as string) string {
		p.Saved = engine.Saved{At: p.Saved.At.AddDate(1, 0, 0), As: as}
		var l attempt.Launch
		if err := p.keepSaved(&l); err != nil {
			t.Fatal(err)
		}
		return l.Restore
	}
	before := filepath.Join(top, "uid-1", "cox-ab-42", "step-7")
	for _, as := range []string{"", "step-7", before, filepath.Dir(before)} {
		if got := restores(as); got != "" {
			t.Errorf("%q: %s, and there is nothing", as, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "step-7.index"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{"": dir, "step-7": filepath.Join(dir, "step-7"), "step-8": "", "/elsewhere/9": "/elsewhere/9"} {
		if got := restores(as); got != want {
			t.Errorf("%q: %q, not %q", as, got, want)
		}
	}
}
