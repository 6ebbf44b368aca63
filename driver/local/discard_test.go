package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
)

func TestOldCopiesOfOutputGo(t *testing.T) {
	root := t.TempDir()
	e := &Engine{cfg: Config{Root: root}, ctx: t.Context(), gangs: map[engine.Ref]*gang{}}
	now := time.Now()
	for name, age := range map[string]time.Duration{"1.1": 10 * 24 * time.Hour, "2.1": time.Hour, "3.1": 10 * 24 * time.Hour, "strange": 90 * 24 * time.Hour} {
		dir := filepath.Join(filepath.Dir(attempt.RanksOf(root, engine.Ref{})), name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "0.0.log")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{file, dir} {
			if err := os.Chtimes(f, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.gangs[engine.Ref{Allocation: 3, Attempt: 1}] = &gang{} // not forgotten
	if err := e.discardOnce(now.Add(-7 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"1.1": false, "2.1": true, "3.1": true, "strange": true} {
		_, err := os.Stat(filepath.Join(filepath.Dir(attempt.RanksOf(root, engine.Ref{})), name))
		if (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
