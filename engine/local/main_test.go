package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine/local"
)

// TestMain lets the test binary stand for cox: as a supervisor it is started
// with the command's hidden arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "hog" {
		hog()
	}
	os.Exit(m.Run())
}

// supervisor is the hidden command, unless a test broke the node: then it dies or
// never answers. A test may also put its journal elsewhere.
func supervisor(args []string) int {
	dir, node := args[0], args[1]
	if _, err := os.Stat(filepath.Join(dir, "..", "..", "break."+node)); err == nil {
		fmt.Fprintln(os.Stderr, "broken by a test")
		return 1
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "..", "hang."+node)); err == nil {
		time.Sleep(time.Hour) // alive, and never ready
	}
	if journal, err := os.ReadFile(filepath.Join(dir, "..", "..", "journal."+node)); err == nil {
		if err := os.Symlink(string(journal), filepath.Join(dir, "n", node, "journal")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return local.SuperviseMain(args)
}

// hog takes memory until somebody ends it.
func hog() {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
		if len(all) == 1<<10 {
			os.Exit(3) // a GiB, and no limit
		}
	}
}
