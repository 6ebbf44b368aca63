package decisions_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
	"github.com/coxswain-sched/coxswain/test/decisions"
)

const (
	worlds = 240
	steps  = 60
)

// sum is the hash of everything that the core decides in a world, and how many
// decisions these were. At every reload-th step the core is taken from a snapshot;
// 0: never.
func sum(seed uint64, reload int) (string, int) {
	w, c, h, n := decisions.NewWorld(seed), sched.New(sched.Config{}), sha256.New(), 0
	now, events := w.First()
	for i := range steps {
		if reload > 0 && i%reload == reload-1 {
			c = sched.Load(c.Snapshot().Sort())
		}
		out := c.Step(now, events...)
		w.Heard(out)
		n += len(out)
		h.Write(snapshot.Encode(out))
		now, events = w.Step()
	}
	return hex.EncodeToString(h.Sum(nil)), n
}

// TestDecisionsOfAllWorlds writes the hash of each world to the file that COX_HASHES
// names. scripts/arm64.sh runs it as amd64 and as arm64 and compares the files.
func TestDecisionsOfAllWorlds(t *testing.T) {
	var text []byte
	all := 0
	for seed := range uint64(worlds) {
		s, n := sum(seed, 0)
		all += n
		text = fmt.Appendf(text, "world %d %s\n", seed, s)
	}
	if all < worlds*steps {
		t.Errorf("only %d decisions in %d worlds: they are too quiet to say anything", all, worlds)
	}
	total := sha256.Sum256(text)
	t.Logf("%s: %d worlds, %d decisions, %x", runtime.GOARCH, worlds, all, total)
	if name := os.Getenv("COX_HASHES"); name != "" {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotsDecideAlike: a core that is loaded from a snapshot every few steps
// decides as one that never was.
func TestSnapshotsDecideAlike(t *testing.T) {
	for seed := range uint64(worlds / 6) {
		live, _ := sum(seed, 0)
		for _, each := range []int{3, 17} {
			if loaded, _ := sum(seed, each); loaded != live {
				t.Errorf("world %d decides otherwise when it is loaded from a snapshot every %d steps", seed, each)
			}
		}
	}
}
